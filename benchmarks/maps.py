"""Print time and memory of predicting a raster, to a NetCDF file.

Every case fits a few points, and predicts a template of many cells in a process of its own: rwf
chunk by chunk, and other libraries, where they are installed, the largest template they manage.
Example: python -m benchmarks maps --out benchmarks/maps.jsonl
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import rwf
from benchmarks import map_peers
from benchmarks.large import peak_memory
from benchmarks.map_peers import PEERS, Mapper, Points, Raster
from benchmarks.rows import append, in_own_process
from rwf import RWFRegressor, maps
from rwf.linalg.threads import cores

CASES = {
    "rwf, multiscale, 100 components": ("multiscale", 100, 10_000_000),
    "rwf, field, 100 components": ("field", 100, 1_000_000),
    "rwf, defaults": ("auto", None, 1_000_000),
}
"""Prior and number of components, and cells of the template."""

POINTS = 1000
NOISE = 0.1
COMPARED = 200


@dataclass(frozen=True)
class Row:
    """One measurement.

    Args:
        case: by what the newest row replaces others.
        outputs: the variables that are computed.
        rows: it was fitted to.
        unknowns: features, forces, or the size of a kriging system.
        cells: of the template.
        seconds: wall-clock seconds to predict and to write.
        cpu_seconds: the same in CPU seconds of all threads.
        peak_memory: of the process, in bytes.
        at_start: what it had before, in bytes.
        file_gigabytes: size of the file.
        rmse: of the means, against the function without noise.
        cores: that were used.
        version: of the library.
    """

    case: str
    outputs: list[str]
    rows: int
    unknowns: int
    cells: int
    seconds: float
    cpu_seconds: float
    peak_memory: int
    at_start: int
    file_gigabytes: float
    rmse: float
    cores: int
    version: str
    machine: str = platform.processor() or platform.machine()


def draw() -> Points:
    """Points of a square, and noisy values of a function."""
    import pandas as pd

    rng = np.random.default_rng(0)
    points = pd.DataFrame(rng.uniform(0, 10, (POINTS, 2)), columns=["x", "y"])
    points["z"] = signal(points.x, points.y) + NOISE * rng.normal(size=POINTS)
    return points


def signal(x: Raster, y: Raster) -> Raster:
    return np.sin(x) + np.cos(2 * y)


def ours(points: Points, prior: str, components: int | None) -> Mapper:
    regressor = RWFRegressor(components, prior=prior, random_state=0)
    model = maps.fit_map(points, "z", x="x", y="y", regressor=regressor)
    unknowns = model.regressor.n_features_out_
    return Mapper(partial(maps.predict_map, model), unknowns, rwf.__version__)


MAPPERS: dict[str, Callable[[Points], Mapper]] = {
    **{case: partial(ours, prior=prior, components=n) for case, (prior, n, _) in CASES.items()},
    **PEERS,
}


def installed(case: str) -> bool:
    return find_spec(case.split(",")[0].lower()) is not None


def measure(case: str, cells: int) -> Row:
    """Predict a square of so many cells, in this process."""
    import xarray as xr

    mapper = MAPPERS[case](draw())
    line = np.linspace(0, 10, round(cells**0.5))
    template = xr.Dataset(coords={"y": line[::-1], "x": line})
    at_start, wall, cpu = peak_memory(), time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "map.nc"
        maps.write_map(mapper.predict(template), out)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak, size = peak_memory(), out.stat().st_size / 1e9
        outputs, rmse = compared(out)
    return Row(
        case=case,
        outputs=outputs,
        rows=POINTS,
        unknowns=mapper.unknowns,
        cells=len(line) ** 2,
        seconds=wall,
        cpu_seconds=cpu,
        peak_memory=peak,
        at_start=at_start,
        file_gigabytes=size,
        rmse=rmse,
        cores=cores(),
        version=mapper.version,
    )


def compared(path: Path) -> tuple[list[str], float]:
    """The variables of a map, and the error of its means on some of its lines and columns."""
    import xarray as xr

    with xr.open_dataset(path) as found:
        some = slice(None, None, -(-found.sizes["x"] // COMPARED))
        means = found["mean"].load().isel(x=some, y=some)  # a step in a file is slow to read
        errors = means - signal(means.x, means.y)
        return [*map(str, found.data_vars)], float(np.sqrt((errors**2).mean()))


def in_a_process(case: str, cells: int, seconds: float | None = None) -> Row:
    """The same in a process of its own, which may be given a limit of seconds."""
    given = ["--case", case, "--cells", cells, "--here"]
    return in_own_process(Row, "benchmarks.maps", given, seconds)


def of_case(case: str) -> Row:
    """The row of a template of ours, or of the largest that another library manages."""
    if case in CASES:
        return in_a_process(case, CASES[case][-1])
    return map_peers.largest(partial(in_a_process, case, seconds=map_peers.SECONDS))


def report(row: Row) -> str:
    return (
        f"{row.case:<30} {row.cells:,} cells, {row.cells / row.seconds:,.0f} cells/s on "
        f"{row.cores} cores ({row.cells / row.cpu_seconds:,.0f} per CPU second), "
        f"{row.peak_memory / 1e9:.2f} GB of memory, {row.file_gigabytes:.2f} GB of file, "
        f"RMSE {row.rmse:.3f}"
    )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks maps", description=__doc__)
    parser.add_argument("--case", choices=MAPPERS, help="only this case")
    parser.add_argument("--cells", type=int, help="of this case")
    parser.add_argument("--here", action="store_true", help="in this process, as a JSON line")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    if arguments.here:
        print(json.dumps(asdict(measure(arguments.case, arguments.cells))))
        return
    for case in [arguments.case] if arguments.case else MAPPERS:
        if not installed(case):
            print(f"{case}: not installed")
            continue
        row = in_a_process(case, arguments.cells) if arguments.cells else of_case(case)
        print(report(row), flush=True)
        append(arguments.out, row)


if __name__ == "__main__":
    main()
