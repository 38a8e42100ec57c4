r"""A long signal that is many things at once: a chirp, short bursts and two jumps, on [0, 1].

.. math::
    f(x) = \tfrac12 \sin 2\pi(20x + 600x^3)
         + \sum_{j=1}^{25} a_j\, e^{-(x - c_j)^2 / 2w_j^2} \cos 2\pi\nu_j(x - c_j)
         + \tfrac{6}{10}[x \ge 0.37] - \tfrac{9}{10}[x \ge 0.71].

The chirp goes from 20 to 1820 periods a unit, and bursts are 0.0006 to 0.01 wide. No single length
describes it, and 100 000 rows are just enough to see all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rwf._types import Array
from rwf.datasets import Sample

N_BURSTS = 25
NOISE = 0.1
JUMPS = {0.37: 0.6, 0.71: -0.9}
"""Heights of the jumps by their places."""


@dataclass(frozen=True)
class Bursts:
    """Cosines in Gaussian windows; all fields have one entry a burst.

    Args:
        centers: c, where windows are highest and cosines are one.
        widths: w, standard deviations of the windows.
        frequencies: ν, periods a unit.
        amplitudes: a.
    """

    centers: Array
    widths: Array
    frequencies: Array
    amplitudes: Array

    def __call__(self, x: Array) -> Array:
        total = np.zeros_like(x)
        for c, w, nu, a in zip(
            self.centers, self.widths, self.frequencies, self.amplitudes, strict=True
        ):
            total += a * np.exp(-0.5 * ((x - c) / w) ** 2) * np.cos(2 * np.pi * nu * (x - c))
        return total


def draw_bursts(rng: np.random.Generator) -> Bursts:
    return Bursts(
        centers=rng.uniform(0.0, 1.0, N_BURSTS),
        widths=10 ** rng.uniform(-3.2, -2.0, N_BURSTS),
        frequencies=rng.uniform(200.0, 1500.0, N_BURSTS),
        amplitudes=rng.uniform(0.5, 1.5, N_BURSTS),
    )


def chirp(x: Array) -> Array:
    wave: Array = 0.5 * np.sin(2 * np.pi * (20 * x + 600 * x**3))
    return wave


def jumps(x: Array) -> Array:
    steps: Array = np.sum([height * (x >= place) for place, height in JUMPS.items()], axis=0)
    return steps


def chirp_bursts(n: int, rng: np.random.Generator) -> Sample:
    """n rows, x uniform, in noise of standard deviation 0.1; the bursts are drawn too."""
    bursts = draw_bursts(rng)
    x = rng.uniform(0.0, 1.0, n)
    f = chirp(x) + bursts(x) + jumps(x)
    return Sample(X=x[:, None], y=f + NOISE * rng.standard_normal(n), f=f)
