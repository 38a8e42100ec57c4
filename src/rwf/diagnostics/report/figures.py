"""The figures of a report, each an SVG image with alternative text."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from rwf._types import Array
from rwf.data.schema import CategoryColumn, DateColumn
from rwf.data.wording import numeral
from rwf.diagnostics.metrics import LEVELS
from rwf.diagnostics.plots import (
    BLUE,
    calibration,
    importance_bars,
    pit_histogram,
    predicted_and_actual,
    predictive_band,
    scalogram,
    standardized_residuals,
    usual_range,
)
from rwf.diagnostics.report.evaluation import Evaluation
from rwf.diagnostics.report.inputs import Input, dependences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rwf.diagnostics.sensitivity import Dependence
    from rwf.estimators.table import TableRegressor

SHOWN = 3000  # most points of a scatter plot: more overlap, and make the page large
ON_MAPS = 800  # most rows that are drawn on a map
POINTS, PIXELS = 600, 80  # resolution of a line, and of each side of a map
BARS = 15  # most columns whose importance is drawn
WIDTH, HEIGHT = 4.7, 3.6  # of a figure, in inches
FRAME, ROOM, LOW = 0.8, 3.3, 2.2  # labels of a map, its width, and the least height of its figure
ELONGATED = 3.0  # ratio of the sides of a map up to which both coordinates have one scale

STYLE: dict[Any, object] = {
    "svg.fonttype": "path",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "savefig.dpi": 120,
    "text.parse_math": False,  # names of columns may have dollars in them
}


@dataclass(frozen=True)
class Picture:
    """One figure: its title, the image as a data URL, alternative text, and a caption."""

    title: str
    source: str
    text: str
    note: str


def of_errors(found: Evaluation) -> Iterator[Picture]:
    """Predictions and errors."""
    some = slice(SHOWN)  # rows of a large table are in random order
    y, mean, z = found.y[some], found.mean[some], found.normal_scores[some]
    yield _picture(
        "Predicted and observed",
        lambda ax: predicted_and_actual(ax, y, mean),
        f"Scatter of observed over predicted values. {_correlation(found.y, found.mean)}",
        "On the line, prediction and observation agree.",
    )
    beyond = float(np.mean(np.abs(found.normal_scores) > 2))
    yield _picture(
        "Errors",
        lambda ax: standardized_residuals(ax, mean, z),
        f"Scatter of errors in standard deviations over predictions. {beyond:.1%} are beyond two.",
        "In standard deviations. 95 % of the rows should lie between the dashed lines, evenly from "
        "left to right.",
    )


def of_calibration(found: Evaluation) -> Iterator[Picture]:
    """Whether the intervals are right."""
    observed = found.coverage(LEVELS)
    worst = int(np.argmax(np.abs(observed - LEVELS)))
    yield _picture(
        "Reliability",
        lambda ax: calibration(ax, np.array(LEVELS), observed, len(found.rows)),
        "Curve of observed over nominal coverage. They differ most at "
        f"{LEVELS[worst]:.0%}, where {observed[worst]:.1%} of the rows are covered.",
        "Above the grey band, intervals are too wide; below it, too narrow.",
    )
    yield _picture(
        "Observations within their predicted distributions",
        lambda ax: pit_histogram(ax, found.pit, bins=20 if len(found.rows) >= 200 else 10),
        "Histogram of the predicted probabilities of values up to the observed one, the "
        "probability integral transform.",
        "Flat if the distributions are right. A hump: too wide; high ends: too narrow; a slope: "
        "too high or too low on average.",
    )


def of_importance(
    model: TableRegressor, found: Evaluation, ranked: list[Input]
) -> Iterator[Picture]:
    """Which columns matter, and how."""
    if len(ranked) > 1:
        shown = ranked[:BARS]
        names = [each.column.name for each in shown]
        sizes, errors = np.array([(each.importance, each.error) for each in shown]).T
        yield _picture(
            "Importance of columns",
            lambda ax: importance_bars(ax, names, sizes, errors),
            f"Bars of total Sobol indices. The largest is that of {names[0]}, {sizes[0]:.2f}.",
            "The share of the variance of the predictions that is lost if a column is not known, "
            "and two standard errors. Columns are varied independently of each other.",
        )
        for each, curve in dependences(model, found.rows.X, ranked):
            name, target = each.column.name, str(model.schema_.target)
            ends = " to ".join(numeral(end) for end in (curve.mean.min(), curve.mean.max()))
            yield _picture(
                f"Effect of {name}",
                partial(_dependence, each=each, curve=curve, target=target),
                f"Mean prediction by {name}: {ends}.",
                "The mean prediction if all rows had this value, and two standard deviations.",
            )


def of_inputs(model: TableRegressor, found: Evaluation) -> Iterator[Picture]:
    """The function itself, over one or two columns of numbers."""
    names, X = model.schema_.names, found.rows.X
    if len(names) == 1:
        yield _picture(
            "Fit",
            lambda ax: _line(ax, model, found),
            f"Predictive mean and band of two standard deviations over {names[0]}, with the rows.",
            "The band includes the noise.",
        )
        try:
            yield _picture(
                "Scalogram",
                lambda ax: scalogram(model, ax=ax),
                f"Amplitude of the fit by scale and place along {names[0]}.",
                "How much the function varies, where, and on which scale.",
            )
        except ValueError:
            return  # the weights of this model belong to no single scale
    if len(names) == 2 and min(np.ptp(X, axis=0)) > 0:
        height = min(HEIGHT, max(LOW, FRAME + ROOM * _ratio(X)))
        yield _picture(
            "Map of the prediction",
            lambda ax: _map(ax, model, found, "mean"),
            f"Map of the predictive mean over {names[0]} and {names[1]}, and rows as points.",
            "Points are observations in the same colours: those that stand out are far off.",
            height,
        )
        yield _picture(
            "Map of the standard deviation",
            lambda ax: _map(ax, model, found, "standard deviation"),
            f"Map of the predictive standard deviation over {names[0]} and {names[1]}.",
            "Of a new observation. Points are rows.",
            height,
        )


def _dependence(ax: Axes, each: Input, curve: Dependence, target: str) -> None:
    column = each.column
    if isinstance(column, CategoryColumn):
        names = column.categories[: len(curve.mean)]
        ax.errorbar(curve.mean, range(len(names)), xerr=2 * curve.std, fmt="o", color=BLUE)
        ax.set_yticks(range(len(names)), names)
        ax.set(xlabel=target, ylim=(len(names) - 0.5, -0.5))
        return
    x = curve.values[:, 0]
    predictive_band(ax, x, curve.mean, curve.std)
    ax.set(xlabel=column.names[0], ylabel=target, xlim=(x[0], x[-1]))
    if isinstance(column, DateColumn):
        ax.xaxis_date()
        for label in ax.get_xticklabels():
            label.set(rotation=30, horizontalalignment="right")


def _line(ax: Axes, model: TableRegressor, found: Evaluation) -> None:
    x = found.rows.X[:, 0]
    places = np.linspace(float(x.min()), float(x.max()), POINTS)
    p = model.predict_rows(places[:, None])
    predictive_band(ax, places, p.mean, p.std, data=(x[:SHOWN], found.y[:SHOWN]))
    ax.set(xlabel=model.schema_.names[0], ylabel=str(model.schema_.target))
    ax.set_ylim(usual_range(np.concatenate([p.mean - 2 * p.std, p.mean + 2 * p.std, found.y])))
    ax.legend(frameon=False)


def _map(ax: Axes, model: TableRegressor, found: Evaluation, what: str) -> None:
    X = found.rows.X
    sides = [np.linspace(column.min(), column.max(), PIXELS) for column in X.T]
    first, second = np.meshgrid(*sides)
    p = model.predict_rows(np.column_stack([first.ravel(), second.ravel()]))
    values = p.mean if what == "mean" else p.std
    colours, norm = "viridis" if what == "mean" else "magma", Normalize(*usual_range(values))
    mesh = ax.pcolormesh(
        first, second, values.reshape(first.shape), cmap=colours, norm=norm, rasterized=True
    )
    at, up, y = X[:ON_MAPS, 0], X[:ON_MAPS, 1], found.y[:ON_MAPS]
    if what == "mean":
        ax.scatter(at, up, s=14, c=y, cmap=colours, norm=norm, edgecolor="white", linewidth=0.4)
    else:
        ax.scatter(at, up, s=2, color="white", alpha=0.8)
    ax.set(xlabel=model.schema_.names[0], ylabel=model.schema_.names[1])
    sides_ratio, shrink = _ratio(X), 1.0
    if 1 / ELONGATED <= sides_ratio <= ELONGATED:
        ax.set_aspect("equal")
        shrink = min(1.0, sides_ratio)
    label = f"{what}: {model.schema_.target}"
    ax.figure.colorbar(mesh, ax=ax, label=label, pad=0.02, shrink=shrink)


def _ratio(X: Array) -> float:
    """The height of a map over its width."""
    return float(np.ptp(X[:, 1]) / np.ptp(X[:, 0]))


def _correlation(y: Array, mean: Array) -> str:
    if len(y) < 2 or not (np.ptp(y) > 0 and np.ptp(mean) > 0):
        return ""
    return f"Their correlation is {float(np.corrcoef(y, mean)[0, 1]):.3f}."


def _picture(
    title: str, draw: Callable[[Axes], object], text: str, note: str, height: float = HEIGHT
) -> Picture:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.subplots())
        content = io.BytesIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(content, format="svg", metadata=nothing)
    # As an image, the drawing can neither run anything nor fetch anything.
    code = base64.b64encode(content.getvalue()).decode()
    return Picture(title, f"data:image/svg+xml;base64,{code}", text.strip(), note)
