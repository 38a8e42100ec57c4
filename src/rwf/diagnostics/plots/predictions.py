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


def usual_range(values: Array) -> tuple[float, float]:
    """A range for an axis, which a few far values do not stretch.

    It ends at most three quarters of the distance of the 5 % and 95 % quantiles beyond them.
    """
    low, high = float(values.min()), float(values.max())
    first, last = np.quantile(values, [0.05, 0.95]).tolist()
    if last > first:
        reach = 0.75 * (last - first)
        low, high = max(low, first - reach), min(high, last + reach)
    margin = 0.04 * (high - low) or 1.0
    return low - margin, high + margin


def predicted_and_actual(ax: "Axes", y: Array, mean: Array) -> "Axes":
    """Observed targets over predictive means, both of shape (n,), with the line of equality."""
    ends = usual_range(np.concatenate([y, mean]))
    _points_within(ax, mean, y, ends, ends)
    ax.plot(ends, ends, color=BLACK, linewidth=0.9)
    ax.set(xlabel="predicted", ylabel="observed", aspect="equal")
    return ax


def standardized_residuals(ax: "Axes", mean: Array, z: Array) -> "Axes":
    """Errors as normal scores over predictive means, shape (n,), with lines at ±2."""
    _points_within(ax, mean, z, usual_range(mean), usual_range(np.append(z, [-3.0, 3.0])))
    ax.axhline(0.0, color=BLACK, linewidth=0.9)
    for level in (-2.0, 2.0):
        ax.axhline(level, color=VERMILION, linewidth=0.9, linestyle="--")
    ax.set(xlabel="predicted", ylabel="error, as a normal score")
    return ax


def _points_within(
    ax: "Axes", x: Array, y: Array, across: tuple[float, float], up: tuple[float, float]
) -> None:
    """Points on axes of a given range; those beyond it are triangles at its edge."""
    inside = (x >= across[0]) & (x <= across[1]) & (y >= up[0]) & (y <= up[1])
    alpha = 0.7 if len(x) < 300 else 0.4
    size = 5 if len(x) < 300 else 3
    ax.plot(
        x[inside], y[inside], ".", color=BLUE, markersize=size, alpha=alpha, rasterized=len(x) > 300
    )
    ax.set(xlim=across, ylim=up)
    if not inside.all():
        at_edge = np.clip(x[~inside], *across), np.clip(y[~inside], *up)
        label = f"{(~inside).sum():,} beyond the axes"
        ax.plot(*at_edge, "^", color=VERMILION, markersize=6, clip_on=False, label=label)
        ax.legend(frameon=False, loc="upper left")


def calibration(ax: "Axes", nominal: Array, observed: Array, n_rows: int | None = None) -> "Axes":
    """Observed over nominal coverage of intervals, both of shape (levels,).

    With the number of rows, a band shows what counting so many of them leaves to chance.
    """
    ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.9, label="calibrated")
    if n_rows is not None:
        level = np.linspace(0.0, 1.0, 101)
        chance = 2.0 * np.sqrt(level * (1.0 - level) / n_rows)
        ax.fill_between(
            level,
            level - chance,
            level + chance,
            color=GREY,
            alpha=0.2,
            linewidth=0,
            label="chance",
        )
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
