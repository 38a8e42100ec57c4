"""A quick look at a map: its mean and its standard deviation, side by side."""

from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_PIXELS = 1200  # of a side; larger maps are thinned
SIDE = 3.8  # of a panel, in inches
SHOWN = (0.002, 0.998)  # quantiles between which colours change
TICKS = 5  # most intervals between ticks of x: projected coordinates have many digits
MISSING = "#D9D9D9"


def map_panels(
    x: Array,
    y: Array,
    mean: Array,
    sd: Array,
    *,
    units: str = "",
    labels: tuple[str, str] = ("x", "y"),
) -> "Figure":
    """Mean and standard deviation of a map with their colour bars; missing cells are grey.

    Args:
        x: coordinates of the columns, shape (columns,), or of cells, shape (rows, columns).
        y: of the rows, or of cells.
        mean: shape (rows, columns); NaN where it is missing.
        sd: the same.
        units: of the mean.
        labels: of x and y.
    """
    from matplotlib.figure import Figure

    rows, columns = (max(1, -(-size // MOST_PIXELS)) for size in mean.shape)
    x = x[::columns] if x.ndim == 1 else x[::rows, ::columns]
    y = y[::rows] if y.ndim == 1 else y[::rows, ::columns]
    aspect = float(np.clip(np.ptp(y) / max(np.ptp(x), 1e-300), 0.3, 2.0))
    figure = Figure(figsize=(2 * (SIDE + 1), SIDE * aspect + 0.6), layout="constrained")
    panels = (("mean", mean, "viridis"), ("standard deviation", sd, "magma"))
    for ax, (title, values, colours) in zip(figure.subplots(1, 2), panels, strict=True):
        shown = np.ma.masked_invalid(values[::rows, ::columns])
        low, high = np.quantile(shown.compressed(), SHOWN) if shown.count() else (0.0, 1.0)
        mesh = ax.pcolormesh(
            x, y, shown, cmap=colours, vmin=low, vmax=high, shading="nearest", rasterized=True
        )
        ax.set_facecolor(MISSING)
        ax.set(title=title, xlabel=labels[0], ylabel=labels[1])
        ax.locator_params(axis="x", nbins=TICKS)
        ax.ticklabel_format(useOffset=False, style="plain")
        figure.colorbar(mesh, ax=ax, label=units, extend="both")
    return figure
