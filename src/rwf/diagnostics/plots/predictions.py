"""Pictures of predictions, errors and calibration, in Okabe and Ito's colour-blind safe colours."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLACK = "#000000"
BLUE = "#0072B2"
GREEN = "#009E73"
GREY = "#8C8C8C"
VERMILION = "#D55E00"


def predictive_band(
    ax: "Axes",
    x: Array,
    mean: Array,
    std: Array,
    *,
    data: tuple[Array, Array] | None = None,
    truth: Array | None = None,
    label: str = "mean",
) -> "Axes":
    """A predictive mean with its ±2σ band, over the data and the true function if given.

    Inputs x are in increasing order. All arrays have shape (n,), but for the data, observed inputs
    and targets of shape (m,). The label is the mean's in the legend.
    """
    if data is not None:
        ax.plot(*data, ".", color=GREY, markersize=2.5, alpha=0.6, zorder=1, label="data")
    low, high = mean - 2 * std, mean + 2 * std
    ax.fill_between(x, low, high, color=BLUE, alpha=0.25, linewidth=0, zorder=2, label="±2σ")
    if truth is not None:
        ax.plot(x, truth, "--", color=VERMILION, linewidth=0.9, zorder=3, label="truth")
    ax.plot(x, mean, color=BLUE, linewidth=1.4, zorder=4, label=label)
    return ax


BOUND_STYLES = ((VERMILION, "-"), (VERMILION, "--"), (GREEN, "-"), (BLACK, ":"))  # in turn


def error_by_atoms(
    ax: "Axes",
    atoms: Array,
    errors: Array,
    quantile: Array,
    bounds: Mapping[str, Array],
    *,
    label: str = "observed",
) -> "Axes":
    """Observed errors against the number of atoms, under the bounds on them, both axes logarithmic.

    Errors of repeated draws have shape (repeats, n), their quantile and the bounds (n,).
    """
    for repeat in errors:
        ax.plot(atoms, repeat, ".", color=BLUE, markersize=2.5, alpha=0.25, zorder=2)
    ax.plot(atoms, quantile, color=BLUE, linewidth=1.6, zorder=4, label=label)
    for (name, values), (colour, dashes) in zip(bounds.items(), BOUND_STYLES, strict=False):
        ax.plot(atoms, values, dashes, color=colour, linewidth=1.3, zorder=3, label=name)
    ax.set(xscale="log", yscale="log")
    return ax


def importance_bars(ax: "Axes", names: Sequence[str], total: Array, error: Array) -> "Axes":
    """Total Sobol indices of columns with two standard errors, the largest on top."""
    order = np.argsort(total)
    ax.barh(
        [names[j] for j in order], total[order], xerr=2 * error[order], color=BLUE, ecolor=BLACK
    )
    ax.set(xlabel="total Sobol index", xlim=(0.0, None))
    return ax


def predicted_and_actual(ax: "Axes", y: Array, mean: Array) -> "Axes":
    """Observed targets over predictive means, both of shape (n,), with the line of equality."""
    ax.plot(mean, y, ".", color=BLUE, markersize=3, alpha=0.4, rasterized=True)
    ends = [min(float(mean.min()), float(y.min())), max(float(mean.max()), float(y.max()))]
    ax.plot(ends, ends, color=BLACK, linewidth=0.9)
    ax.set(xlabel="predicted", ylabel="observed")
    return ax


def standardized_residuals(ax: "Axes", mean: Array, z: Array) -> "Axes":
    """Errors as normal scores over predictive means, shape (n,), with lines at ±2."""
    ax.plot(mean, z, ".", color=BLUE, markersize=3, alpha=0.4, rasterized=True)
    ax.axhline(0.0, color=BLACK, linewidth=0.9)
    for level in (-2.0, 2.0):
        ax.axhline(level, color=VERMILION, linewidth=0.9, linestyle="--")
    ax.set(xlabel="predicted", ylabel="error, as a normal score")
    return ax


def calibration(ax: "Axes", nominal: Array, observed: Array) -> "Axes":
    """Observed over nominal coverage of intervals, both of shape (levels,)."""
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.9, label="calibrated")
    ax.plot(nominal, observed, "o-", color=BLUE, markersize=3.5, linewidth=1.3, label="observed")
    ax.set(xlim=(0.0, 1.0), ylim=(0.0, 1.0), aspect="equal")
    ax.set(xlabel="nominal coverage of intervals", ylabel="observed coverage")
    ax.legend(frameon=False, loc="upper left")
    return ax


def pit_histogram(ax: "Axes", pit: Array, bins: int = 20) -> "Axes":
    """Histogram of probability integral transforms, shape (n,), with the uniform density."""
    ax.hist(pit, [*np.linspace(0.0, 1.0, bins + 1)], density=True, color=BLUE, alpha=0.6)
    ax.axhline(1.0, color=BLACK, linewidth=0.9)
    ax.set(xlim=(0.0, 1.0), xlabel="predicted probability", ylabel="density of rows")
    return ax
