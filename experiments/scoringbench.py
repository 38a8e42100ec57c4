"""An entry for ScoringBench (arXiv:2603.29928): proper scores over about a hundred tables.

Its harness takes a class that fits a dataframe and predicts histograms, and computes CRPS, log and
interval scores from them. Numbers of this project are not made here: tables are downloaded by the
harness. With a checkout of it, and its requirements installed:

    python -m experiments.scoringbench path/to/ScoringBench --lite

writes one Parquet file per table, as the harness does for its own models, and goes on where an
interrupted run stopped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rwf import TableRegressor
from rwf._types import Array

TAIL = np.array([1e-6, 1e-5, 1e-4, 3e-4, 1e-3, 2e-3, 3e-3])
CENTER = np.linspace(0.005, 0.995, 199)
LEVELS = np.concatenate([TAIL, CENTER, 1.0 - TAIL[::-1]])
"""Probabilities of the edges between bins. The outermost bins end there: what is beyond them has
two millionths of the mass, which the harness adds to the bins beside it."""


@dataclass(frozen=True)
class Histograms:
    """Predictive distributions as the harness takes them.

    Args:
        probas: probability of every bin, shape (n, b), with rows that add up to one.
        bin_edges: of every row, shape (n, b + 1).
        bin_midpoints: centres of the bins, shape (n, b).
        mean: predictive means, shape (n,).
    """

    probas: Array
    bin_edges: Array
    bin_midpoints: Array
    mean: Array


@dataclass(eq=False)
class ScoringBenchRWF:
    """The default model for tables behind the methods that the harness calls.

    Args:
        random_state: seed of all draws.
        max_iter: iterations of L-BFGS; ``None`` for the default.
    """

    random_state: int = 0
    max_iter: int | None = None

    def fit(self, X: Any, y: ArrayLike) -> Self:  # noqa: ANN401 - a dataframe
        self._model = TableRegressor(random_state=self.random_state, max_iter=self.max_iter)
        self._model.fit(X, np.asarray(y, dtype=np.float64))
        return self

    def predict(self, X: Any) -> Array:  # noqa: ANN401
        return self._model.predict(X)

    def predict_distribution(self, X: Any) -> Histograms:  # noqa: ANN401
        predicted = self._model.predict_distribution(X)
        edges = np.stack([predicted.ppf(level) for level in LEVELS], axis=1)
        mass = np.diff(LEVELS) / (LEVELS[-1] - LEVELS[0])
        return Histograms(
            np.broadcast_to(mass, (len(edges), len(mass))).copy(),
            edges,
            (edges[:, 1:] + edges[:, :-1]) / 2,
            self.predict(X),
        )


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="experiments.scoringbench", description=__doc__)
    parser.add_argument("checkout", type=Path, help="of ScoringBench")
    parser.add_argument("--out", type=Path, default=Path("scoringbench-output"), help="a folder")
    parser.add_argument("--lite", action="store_true", help="two folds in place of five")
    arguments = parser.parse_args(given)
    if not (arguments.checkout / "scoringbench" / "runner.py").is_file():
        parser.error(f"{arguments.checkout} is no checkout of ScoringBench: clone it first.")
    sys.path.insert(0, str(arguments.checkout))
    datasets = import_module("scoringbench.datasets")
    run: Callable[..., object] = import_module("scoringbench.runner").run_benchmark
    folds = {"n_folds": 2} if arguments.lite else {}
    tables = datasets.validate_datasets(datasets.get_DATASETS_CONFIG())
    run(tables, {"rwf": ScoringBenchRWF}, arguments.out, **folds)


if __name__ == "__main__":
    main()
