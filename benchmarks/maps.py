"""Print time and memory of predicting a raster chunk by chunk, to a NetCDF file.

Every case fits a few points, and predicts a template of many cells in a process of its own.
Example: python -m benchmarks maps --out benchmarks/maps.jsonl
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import rwf
from benchmarks.large import peak_memory
from benchmarks.rows import append, in_own_process
from rwf import RWFRegressor, maps
from rwf.linalg.threads import cores

CASES = (("multiscale", 10_000_000), ("field", 1_000_000))
POINTS, COMPONENTS = 1000, 100


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        case: by what the newest row replaces others.
        prior: of the model.
        rows: it was fitted to.
        columns: of features.
        cells: of the template.
        seconds: wall-clock seconds to predict and to write.
        cpu_seconds: the same in CPU seconds of all threads.
        peak_memory: of the process, in bytes.
        at_start: what it had before, in bytes.
        file_gigabytes: size of the file.
        cores: that were used.
    """

    case: str
    prior: str
    rows: int
    columns: int
    cells: int
    seconds: float
    cpu_seconds: float
    peak_memory: int
    at_start: int
    file_gigabytes: float
    cores: int
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()


def measure(prior: str, cells: int) -> Row:
    """Predict a square of so many cells, in this process."""
    import pandas as pd
    import xarray as xr

    rng = np.random.default_rng(0)
    points = pd.DataFrame(rng.uniform(0, 10, (POINTS, 2)), columns=["x", "y"])
    points["z"] = np.sin(points.x) + np.cos(2 * points.y) + 0.1 * rng.normal(size=POINTS)
    regressor = RWFRegressor(COMPONENTS, prior=prior, random_state=0)
    model = maps.fit_map(points, "z", x="x", y="y", regressor=regressor)
    line = np.linspace(0, 10, round(cells**0.5))
    template = xr.Dataset(coords={"y": line[::-1], "x": line})
    at_start, wall, cpu = peak_memory(), time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "map.nc"
        maps.write_map(maps.predict_map(model, template), out)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = out.stat().st_size / 1e9
    return Row(
        case=f"{prior}, {len(line) ** 2:,} cells",
        prior=prior,
        rows=POINTS,
        columns=model.regressor.n_features_out_,
        cells=len(line) ** 2,
        seconds=wall,
        cpu_seconds=cpu,
        peak_memory=peak_memory(),
        at_start=at_start,
        file_gigabytes=size,
        cores=cores(),
    )


def report(row: Row) -> str:
    return (
        f"{row.case:<30} {row.cells / row.seconds:,.0f} cells/s on {row.cores} cores "
        f"({row.cells / row.cpu_seconds:,.0f} per CPU second), {row.peak_memory / 1e9:.2f} GB of "
        f"memory, {row.file_gigabytes:.2f} GB of file"
    )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks maps", description=__doc__)
    parser.add_argument("--prior", help="only this case")
    parser.add_argument("--cells", type=int, help="of this case")
    parser.add_argument("--here", action="store_true", help="in this process, as a JSON line")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    cases = [(arguments.prior, arguments.cells)] if arguments.prior else CASES
    for prior, cells in cases:
        if arguments.here:
            print(json.dumps(asdict(measure(prior, cells))))
            continue
        row = in_own_process(Row, "benchmarks.maps", ["--prior", prior, "--cells", cells, "--here"])
        print(report(row), flush=True)
        append(arguments.out, row)


if __name__ == "__main__":
    main()
