r"""Estimates of the kernel's error from the drawn atoms at the rows at hand.

The bounds of :mod:`rwf.theory.bounds` hold for the worst measure with these constants. The spread
of the drawn atoms' terms at given rows gives the error there, and is far tighter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rwf._types import Array
from rwf.theory.atoms import AtomBlock, Model, atom_blocks
from rwf.theory.bounds import require_positive
from rwf.theory.constants import constants_of

BEYOND = 20  # bootstrap draws beyond the quantile: enough for an error of it of about a fifth of δ


@dataclass(frozen=True)
class KernelEstimate:
    """k̂ at all pairs of rows, and how far k may be, both of shape (n, n)."""

    value: Array
    half_width: Array


def kernel_error_bars(model: Model, X: Array, delta: float = 0.05) -> KernelEstimate:
    r"""k̂(x, y) ± h(x, y), with k(x, y) inside with probability 1 - δ, pair by pair.

    .. math:: h = \sqrt{\frac{2 \hat V \log(4/\delta)}{m}} + \frac{14\, B^2\log(4/\delta)}{3(m - 1)}

    with V̂ the sample variance of the atoms' products: the empirical Bernstein bound of Maurer and
    Pontil (2009), for independent draws with any number of atoms. Blocks share δ and add. For all
    pairs of n rows at once use δ/n².
    """
    require_positive(delta=delta)
    blocks = _several(model, X)
    log_term = float(np.log(4 * len(blocks) / delta))
    value = np.zeros((len(X), len(X)))
    half_width = np.zeros_like(value)
    for block in blocks:
        m, k = block.n_atoms, block.products()
        # m·a_i has mean k, so the variance of their mean is (m Σa² - k²)/(m - 1).
        variance = np.maximum(m * block.squares() - k**2, 0.0) / (m - 1)
        reach = block.prior_variance * constants_of(block.features).bound ** 2
        value += k
        half_width += np.sqrt(2 * variance * log_term) + 14 * reach * log_term / (3 * (m - 1))
    return KernelEstimate(value, half_width)


def sup_error(model: Model, X: Array, delta: float, *, rng: np.random.Generator) -> float:
    r"""The 1 - δ quantile of :math:`\max_{x,y}|\hat k - k|` over pairs of rows, for these atoms.

    A Gaussian multiplier bootstrap: the error field behaves as
    :math:`\sum_i g_i (a_i - \bar a)(x, y)` with standard normal g, of which the maximum is drawn
    20/δ times. It has the field's own correlations, which a union bound over pairs ignores
    (Chernozhukov, Chetverikov and Kato 2013). It is asymptotic in the number of atoms, and for
    independent draws; with scales and rows drawn in strata the true error is smaller.
    """
    require_positive(delta=delta)
    blocks = _several(model, X)
    draws = [_largest_deviation(blocks, rng) for _ in range(int(np.ceil(BEYOND / delta)))]
    return float(np.quantile(draws, 1 - delta))


def required_features(
    model: Model, X: Array, eps: float, delta: float = 0.1, *, rng: np.random.Generator
) -> int:
    r"""How many feature columns keep k̂ within ε of k at all pairs of rows of X.

    The error falls as D^(-1/2), so that :func:`sup_error` of the columns there are gives the D for
    any other error. A few hundred columns are enough for the estimate; the trend is not counted.

    Args:
        model: a feature map, a transformer, or a regressor with the random-features prior.
        X: the rows, in the model's units; time grows as n² times the number of columns.
        eps: error allowed. A regressor's kernel is in units of the variance of y.
        delta: probability that the largest error is larger nevertheless.
        rng: for the bootstrap.
    """
    require_positive(eps=eps)
    present = sum(block.Z.shape[0] * block.n_atoms for block in atom_blocks(model, X[:1]))
    return int(np.ceil(present * (sup_error(model, X, delta, rng=rng) / eps) ** 2))


def _largest_deviation(blocks: list[AtomBlock], rng: np.random.Generator) -> float:
    total = np.zeros((blocks[0].Z.shape[1],) * 2)
    for block in blocks:
        g = rng.normal(size=block.n_atoms)
        total += block.products(g - g.mean())
    return float(np.abs(total).max())


def _several(model: Model, X: Array) -> list[AtomBlock]:
    """The model's blocks, each with enough atoms for a variance."""
    blocks = atom_blocks(model, X)
    if not blocks or min(block.n_atoms for block in blocks) < 2:
        raise ValueError("an error is estimated from the spread of atoms: draw two or more.")
    return blocks
