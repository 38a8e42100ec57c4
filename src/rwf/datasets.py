r"""Simulated signals with known truth, for the demo, tests and experiments.

The multi-step function is the paper's first experiment; Blocks, Bumps, HeaviSine and Doppler are
the four of Donoho and Johnstone (1994), Ideal spatial adaptation by wavelet shrinkage, table 1. A
:class:`Sample` has the noiseless values beside the noisy ones, so that the error in f can be
separated from the noise.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

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
