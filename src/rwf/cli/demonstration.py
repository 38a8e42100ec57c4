"""The demo: wavelet and Fourier features on a step function, with equal columns and equal starts.

Beside them stand sparse weights, which find the number of their columns. The data are the
first experiment of the paper, :func:`rwf.datasets.multi_step`. Each method is fitted on the
training rows, scored
on the held-out rows and drawn in a panel of one figure.
"""

import logging
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

import numpy as np
from matplotlib.figure import Figure

from rwf._types import Array
from rwf.datasets import Sample, multi_step, step_function
from rwf.diagnostics.metrics import METRICS
from rwf.diagnostics.plots import predictive_band
from rwf.estimators.fourier import RFFRegressor
from rwf.estimators.regressor import RWFRegressor

logger = logging.getLogger(__name__)

Regressor: TypeAlias = RWFRegressor | RFFRegressor


def _sparse(n_components: int, n_restarts: int, random_state: int) -> RWFRegressor:
    """Sparse weights have chains in the place of starts, and any number of columns."""
    return RWFRegressor(prior="spike_slab", random_state=random_state)


METHODS: Mapping[str, Callable[..., Regressor]] = {
    "RWF, as printed": RWFRegressor.from_paper,
    "RFF": RFFRegressor,
    "RWF, adaptive": partial(RWFRegressor, prior="adaptive"),
    "RWF, sparse": _sparse,
}
"""What the demo compares: each takes n_components, n_restarts and random_state."""


@dataclass(frozen=True)
class DemoRow:
    """One method's line in the table."""

    method: str
    features: int
    seconds: float  # to fit, compilation excluded
    scores: dict[str, float]  # by the names of METRICS, on the held-out rows


@dataclass(frozen=True)
class DemoResult:
    """What was run, what came out, and where the figure is."""

    n_train: int
    n_test: int
    noise: float
    n_components: int
    n_restarts: int
    random_state: int
    rows: tuple[DemoRow, ...]
    figure: Path


@dataclass(frozen=True)
class _Fitted:
    row: DemoRow
    model: Regressor


def run_demo(
    out: Path,
    n_train: int = 4200,
    n_test: int = 1800,
    noise: float = 0.05,
    n_components: int = 300,
    n_restarts: int = 4,
    random_state: int = 0,
) -> DemoResult:
    """Fit every method of :data:`METHODS`, score it, and write ``out/demo.png``.

    Args:
        out: directory of the figure; it is made if missing.
        n_train: rows to fit.
        n_test: rows to score, drawn from the same law.
        noise: standard deviation of the noise.
        n_components: columns of random features, the same for every method but sparse weights.
        n_restarts: starts after the first, the same for every method but sparse weights.
        random_state: seed of the data and of every method.
    """
    if n_train < 2 or n_test < 1:
        raise ValueError(
            f"n_train={n_train} and n_test={n_test} leave too little to fit or to score. "
            "Ask for at least 2 and 1 rows."
        )
    out.mkdir(parents=True, exist_ok=True)
    sample = multi_step(n_train + n_test, np.random.default_rng(random_state), noise)
    train, test = _rows(sample, slice(n_train)), _rows(sample, slice(n_train, None))
    fitted = [
        _fit(method, train, test, n_components, n_restarts, random_state) for method in METHODS
    ]
    path = out / "demo.png"
    _save(_draw(fitted, test), path)
    return DemoResult(
        n_train=n_train,
        n_test=n_test,
        noise=noise,
        n_components=n_components,
        n_restarts=n_restarts,
        random_state=random_state,
        rows=tuple(each.row for each in fitted),
        figure=path,
    )


def _rows(sample: Sample, rows: slice) -> Sample:
    return Sample(sample.X[rows], sample.y[rows], sample.f[rows])


def _fit(
    method: str, train: Sample, test: Sample, n_components: int, n_restarts: int, random_state: int
) -> _Fitted:
    make = METHODS[method]
    with warnings.catch_warnings(action="ignore"):  # a few rows, so that compilation is not timed
        make(n_components=8, n_restarts=1, random_state=0).fit(train.X[:40], train.y[:40])
    logger.info("fitting %s", method)
    model = make(n_components=n_components, n_restarts=n_restarts, random_state=random_state)
    started = time.perf_counter()
    model.fit(train.X, train.y)
    seconds = time.perf_counter() - started
    mean, std = model.predict(test.X, return_std=True)
    scores = {name: metric(test.y, mean, std) for name, metric in METRICS.items()}
    return _Fitted(DemoRow(method, model.n_features_out_, seconds, scores), model)


def _draw(fitted: list[_Fitted], test: Sample) -> Figure:
    """One panel per method, all on the same axes."""
    figure = Figure(figsize=(7.5, 2.3 * len(fitted) + 0.5), layout="constrained")
    panels = figure.subplots(len(fitted), sharex=True, sharey=True, squeeze=False)[:, 0]
    x = np.linspace(0.0, 1.0, 2001)
    truth = step_function(x)
    shown = slice(800)  # rows are in random order: a sample of what is held out
    for ax, each in zip(panels, fitted, strict=True):
        mean, std = each.model.predict(x[:, None], return_std=True)
        data = (test.X[shown, 0], test.y[shown])
        predictive_band(ax, x, mean, std, data=data, truth=truth, label="predictive mean")
        ax.set_title(_title(each.row), loc="left", fontsize=10)
        ax.set_ylabel("y")
        ax.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel("x")
    panels[-1].set_xlim(0.0, 1.0)
    panels[-1].set_ylim(*_limits(test.y))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _title(row: DemoRow) -> str:
    error, covered = row.scores["rmse"], row.scores["coverage"]
    columns = f"{row.features} columns"
    return f"{row.method}, {columns}: RMSE {error:.3f}, 95 % intervals cover {covered:.1%}"


def _limits(y: Array) -> tuple[float, float]:
    """The range of the data and a little more: one wild band must not flatten every panel."""
    low, high = float(y.min()), float(y.max())
    margin = 0.15 * (high - low) or 1.0
    return low - margin, high + margin


def _save(figure: Figure, path: Path) -> None:
    """Write beside the target, then rename: a reader never sees half a file."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        figure.savefig(beside, format="png", dpi=150)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
