"""Pictures by which predictions are checked against what was observed. Nothing is computed here."""

from typing import TYPE_CHECKING

from rwf._types import Array
from rwf.diagnostics.plots.predictions import BLACK, BLUE, GREY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def predicted_and_actual(ax: "Axes", y: Array, mean: Array) -> "Axes":
    """Observed targets over predictive means, both of shape (n,), and where they agree."""
    ax.plot(mean, y, ".", color=BLUE, markersize=3, alpha=0.4, rasterized=True)
    ends = [min(float(mean.min()), float(y.min())), max(float(mean.max()), float(y.max()))]
    ax.plot(ends, ends, color=BLACK, linewidth=0.9)
    ax.set_xlabel("predicted")
    ax.set_ylabel("observed")
    return ax


def standardized_residuals(ax: "Axes", mean: Array, z: Array) -> "Axes":
    """Errors in standard deviations over predictive means, shape (n,), with lines at ±2."""
    ax.plot(mean, z, ".", color=BLUE, markersize=3, alpha=0.4, rasterized=True)
    ax.axhline(0.0, color=BLACK, linewidth=0.9)
    for level in (-2.0, 2.0):
        ax.axhline(level, color=VERMILION, linewidth=0.9, linestyle="--")
    ax.set_xlabel("predicted")
    ax.set_ylabel("error / predicted sd")
    return ax


def calibration(ax: "Axes", nominal: Array, observed: Array) -> "Axes":
    """The share of rows inside intervals over the share that should be, both of shape (levels,)."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.9, label="calibrated")
    ax.plot(nominal, observed, "o-", color=BLUE, markersize=3.5, linewidth=1.3, label="observed")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(0.0, 1.0)
    ax.set_aspect("equal")
    ax.set_xlabel("nominal coverage of intervals")
    ax.set_ylabel("observed coverage")
    ax.legend(frameon=False, loc="upper left")
    return ax
