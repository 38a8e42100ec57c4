"""Pictures of what a model predicts: over a line, over a plane, or along one column."""

from typing import TYPE_CHECKING

from rwf._types import Array
from rwf.diagnostics.plots.predictions import BLUE, GREY

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def predictive_interval(
    ax: "Axes",
    x: Array,
    mean: Array,
    low: Array,
    high: Array,
    *,
    data: tuple[Array, Array] | None = None,
) -> "Axes":
    """A predictive mean with its 95 % interval over increasing inputs, and the data if given."""
    if data is not None:
        ax.plot(*data, ".", color=GREY, markersize=2.5, alpha=0.6, zorder=1, label="data")
    ax.fill_between(
        x, low, high, color=BLUE, alpha=0.25, linewidth=0, zorder=2, label="95 % interval"
    )
    ax.plot(x, mean, color=BLUE, linewidth=1.4, zorder=3, label="mean")
    ax.legend(frameon=False)
    return ax


def mean_map(
    ax: "Axes", first: Array, second: Array, mean: Array, *, label: str, data: Array
) -> "Axes":
    """Means, shape (second, first), as colours, with dots where there are data, shape (n, 2)."""
    mesh = ax.pcolormesh(first, second, mean, cmap="viridis", shading="nearest", rasterized=True)
    ax.plot(*data.T, ".", color="white", markersize=1.0, alpha=0.5, rasterized=True)
    ax.set(xlim=(first[0], first[-1]), ylim=(second[0], second[-1]))
    ax.figure.colorbar(mesh, ax=ax, label=label, pad=0.02)
    return ax


def dependence_band(ax: "Axes", values: Array, mean: Array, std: Array) -> "Axes":
    """The dependence on one column, with two standard deviations."""
    ax.fill_between(values, mean - 2 * std, mean + 2 * std, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(values, mean, color=BLUE, linewidth=1.4)
    return ax
