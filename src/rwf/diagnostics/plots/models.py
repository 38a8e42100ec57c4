"""Pictures of a model's decomposition over scale and place, and of its learned prior.

Each draws one output of a regressor, at places x in increasing order or over the range of its
atoms, on the Axes given or the current ones. All but :func:`prior_deviations` need the prior
"multiscale", "adaptive" or "random_features".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.diagnostics import decomposition
from rwf.diagnostics.plots.predictions import BLACK, BLUE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.collections import QuadMesh
    from matplotlib.colors import Normalize

    from rwf.estimators.base import FeatureRegressor

POINTS, PIXELS = 600, 160  # default resolution of a line and of a map: about the pixels of a figure
DECADES = 1.5  # decades of amplitude that the colours of a scalogram span: less is not visible in f


def scalogram(
    model: FeatureRegressor, x: Array | None = None, *, output: int = 0, ax: Axes | None = None
) -> Axes:
    """The amplitude of f by scale and place, for one input column.

    The colour is the amplitude that atoms of a scale have together around a place, the root of
    their energy, on a logarithmic scale; fine scales are above, as in spectra of wavelets.
    """
    from matplotlib.colors import LogNorm

    _check_columns(model, 1, "a scalogram")
    places = _line(model) if x is None else np.asarray(x, dtype=np.float64)
    found = decomposition.scalogram(model.model_, [places], output)
    amplitude = np.sqrt(found.energy)
    top = float(amplitude.max())
    bottom = top * 10.0**-DECADES
    ax = _axes(ax)
    mesh = ax.pcolormesh(
        _edges(places),
        found.edges,
        np.maximum(amplitude, bottom),
        norm=LogNorm(bottom, top),
        cmap="magma",
        rasterized=True,
    )
    _colour_bar(ax, mesh, "amplitude (units of y)", extend="min")
    seen = np.flatnonzero((amplitude > bottom).any(axis=1))
    ax.set_ylim(found.edges[seen[-1] + 1], found.edges[seen[0]])
    return _scale_and_place(model, ax, places)


def local_scales(
    model: FeatureRegressor,
    x: tuple[Array, Array] | None = None,
    *,
    output: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """The scale that dominates f at each place of a plane, in units of X, as a map.

    It is the geometric mean of scales, weighted by their energy around the place. ``x`` has the
    places along both input columns.
    """
    from matplotlib.colors import LogNorm

    _check_columns(model, 2, "a map of local scales")
    sides = _sides(model) if x is None else x
    values = decomposition.scalogram(model.model_, sides, output).local_scale
    norm = LogNorm(float(values.min()), float(values.max()))
    return _map(model, _axes(ax), sides, values, "viridis", "local scale (units of X)", norm)


def prior_deviations(
    model: FeatureRegressor,
    x: Array | tuple[Array, Array] | None = None,
    *,
    output: int = 0,
    ax: Axes | None = None,
) -> Axes:
    """The prior standard deviation of f about its trend, in units of y, as a line or a map.

    For one or two input columns; ``x`` has the places along each.
    """
    label = "prior sd of f (units of y)"
    if model.n_features_in_ != 1:
        _check_columns(model, 2, "a map of the prior")
        sides = _sides(model) if x is None else (np.asarray(x[0]), np.asarray(x[1]))
        values = decomposition.prior_deviation(model.model_, decomposition.grid(sides), output)
        return _map(model, _axes(ax), sides, values, "cividis", label)
    places = _line(model) if x is None else np.asarray(x, dtype=np.float64)
    values = decomposition.prior_deviation(model.model_, places[:, None], output)
    ax = _axes(ax)
    ax.fill_between(places, 0.0, values, color=BLUE, alpha=0.2, linewidth=0)
    ax.plot(places, values, color=BLUE, linewidth=1.2)
    ax.set(xlim=(places[0], places[-1]), xlabel=_name(model, 0), ylabel=label)
    ax.set_ylim(bottom=0.0)
    return ax


def learned_variances(model: FeatureRegressor, *, output: int = 0, ax: Axes | None = None) -> Axes:
    """The prior standard deviation of the height of atoms, by scale and cell, in units of y.

    One input column and cells give an image over scale and place; else every cell, or every block
    where there are none, is a point over its scale, and a bar their geometric mean.
    """
    rows = decomposition.variances_by_scale(decomposition.atom_table(model.model_, output))
    ax = _axes(ax)
    label = "prior sd of atoms (units of y)"
    if model.n_features_in_ == 1 and any(len(row.heights) > 1 for row in rows):
        _draw_cells(ax, rows, label)
        return _scale_and_place(model, ax, _line(model))
    for row in rows:
        middle = float(np.sqrt(row.low * row.high))
        (cells,) = ax.plot(
            np.full(len(row.heights), middle), row.heights, ".", color=BLUE, alpha=0.5
        )
        mean = float(np.exp(np.mean(np.log(row.heights))))
        (bar,) = ax.plot([row.low, row.high], [mean, mean], color=BLACK, linewidth=1.5)
    if any(len(row.heights) > 1 for row in rows):
        cells.set_label("cell")
        bar.set_label("geometric mean of an octave")
        ax.legend(frameon=False)
    ax.set(xscale="log", yscale="log", xlabel="scale (units of X)", ylabel=label)
    _plain_numbers(ax.xaxis, *ax.get_xlim())
    _plain_numbers(ax.yaxis, *ax.get_ylim())
    return ax


def _draw_cells(ax: Axes, rows: list[decomposition.VarianceRow], label: str) -> None:
    from matplotlib.colors import LogNorm

    heights = np.concatenate([row.heights for row in rows])
    top, least = float(heights.max()), float(heights.min())
    bottom = max(least, 1e-3 * top)
    norm = LogNorm(bottom, top)
    for row in rows:
        shown = np.maximum(row.heights, bottom)[None]
        scales = np.array([row.low, row.high])
        mesh = ax.pcolormesh(row.edges, scales, shown, norm=norm, cmap="magma", rasterized=True)
    _colour_bar(ax, mesh, label, extend="min" if least < bottom else "neither")


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.gca()


def _check_columns(model: FeatureRegressor, count: int, what: str) -> None:
    if model.n_features_in_ != count:
        raise ValueError(
            f"{what} is for {count} input column{'s' * (count > 1)}, and X had "
            f"{model.n_features_in_}: see predict and prior_variances_ for numbers."
        )


def _name(model: FeatureRegressor, column: int) -> str:
    """The name of a column of X."""
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        return str(names[column])
    return "x" if model.n_features_in_ == 1 else f"x{column + 1}"


def _line(model: FeatureRegressor) -> Array:
    low, high = decomposition.usual_range(model.model_)[0]
    return np.linspace(float(low), float(high), POINTS)


def _sides(model: FeatureRegressor) -> tuple[Array, Array]:
    low, high = decomposition.usual_range(model.model_).T
    first, second = np.linspace(low, high, PIXELS).T
    return first, second


def _edges(x: Array) -> Array:
    """Edges of pixels around places."""
    middles = (x[1:] + x[:-1]) / 2
    return np.concatenate([[2 * x[0] - middles[0]], middles, [2 * x[-1] - middles[-1]]])


def _colour_bar(ax: Axes, mesh: QuadMesh, label: str, extend: str = "neither") -> None:
    bar = ax.figure.colorbar(mesh, ax=ax, label=label, extend=extend, pad=0.02)
    from matplotlib.colors import LogNorm

    if isinstance(mesh.norm, LogNorm):
        _plain_numbers(bar.ax.yaxis, *mesh.get_clim())


def _plain_numbers(axis: Axis, low: float, high: float) -> None:
    """Ticks at 1, 2, 5, … within a few decades; within one, wherever a linear axis has them."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    ticks = LogLocator(subs=(1.0, 2.0, 5.0) if high < 1e3 * low else (1.0,))
    axis.set_major_locator(MaxNLocator(6) if high < 10 * low else ticks)
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _scale_and_place(model: FeatureRegressor, ax: Axes, places: Array) -> Axes:
    """Axes of an image over scale and place, fine scales above."""
    name = _name(model, 0)
    ax.set(xlim=(places[0], places[-1]), yscale="log", xlabel=name)
    ax.set_ylabel(f"scale (units of {name})")
    if not ax.yaxis_inverted():
        ax.invert_yaxis()
    _plain_numbers(ax.yaxis, *sorted(ax.get_ylim()))
    return ax


def _map(
    model: FeatureRegressor,
    ax: Axes,
    sides: tuple[Array, Array],
    values: Array,
    colours: str,
    label: str,
    norm: Normalize | None = None,
) -> Axes:
    """Values at all pairs of places, as an image in the units of X."""
    table = values.reshape(len(sides[1]), len(sides[0]))
    edges = _edges(sides[0]), _edges(sides[1])
    mesh = ax.pcolormesh(*edges, table, norm=norm, cmap=colours, rasterized=True)
    _colour_bar(ax, mesh, label)
    ax.set(xlabel=_name(model, 0), ylabel=_name(model, 1))
    return ax
