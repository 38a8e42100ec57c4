r"""Synthetic signals whose truth is known: for the demo, for tests and for experiments.

The multi-step function is the paper's first experiment. A :class:`Sample` carries the noiseless
values beside the noisy ones, so that an error in f can be told from the noise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rwf.types import Array

FIVE_PLATEAUS = (-1.0, 1.2, -0.25, 1.2, 0.25)
SIX_PLATEAUS = (0.0, 1.0, -0.5, 0.75, -1.0, 0.5)


@dataclass(frozen=True)
class Sample:
    """Rows drawn from a known function: y = f(X) + noise."""

    X: Array  # (n, 1)
    y: Array  # (n,)
    f: Array  # (n,)


def step_function(x: Array, levels: Sequence[float] = FIVE_PLATEAUS) -> Array:
    r"""Plateaus of equal width on [0, 1]: :math:`f(x) = \ell_j` for j/k ≤ x < (j+1)/k.

    Outside [0, 1] the first and the last of the k levels go on.
    """
    edges = np.arange(1, len(levels)) / len(levels)
    return np.asarray(levels, dtype=np.float64)[np.digitize(x, edges)]


def multi_step(
    n: int,
    rng: np.random.Generator,
    noise: float = 0.05,
    levels: Sequence[float] = FIVE_PLATEAUS,
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
