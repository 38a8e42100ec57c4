"""``rwf demo``: wavelet and Fourier features on a step function, as a table and a figure.

The data are the paper's first experiment, :func:`rwf.datasets.multi_step`. The paper's features and
Fourier features have equal numbers of columns and of trials; the default chooses its own.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rwf.cli.terminal import Json, print_result, table_of
from rwf.data.progress import Progress, silent

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

    from rwf.datasets import Sample
    from rwf.estimators.fourier import RFFRegressor
    from rwf.estimators.regressor import RWFRegressor


def demo(
    out: Annotated[
        Path, typer.Option(file_okay=False, help="Directory of the figure, made if missing.")
    ] = Path("rwf-demo"),
    n_train: Annotated[int, typer.Option(min=2, help="Rows to fit.")] = 4200,
    n_test: Annotated[int, typer.Option(min=1, help="Rows to score.")] = 1800,
    noise: Annotated[float, typer.Option(min=0.0, help="Standard deviation of the noise.")] = 0.05,
    n_components: Annotated[
        int, typer.Option(min=2, help="Columns of RFF and of RWF as printed.")
    ] = 300,
    n_restarts: Annotated[
        int, typer.Option(min=0, help="Trials after the first, for the same two.")
    ] = 4,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the data and the methods.")] = 0,
    as_json: Json = False,
) -> None:
    """Fit wavelet and Fourier features to a step function; print scores and draw a figure."""
    sizes = n_train, n_test, noise, n_components, n_restarts
    result = run_demo(out, *sizes, seed, lambda message: typer.echo(message, err=True))
    said = conclusion(result)
    answer = {**asdict(result), "conclusion": said}
    print_result(as_json, answer, _table(result), said, f"Figure: {result.figure}")


@dataclass(frozen=True)
class DemoRow:
    """One method's line in the table."""

    method: str
    features: int
    seconds: float  # to fit, compilation excluded
    scores: dict[str, float]  # by the names of METRICS, on the held-out rows
    function_error: float  # RMSE against f, the function without noise


@dataclass(frozen=True)
class DemoResult:
    """The arguments of :func:`run_demo`, the scores, and the path of the figure."""

    n_train: int
    n_test: int
    noise: float
    n_components: int
    n_restarts: int
    random_state: int
    rows: tuple[DemoRow, ...]
    figure: Path


def methods() -> dict[str, Callable[..., RWFRegressor | RFFRegressor]]:
    """The methods compared: each takes n_components, n_restarts and random_state."""
    from rwf import RFFRegressor, RWFRegressor

    def default(n_components: int, n_restarts: int, random_state: int) -> RWFRegressor:
        return RWFRegressor(random_state=random_state)

    return {
        "RFF": RFFRegressor,
        "RWF as printed": RWFRegressor.from_paper,
        "RWF by default": default,
    }


def run_demo(
    out: Path,
    n_train: int = 4200,
    n_test: int = 1800,
    noise: float = 0.05,
    n_components: int = 300,
    n_restarts: int = 4,
    random_state: int = 0,
    progress: Progress = silent,
) -> DemoResult:
    """Fit and score all :func:`methods`, and write ``out/demo.png``; see :func:`demo`."""
    import numpy as np

    from rwf.data.atomic import replace_file
    from rwf.datasets import Sample, multi_step

    if n_train < 2 or n_test < 1:
        raise ValueError(
            f"n_train={n_train} and n_test={n_test} leave too little to fit or to score. "
            "Ask for at least 2 and 1 rows."
        )
    out.mkdir(parents=True, exist_ok=True)
    sample = multi_step(n_train + n_test, np.random.default_rng(random_state), noise)
    train, test = (
        Sample(sample.X[rows], sample.y[rows], sample.f[rows])
        for rows in (slice(n_train), slice(n_train, None))
    )
    options = {"n_components": n_components, "n_restarts": n_restarts, "random_state": random_state}
    fitted = []
    for name, make in methods().items():
        progress(f"fitting {name}")
        fitted.append(_fit(name, make, train, test, options))
    figure, path = _draw(fitted, test), out / "demo.png"
    replace_file(path, lambda file: figure.savefig(file, format="png", dpi=150))
    rows = tuple(row for row, _ in fitted)
    return DemoResult(n_train, n_test, noise, **options, rows=rows, figure=path)


