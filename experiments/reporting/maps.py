"""Maps of a block that was withheld: the truth, the prediction of a method, and its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from experiments.data.tasks import problem, unit
from experiments.runner.methods import make
from rwf._types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARGIN = 0.4
"""How much of the training rows around the block is shown, as a share of its sides."""


@dataclass(frozen=True)
class BlockMap:
    """Predictions for a withheld block of a gridded table and its surroundings.

    Args:
        x, y: the coordinates of the grid, increasing, shapes (k,) and (m,).
        truth, mean, std: shape (m, k); not a number where the table has no row.
        low, high: opposite corners of the block.
        unit: of the last three.
    """

    x: Array
    y: Array
    truth: Array
    mean: Array
    std: Array
    low: Array
    high: Array
    unit: str | None


def block_map(task: str, method: str, split: int) -> BlockMap:
    """Fit the method to the rows outside the block, and predict all rows that are shown."""
    table, rows = problem(task, split)
    fitted = make(method, {}, split)
    fitted.fit(table.X[rows.train], table.y[rows.train])
    low, high = table.X[rows.test].min(axis=0), table.X[rows.test].max(axis=0)
    margin = MARGIN * (high - low)
    shown = np.all(np.abs(table.X - (low + high) / 2) <= (high - low) / 2 + margin, axis=1)
    X = table.X[shown]
    x, column = np.unique(X[:, 0], return_inverse=True)
    y, line = np.unique(X[:, 1], return_inverse=True)

    def on_grid(values: Array) -> Array:
        grid = np.full((len(y), len(x)), np.nan)
        grid[line, column] = values
        return grid

    mean, std = fitted.predict(X)
    grids = on_grid(table.y[shown]), on_grid(mean), on_grid(std)
    return BlockMap(x, y, *grids, low, high, unit(task))


def draw_map(found: BlockMap) -> Figure:
    """Four panels: truth and mean on one scale of colours, standard deviation, and error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    (truth, mean), (std, error) = figure.subplots(2, 2, sharex=True, sharey=True)
    heights = (float(np.nanmin(found.truth)), float(np.nanmax(found.truth)))
    errors = found.mean - found.truth
    largest = float(np.nanquantile(np.abs(errors), 0.995))  # a few cells would bleach all others
    _panel(truth, found, found.truth, "truth", "viridis", heights)
    _panel(mean, found, found.mean, "mean", "viridis", heights)
    _panel(std, found, found.std, "standard deviation", "magma", (0.0, float(np.nanmax(found.std))))
    _panel(error, found, errors, "mean − truth", "RdBu_r", (-largest, largest))
    return figure


def _panel(
    ax: Axes, found: BlockMap, values: Array, title: str, colours: str, ends: tuple[float, float]
) -> Axes:
    """One grid in the given colours, with the block's outline."""
    from matplotlib.patches import Rectangle

    image = ax.pcolormesh(found.x, found.y, values, cmap=colours, vmin=ends[0], vmax=ends[1])
    sides = found.high - found.low
    outline = Rectangle((found.low[0], found.low[1]), sides[0], sides[1], fill=False, color="0.7")
    ax.add_patch(outline)
    ax.set_aspect("equal")
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax, label=found.unit or "")
    return ax
