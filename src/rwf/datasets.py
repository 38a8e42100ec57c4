r"""Simulated signals with known truth, for the demo, tests and experiments.

The multi-step function is the paper's first experiment; Blocks, Bumps, HeaviSine and Doppler are
the four of Donoho and Johnstone (1994), Ideal spatial adaptation by wavelet shrinkage, table 1. A
:class:`Sample` has the noiseless values beside the noisy ones, so that the error in f can be
separated from the noise. :func:`diamonds` is a table with categories.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rwf._types import Array

FIVE_PLATEAUS = (-1.0, 1.2, -0.25, 1.2, 0.25)
SIX_PLATEAUS = (0.0, 1.0, -0.5, 0.75, -1.0, 0.5)
"""Levels of the paper's step function, and of a variant with six plateaus of equal width."""


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a known function: y = f(X) + noise."""

    X: Array  # (n, 1)
    y: Array  # (n,)
    f: Array  # (n,)


def step_function(x: Array, levels: Sequence[float] = FIVE_PLATEAUS) -> Array:
    r"""Plateaus of equal width on [0, 1]: :math:`f(x) = \ell_j` for j/k ≤ x < (j+1)/k.

    Outside [0, 1] the first and the last of the k levels continue.
    """
    edges = np.arange(1, len(levels)) / len(levels)
    return np.asarray(levels, dtype=np.float64)[np.digitize(x, edges)]


def multi_step(
    n: int, rng: np.random.Generator, noise: float = 0.05, levels: Sequence[float] = FIVE_PLATEAUS
) -> Sample:
    """n rows of :func:`step_function`, x uniform on [0, 1], plus Gaussian noise.

    Args:
        n: number of rows.
        rng: the source of x and of the noise.
        noise: standard deviation of the noise.
        levels: the heights of the plateaus, left to right.
    """
    if n < 1:
        raise ValueError(f"n={n} leaves no rows. Ask for at least one.")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise={noise} is no standard deviation. Pass a finite number ≥ 0.")
    if len(levels) == 0:
        raise ValueError("levels is empty. Pass at least one height, e.g. FIVE_PLATEAUS.")
    x = rng.uniform(0.0, 1.0, n)
    f = step_function(x, levels)
    return Sample(X=x[:, None], y=f + noise * rng.standard_normal(n), f=f)


PLACES = np.array([0.10, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])
"""Where Blocks jumps and Bumps peaks: table 1, as all numbers below."""

JUMPS = np.array([4.0, -5.0, 3.0, -4.0, 5.0, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])
HEIGHTS = np.array([4.0, 5.0, 3.0, 4.0, 5.0, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
WIDTHS = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])


def blocks(x: Array) -> Array:
    r""":math:`\sum_j h_j\, (1 + \operatorname{sgn}(x - p_j)) / 2`: eleven jumps."""
    steps: Array = (1 + np.sign(x[:, None] - PLACES)) / 2 @ JUMPS
    return steps


def bumps(x: Array) -> Array:
    r""":math:`\sum_j h_j\, (1 + |x - p_j| / w_j)^{-4}`: eleven peaks of different widths."""
    peaks: Array = (1 + np.abs(x[:, None] - PLACES) / WIDTHS) ** -4.0 @ HEIGHTS
    return peaks


def heavisine(x: Array) -> Array:
    r""":math:`4 \sin 4 \pi x - \operatorname{sgn}(x - 0.3) - \operatorname{sgn}(0.72 - x)`."""
    wave: Array = 4 * np.sin(4 * np.pi * x) - np.sign(x - 0.3) - np.sign(0.72 - x)
    return wave


def doppler(x: Array) -> Array:
    r""":math:`\sqrt{x (1 - x)}\, \sin(2.1 \pi / (x + 0.05))`: ever slower, from left to right."""
    chirp: Array = np.sqrt(x * (1 - x)) * np.sin(2.1 * np.pi / (x + 0.05))
    return chirp


DONOHO_JOHNSTONE: Mapping[str, Callable[[Array], Array]] = MappingProxyType(
    {"blocks": blocks, "bumps": bumps, "heavisine": heavisine, "doppler": doppler}
)
"""The four functions on [0, 1] by their names, not scaled."""


def donoho_johnstone(
    name: str, rng: np.random.Generator, n: int = 2048, snr: float = 7.0, *, regular: bool = True
) -> Sample:
    """n rows of one of :data:`DONOHO_JOHNSTONE` in noise of standard deviation one.

    The function is scaled to standard deviation ``snr`` over the points i/n, on either design, so
    that irregular samples are all of one function.

    Args:
        name: "blocks", "bumps", "heavisine" or "doppler".
        rng: the source of the noise, and of x on an irregular design.
        n: number of rows.
        snr: ratio of the standard deviations of function and noise.
        regular: x = 1/n, 2/n, …, 1; else x is uniform on [0, 1], in increasing order.
    """
    if name not in DONOHO_JOHNSTONE:
        raise ValueError(f"no function {name!r}: use one of {', '.join(DONOHO_JOHNSTONE)}.")
    if n < 2:
        raise ValueError(f"n={n} leaves no function to scale. Ask for at least two rows.")
    function = DONOHO_JOHNSTONE[name]
    grid = np.arange(1, n + 1) / n
    x = grid if regular else np.sort(rng.uniform(0.0, 1.0, n))
    f = snr / function(grid).std() * function(x)
    return Sample(X=x[:, None], y=f + rng.standard_normal(n), f=f)


CUTS = ("Fair", "Good", "Very Good", "Premium", "Ideal")
COLORS = ("J", "I", "H", "G", "F", "E", "D")
CLARITIES = ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF")
POPULAR = (0.3, 0.31, 0.4, 0.5, 0.7, 0.9, 1.0, 1.01, 1.2, 1.5, 2.0)  # carats
REMEASURED = 0.2  # share of stones that are offered twice


def diamonds(n: int, rng: np.random.Generator, noise: float = 0.1) -> dict[str, NDArray[Any]]:
    """The columns of n stones with skewed prices, categories and near-duplicates.

    It has the columns of the well-known table of diamonds. A fifth of the stones are offered twice,
    with lengths that differ by a hundredth of a millimetre, and a price of their own.

    Args:
        n: number of rows.
        rng: the source of all draws.
        noise: standard deviation of the logarithm of the price.
    """
    carat = np.where(
        rng.random(n) < 0.5, rng.choice(POPULAR, n), np.exp(rng.normal(-0.4, 0.55, n)).clip(0.2, 4)
    )
    same, offers = np.arange(n), np.flatnonzero(rng.random(n) < REMEASURED)
    same[offers] = rng.integers(n, size=len(offers))
    cut, color, clarity = (rng.integers(len(c), size=n) for c in (CUTS, COLORS, CLARITIES))
    depth = rng.normal(61.7, 1.4 - 0.15 * cut, n)
    length = 6.45 * np.cbrt(carat * 61.7 / depth) * np.exp(0.01 * rng.normal(size=n))
    stone = np.column_stack([carat, depth, length, rng.normal(57.5, 2.2, n), cut, color, clarity])
    carat, depth, length, table, cut, color, clarity = stone[same].T
    grades = 0.03 * cut + (0.04 + 0.01 * carat) * color + (0.09 + 0.02 * carat) * clarity
    worth = 7.6 + 1.85 * np.log(carat) + 0.12 * (carat >= 1.0) + grades
    x = np.round(length, 2) + 0.01 * rng.integers(-1, 2, n)
    return {
        "carat": np.round(carat, 2),
        "cut": np.array(CUTS)[cut.astype(int)],
        "color": np.array(COLORS)[color.astype(int)],
        "clarity": np.array(CLARITIES)[clarity.astype(int)],
        "depth": np.round(depth, 1),
        "table": np.round(table),
        "x": np.round(x, 2),
        "y": np.round(x + 0.01 * rng.integers(-2, 3, n), 2),
        "z": np.round(length * depth / 100, 2),
        "price": np.round(np.exp(worth + noise * rng.standard_normal(n))),
    }
