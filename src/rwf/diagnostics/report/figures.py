"""The figures of a report, each an SVG image with alternative text."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from rwf._types import Array
from rwf.diagnostics.metrics import LEVELS
from rwf.diagnostics.plots import (
    calibration,
    learned_variances,
    local_scales,
    pit_histogram,
    predicted_and_actual,
    predictive_band,
    scalogram,
    standardized_residuals,
)
from rwf.diagnostics.report.evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rwf.estimators.table import TableRegressor

SHOWN = 3000  # most points of a scatter plot: more overlap, and make the page large
POINTS, PIXELS = 600, 80  # resolution of a line, and of each side of a map

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


def pictures(model: TableRegressor, found: Evaluation) -> Iterator[Picture]:
    """All figures that apply to this model."""
    some = slice(SHOWN)  # rows of a large table are in random order
    y, mean, z = found.y[some], found.mean[some], found.normal_scores[some]
    correlation = _correlation(found.y, found.mean)
    yield _picture(
        "Predicted and observed",
        lambda ax: predicted_and_actual(ax, y, mean),
        f"Scatter of observed over predicted values. {correlation}",
        "On the line, prediction and observation agree.",
    )
    beyond = float(np.mean(np.abs(found.normal_scores) > 2))
    yield _picture(
        "Residuals",
        lambda ax: standardized_residuals(ax, mean, z),
        f"Scatter of normal scores of errors. {beyond:.1%} are beyond two.",
        "About 95 % of the rows should lie between the dashed lines, evenly along the axis.",
    )
    observed = found.coverage(LEVELS)
    worst = int(np.argmax(np.abs(observed - LEVELS)))
    yield _picture(
        "Calibration",
        lambda ax: calibration(ax, np.array(LEVELS), observed),
        "Curve of observed over nominal coverage. They differ most at "
        f"{LEVELS[worst]:.0%}, where {observed[worst]:.1%} of the rows are covered.",
        "Above the line, intervals are too wide; below it, too narrow.",
    )
    yield _picture(
        "Probability integral transform",
        lambda ax: pit_histogram(ax, found.pit),
        "Histogram of predicted probabilities of values up to the observed one.",
        "Flat if the distributions are right: a hump means too wide, horns mean too narrow.",
    )
    yield from _of_inputs(model, found)


def _of_inputs(model: TableRegressor, found: Evaluation) -> Iterator[Picture]:
    """Pictures over the inputs, where there are one or two."""
    names, X = model.schema_.names, found.rows.X
    if len(names) == 1:
        yield _picture(
            "Fit",
            lambda ax: _line(ax, model, found),
            f"Predictive mean and band of two standard deviations over {names[0]}, with the rows.",
            "The band includes the noise.",
        )
    if len(names) == 2 and min(np.ptp(X, axis=0)) > 0:
        for index, what in enumerate(("mean", "standard deviation")):
            yield _picture(
                f"Map of the predictive {what}",
                lambda ax, index=index, what=what: _map(ax, model, X, index, what),  # type: ignore[misc]
                f"Map of the predictive {what} over {names[0]} and {names[1]}.",
                "",
            )
    parts: list[tuple[str, Callable[..., Axes], str]] = []
    if len(names) == 1:
        parts.append(("Scalogram", scalogram, "The amplitude of f by scale and place."))
    if len(names) == 2:
        parts.append(("Local scales", local_scales, "The dominant scale at each place."))
    parts.append(("Learned variances", learned_variances, "The prior deviation of atoms by scale."))
    for title, draw, note in parts:
        try:
            yield _picture(
                title,
                lambda ax, draw=draw: draw(model, ax=ax),  # type: ignore[misc]
                f"{title} of the model. {note}",
                note,
            )
        except ValueError:
            continue  # the weights of this model belong to no single scale


def _line(ax: Axes, model: TableRegressor, found: Evaluation) -> None:
    x = found.rows.X[:, 0]
    places = np.linspace(float(x.min()), float(x.max()), POINTS)
    p = model.predict_rows(places[:, None])
    predictive_band(ax, places, p.mean, p.std, data=(x[:SHOWN], found.y[:SHOWN]))
    ax.set(xlabel=model.schema_.names[0], ylabel=str(model.schema_.target))
    ax.legend(frameon=False)


def _map(ax: Axes, model: TableRegressor, X: Array, index: int, what: str) -> None:
    sides = [np.linspace(column.min(), column.max(), PIXELS) for column in X.T]
    first, second = np.meshgrid(*sides)
    p = model.predict_rows(np.column_stack([first.ravel(), second.ravel()]))
    values = (p.mean, p.std)[index]
    mesh = ax.pcolormesh(
        first, second, values.reshape(first.shape), cmap="cividis", rasterized=True
    )
    ax.figure.colorbar(mesh, ax=ax, label=f"{what} of {model.schema_.target}", pad=0.02)
    ax.set(xlabel=model.schema_.names[0], ylabel=model.schema_.names[1])


def _correlation(y: Array, mean: Array) -> str:
    if len(y) < 2 or not (np.ptp(y) > 0 and np.ptp(mean) > 0):
        return ""
    return f"Their correlation is {float(np.corrcoef(y, mean)[0, 1]):.3f}."


def _picture(title: str, draw: Callable[[Axes], object], text: str, note: str) -> Picture:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 3.9), layout="constrained")
        draw(figure.subplots())
        content = io.BytesIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(content, format="svg", metadata=nothing)
    # As an image, the drawing can neither run anything nor fetch anything.
    code = base64.b64encode(content.getvalue()).decode()
    return Picture(title, f"data:image/svg+xml;base64,{code}", text.strip(), note)
