"""Initial scales of the targets and their noise, in units of which all priors are given."""

from __future__ import annotations

import numpy as np

from rwf.data.rows import Block

CONSTANT = 1e-13  # deviation over magnitude below which targets are constant up to rounding
SMALLEST_NOISE = 1e-12  # in variances of y, far above rounding errors


def spread(rows: Block) -> float:
    """The variance of y, or one if y is constant."""
    y, share = rows.y[:, 0], rows.weights / rows.weights.sum()
    variance = float(share @ (y - share @ y) ** 2)
    return variance if variance > (CONSTANT * np.abs(y).max()) ** 2 else 1.0


def neighbour_noise(rows: Block) -> float:
    """σ² if f changed nowhere between neighbours: mostly too large, never far too small."""
    x, y, v = rows.X[:, 0], rows.y[:, 0], rows.weights
    starts = np.flatnonzero(np.append(True, np.diff(x) > 0))
    sizes = np.diff(np.append(starts, len(x)))
    weights = np.add.reduceat(v, starts)
    means = np.add.reduceat(v * y, starts) / weights
    within = float(v @ (y - np.repeat(means, sizes)) ** 2)
    between = float(np.sum(np.diff(means) ** 2 / (1.0 / weights[1:] + 1.0 / weights[:-1])))
    return max((within + between) / max(len(y) - 1, 1), SMALLEST_NOISE * spread(rows))