def _fit(
    name: str,
    make: Callable[..., RWFRegressor | RFFRegressor],
    train: Sample,
    test: Sample,
    options: dict[str, int],
) -> tuple[DemoRow, RWFRegressor | RFFRegressor]:
    import numpy as np

    from rwf.diagnostics.metrics import METRICS

    with warnings.catch_warnings(action="ignore"):  # a few rows, so that compilation is not timed
        make(n_components=8, n_restarts=1, random_state=0).fit(train.X[:40], train.y[:40])
    model = make(**options)
    started = time.perf_counter()
    model.fit(train.X, train.y)
    seconds = time.perf_counter() - started
    mean, std = model.predict(test.X, return_std=True)
    scores = {name: metric(test.y, mean, std) for name, metric in METRICS.items()}
    error = float(np.sqrt(np.mean((mean - test.f) ** 2)))
    return DemoRow(name, model.n_features_out_, seconds, scores, error), model


def _draw(fitted: list[tuple[DemoRow, RWFRegressor | RFFRegressor]], test: Sample) -> Figure:
    """One panel per method, all on the same axes."""
    import numpy as np
    from matplotlib.figure import Figure

    from rwf.datasets import step_function
    from rwf.diagnostics.plots import predictive_band

    figure = Figure(figsize=(7.5, 2.3 * len(fitted) + 0.5), layout="constrained")
    panels = figure.subplots(len(fitted), sharex=True, sharey=True, squeeze=False)[:, 0]
    x = np.linspace(0.0, 1.0, 2001)
    truth = step_function(x)
    data = test.X[:800, 0], test.y[:800]  # rows are in random order
    for ax, (row, model) in zip(panels, fitted, strict=True):
        mean, std = model.predict(x[:, None], return_std=True)
        predictive_band(ax, x, mean, std, data=data, truth=truth, label="predictive mean")
        title = f"{row.method}, {row.features} columns: error against the truth "
        title += (
            f"{row.function_error:.3f}, 95 % intervals cover {100 * row.scores['coverage']:.0f} %"
        )
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_ylabel("y")
        ax.spines[["top", "right"]].set_visible(False)
    panels[-1].set(xlabel="x", xlim=(0.0, 1.0))
    # The range of the data and a little more: one wide band must not flatten every panel.
    low, high = float(test.y.min()), float(test.y.max())
    margin = 0.15 * (high - low) or 1.0
    panels[-1].set_ylim(low - margin, high + margin)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def conclusion(result: DemoResult) -> str:
    """What was seen, in two sentences."""
    best, *others = sorted(result.rows, key=lambda row: row.function_error)
    compared = [
        f"that of {row.method} ({row.function_error:.3g}) is "
        f"{row.function_error / best.function_error:.1f} times as large"
        for row in others
    ]
    *covered, last = (f"{100 * row.scores['coverage']:.0f} % ({row.method})" for row in result.rows)
    return (
        f"{best.method} is closest to the true function, with a root-mean-square error of "
        f"{best.function_error:.3g}; {' and '.join(compared)}. "
        f"95 % intervals cover {', '.join(covered)} and {last} of the held-out rows."
    )


def _table(result: DemoResult) -> Table:
    title = (
        f"multi-step function, {result.n_train} rows to fit, {result.n_test} to score, "
        f"noise {result.noise:g}"
    )
    numbers = ("error in f", "RMSE", "CRPS", "95 % coverage", "seconds")
    table = table_of(title, "method", *numbers)
    table.columns[0].no_wrap = True
    for row in result.rows:
        table.add_row(
            row.method,
            f"{row.function_error:.4f}",
            *(f"{row.scores[name]:.4f}" for name in ("rmse", "crps")),
            f"{row.scores['coverage']:.1%}",
            f"{row.seconds:.1f}",
        )
    return table
