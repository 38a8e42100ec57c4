"""Measure model files beside the tables they were fitted to, and scores on tables of prices.

Maps are of simulated terrain. The table of prices is ``rwf.datasets.diamonds``, fitted as a table,
by the command, and by dummies in arrays. Every case takes a process of its own, and minutes.
Example: python -m benchmarks sizes --out benchmarks/sizes.jsonl
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import platform
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rwf
from benchmarks.rows import append, in_own_process
from rwf import RWFRegressor, TableRegressor
from rwf.datasets import diamonds
from rwf.diagnostics.metrics import METRICS
from rwf.uncertainty.transformed import Predictive

MAPS = (100_000, 200_000)
PRICES, HELD = 43_000, 10_750
TABLE, COMMAND, DUMMIES = "TableRegressor", "rwf fit", "RWFRegressor on dummies"
WAYS = (TABLE, COMMAND, DUMMIES)


@dataclass(frozen=True)
class Row:
    """One model.

    Args:
        case: by what the newest row replaces others.
        rows: it was fitted to.
        inputs: columns of numbers that these had.
        columns: of features.
        table_megabytes: of all inputs and targets in double precision.
        file_megabytes: of the model.
        save: CPU seconds.
        load: CPU seconds.
        fit: CPU seconds.
        same: whether the loaded model predicts the same, to the last bit.
        scores: of held-out rows, by their names.
        deciles: coverage of 95 % intervals, by tenths of the prediction.
        lowest: end of these intervals.
    """

    case: str
    rows: int
    inputs: int
    columns: int
    table_megabytes: float
    file_megabytes: float
    save: float
    load: float
    fit: float
    same: bool
    scores: dict[str, float]
    deciles: list[float]
    lowest: float
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()

    @property
    def ratio(self) -> float:
        """The file over the table."""
        return self.file_megabytes / self.table_megabytes


def terrain(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Places, and heights of ridges of several sizes, with a little noise."""
    X, f = rng.uniform(0, 100, (n, 2)), np.zeros(n)
    for octave in range(6):
        angle, phase = rng.uniform(0, np.pi), rng.uniform(0, 2 * np.pi, 2)
        along = X @ [np.cos(angle), np.sin(angle)] * 2**octave / 16
        across = X @ [-np.sin(angle), np.cos(angle)] * 2**octave / 25
        f += 2.0**-octave * np.abs(np.sin(along + phase[0]) + np.sin(across + phase[1]))
    return X, 100 * f + rng.normal(size=n)


def measure(case: str) -> Row:
    """One case, in this process."""
    warnings.simplefilter("ignore")
    if case in WAYS:
        return _prices(case)
    n = int(case.removeprefix("map of ").removesuffix(" points").replace(",", ""))
    X, f = terrain(n + HELD, np.random.default_rng(0))
    begun = time.process_time()
    model = RWFRegressor(random_state=0).fit(X[:n], f[:n])
    seconds = time.process_time() - begun
    return _row(case, model, seconds, n, 2, X[n:], f[n:])


def _prices(way: str) -> Row:
    import pandas as pd

    table = pd.DataFrame(diamonds(PRICES + HELD, np.random.default_rng(0)))
    names = ["cut", "color", "clarity"]
    dummies = pd.get_dummies(table, columns=names, dtype=float).drop(columns="price")
    fits: dict[str, Callable[[], Any]] = {
        TABLE: lambda: TableRegressor(random_state=0).fit(table[:PRICES], target="price"),
        COMMAND: lambda: _by_command(table[:PRICES]),
        DUMMIES: lambda: RWFRegressor(random_state=0).fit(dummies[:PRICES], table.price[:PRICES]),
    }
    begun = time.process_time()
    model = fits[way]()
    seconds = time.process_time() - begun
    held = (dummies if way == DUMMIES else table)[PRICES:]
    y = table.price.to_numpy(dtype=np.float64)[PRICES:]
    return _row(way, model, seconds, PRICES, dummies.shape[1], held, y)


def _by_command(table: Any) -> Any:  # noqa: ANN401 - a dataframe, and the model of it
    from rwf.cli.app import app

    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        data, out = Path(folder) / "rows.csv", Path(folder) / "model.rwf"
        table.to_csv(data, index=False)
        options = ["--target", "price", "--out", out, "--validate", "none", "--quiet"]
        app(["fit", str(data), *map(str, options)], standalone_mode=False)
        return rwf.load(out)


def _row(
    case: str,
    model: Any,  # noqa: ANN401 - an estimator
    seconds: float,
    n: int,
    inputs: int,
    X: Any,  # noqa: ANN401 - held-out rows, as the model takes them
    y: np.ndarray,
) -> Row:
    prediction: Predictive = model.predict_distribution(X)
    low, high = prediction.interval()
    order, inside = np.argsort(prediction.mean), (low <= y) & (y <= high)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.rwf"
        begun = time.process_time()
        model.save(path, include_rows=True)
        saved, size = time.process_time(), path.stat().st_size
        loaded = rwf.load(path)
        end = time.process_time()
    return Row(
        case=case,
        rows=n,
        inputs=inputs,
        columns=model.n_features_out_,
        table_megabytes=8e-6 * n * (inputs + 1),
        file_megabytes=1e-6 * size,
        save=saved - begun,
        load=end - saved,
        fit=seconds,
        same=bool(np.array_equal(loaded.predict_interval(X), (low, high))),
        scores={name: metric(y, prediction) for name, metric in METRICS.items()},
        deciles=[float(inside[its].mean()) for its in np.array_split(order, 10)],
        lowest=float(low.min()),
    )


def report(row: Row) -> str:
    return (
        f"{row.case:<24} {row.file_megabytes:6.1f} MB, {row.ratio:.1f} times the table, "
        f"RMSE {row.scores['rmse']:.4g}, CRPS {row.scores['crps']:.4g}, coverage by decile "
        f"{min(row.deciles):.3f} to {max(row.deciles):.3f}, lowest {row.lowest:.3g}"
    )


def main(given: list[str] | None = None) -> None:
    cases = [*(f"map of {n:,} points" for n in MAPS), *WAYS]
    parser = argparse.ArgumentParser(prog="benchmarks sizes", description=__doc__)
    parser.add_argument("--case", choices=cases, help="only this case")
    parser.add_argument("--here", action="store_true", help="in this process, as a JSON line")
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    for case in [arguments.case] if arguments.case else cases:
        if arguments.here:
            print(json.dumps(asdict(measure(case))))
            continue
        row = in_own_process(Row, "benchmarks.sizes", ["--case", case, "--here"])
        print(report(row), flush=True)
        append(arguments.out, row)


if __name__ == "__main__":
    main()
