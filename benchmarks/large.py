"""Print time and memory of fits to Parquet files that need not fit into memory.

Every case makes its files in a temporary folder, ten columns of single precision and a target, and
fits them in a process of its own, whose largest memory is that of the fit alone.
Example: python -m benchmarks large --out benchmarks/large.jsonl
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rwf
from benchmarks.rows import append, in_own_process
from benchmarks.timing import gemm_rate, seconds
from rwf import RWFRegressor
from rwf.linalg.threads import cores

CASES = (1_000_000, 10_000_000, 20_000_000)
INPUTS, COLUMNS = 10, 500
FILE_ROWS, GROUP_ROWS = 2_500_000, 250_000
NOISE = 0.3


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        case: by what the newest row replaces others.
        rows: how many.
        columns: of features.
        file_gigabytes: size of the files.
        peak_memory: of the process, in bytes.
        at_start: what it had before the fit, in bytes.
        seconds: wall-clock seconds of the fit.
        stages: the same by stage.
        rmse: of predictions for new rows, against the signal without noise.
        coverage: of 95 % intervals of their noisy targets.
        cores: that were used.
        gemm_gflops: rate of dgemm on one core, per CPU second.
    """

    case: str
    rows: int
    columns: int
    file_gigabytes: float
    peak_memory: int
    at_start: int
    seconds: float
    stages: dict[str, float]
    rmse: float
    coverage: float
    cores: int
    gemm_gflops: float
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()


def signal(X: np.ndarray) -> np.ndarray:
    """Waves whose length changes with place, of two of the columns, and an interaction."""
    local = np.sin(3 * X[:, 0] * (1 + 0.5 * X[:, 1]))
    return np.asarray(local + np.tanh(X[:, 2] * X[:, 3]) + 0.2 * X[:, 4], dtype=np.float64)


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Inputs in single precision, and noisy targets."""
    X = rng.uniform(-1, 1, (n, INPUTS)).astype(np.float32)
    return X, signal(X) + NOISE * rng.normal(size=n)


def write(folder: Path, rows: int) -> None:
    """Files of so many rows in all."""
    rng = np.random.default_rng(0)
    for number, start in enumerate(range(0, rows, FILE_ROWS)):
        part = draw(min(FILE_ROWS, rows - start), rng)
        write_file(folder / f"rows-{number:03d}.parquet", *part)


def write_file(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    table = {f"x{i}": X[:, i] for i in range(INPUTS)} | {"y": y.astype(np.float32)}
    pq.write_table(pa.table(table), path, row_group_size=GROUP_ROWS)


def measure(folder: Path, rows: int, columns: int = COLUMNS) -> Row:
    """Fit the files of a folder, in this process."""
    at_start = peak_memory()
    model = RWFRegressor(columns, random_state=0)
    taken, _ = seconds(lambda: model.fit(str(folder), "y"), time.perf_counter)
    peak = peak_memory()
    X, y = draw(2000, np.random.default_rng(1))
    with tempfile.TemporaryDirectory() as elsewhere:
        new = Path(elsewhere) / "new.parquet"
        write_file(new, X, y)
        lower, upper = model.predict_interval(str(new))
    return Row(
        case=f"{rows:,} rows",
        rows=rows,
        columns=model.n_features_out_,
        file_gigabytes=sum(path.stat().st_size for path in folder.iterdir()) / 1e9,
        peak_memory=peak,
        at_start=at_start,
        seconds=taken,
        stages=model.fit_report_.seconds,
        rmse=float(np.sqrt(np.mean(((lower + upper) / 2 - signal(X)) ** 2))),
        coverage=float(np.mean((lower <= y) & (y <= upper))),
        cores=cores(),
        gemm_gflops=gemm_rate() / 1e9,
    )


def peak_memory() -> int:
    """The largest memory of this program; ``getrusage`` may give that of its parent."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    (line,) = [text for text in status.read_text().splitlines() if text.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def in_a_process(rows: int, columns: int = COLUMNS) -> Row:
    """The same in a process of its own, with files of its own."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), rows)
        given = ["--rows", rows, "--columns", columns, "--folder", folder]
        return in_own_process(Row, "benchmarks.large", given)


def report(row: Row) -> str:
    return (
        f"{row.case:<17} D={row.columns} {row.file_gigabytes:.2f} GB of files: {row.seconds:.0f} s "
        f"on {row.cores} cores, {row.peak_memory / 1e9:.2f} GB of memory; RMSE {row.rmse:.4f}, "
        f"coverage {row.coverage:.3f}"
    )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks large", description=__doc__)
    parser.add_argument("--rows", type=int, help="only this case")
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--folder", type=Path, help="fit these files here, and print a JSON line")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    if arguments.folder:
        row = measure(arguments.folder, arguments.rows, arguments.columns)
        print(json.dumps(asdict(row)))
        return
    for rows in [arguments.rows] if arguments.rows else CASES:
        row = in_a_process(rows, arguments.columns)
        print(report(row), flush=True)
        append(arguments.out, row)


if __name__ == "__main__":
    main()
