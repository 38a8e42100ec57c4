r"""How far a kernel is from stationary: the share that no function of x - y explains.

.. math:: \mathrm{index} = \frac{\sum_h \mathrm{Var}_x\, k(x, x + h)}{\sum_h E_x\, k(x, x + h)^2}

It is zero where k depends on x - y alone, and otherwise the share of the mean square that the best
stationary kernel, the mean over places, leaves. The mean over x is that of the given rows, so the
index differs between rows in the interior of a bounded measure and rows up to its edge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from rwf._types import Array
from rwf.kernels import ExpectedKernel
from rwf.theory.atoms import Model, atom_blocks, is_model

HALVINGS = 6  # lags along every column are ½, ¼, …, 1/64 of the rows' span, and zero

VANISHES = "the kernel is zero at these rows: give rows where the atoms are."


class Kernel(Protocol):
    """k at all pairs of rows: an :class:`~rwf.kernels.ExpectedKernel`, or a function."""

    def __call__(self, X: Array, Y: Array) -> Array: ...


@dataclass(frozen=True)
class StationarityIndex:
    """The index, and the standard error that it has because atoms are random.

    Args:
        value: between 0 and 1; estimated without bias from random atoms, it may be just below 0.
        standard_error: zero for a kernel that is known exactly.
    """

    value: float
    standard_error: float


def stationarity_index(model: Model | Kernel, X: Array) -> StationarityIndex:
    r"""The index of an expected kernel, exactly, or of a model's, from its atoms.

    k̂ varies from place to place by chance. Sums over pairs of *different* atoms are free of that:
    with :math:`a_i` the term of atom i, :math:`E\langle a_i, a_j\rangle = \langle E a_i, E a_j
    \rangle` for i ≠ j. The standard error is that of the atoms' influence, which for a stationary
    kernel is on the large side. Scales drawn in strata are not quite independent, which matters for
    a few atoms only.

    Args:
        model: a kernel (X, Y) -> (n, m), a feature map, a transformer, or a regressor with the
            random-features prior; its prior variances count, its trend does not.
        X: rows, shape (n, d); pairs stay within their bounding box.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or len(X) < 2:
        raise ValueError(f"X has shape {X.shape}: give two or more rows, (n, d), to compare.")
    return _of_atoms(model, X) if is_model(model) else _of_kernel(cast(Kernel, model), X)


def _pairs(X: Array) -> Iterator[tuple[Array, Array]]:
    """Rows x and x + h for every lag h, as far as both are in the bounding box of X."""
    top, spans = X.max(axis=0), np.ptp(X, axis=0)
    steps = [np.zeros(X.shape[1])]
    for column in np.flatnonzero(spans):
        for j in range(1, HALVINGS + 1):
            step = np.zeros(X.shape[1])
            step[column] = spans[column] / 2**j
            steps.append(step)
    for step in steps:
        inside = X[(X + step <= top).all(axis=1)]
        if len(inside) > 1:
            yield inside, inside + step


def _of_kernel(kernel: Kernel, X: Array) -> StationarityIndex:
    def paired(x: Array, y: Array) -> Array:
        if isinstance(kernel, ExpectedKernel):
            return kernel.paired(x, y)
        return np.diagonal(kernel(x, y))

    values = [paired(x, y) for x, y in _pairs(X)]
    total = sum(float(np.mean(k**2)) for k in values)
    if total == 0:
        raise ValueError(VANISHES)
    return StationarityIndex(sum(float(np.var(k)) for k in values) / total, 0.0)


def _of_atoms(model: Model, X: Array) -> StationarityIndex:
    varying, whole = np.zeros(1), np.zeros(1)  # per atom: its term times all others
    for x, y in _pairs(X):
        blocks = atom_blocks(model, np.vstack([x, y]))
        terms = [np.einsum("cni,cni->ni", b.Z[:, : len(x)], b.Z[:, len(x) :]) for b in blocks]
        varying = varying + _with_others([a - a.mean(axis=0) for a in terms]) / len(x)
        whole = whole + _with_others(terms) / len(x)
    total = np.sum(whole)
    if not total > 0:
        raise ValueError(VANISHES)
    index = np.sum(varying) / total
    influence = 2 * (varying - index * whole) / total
    sizes = [block.n_atoms for block in blocks]
    parts = np.split(influence, np.cumsum(sizes)[:-1])
    variance = sum(len(part) * np.var(part, ddof=1) for part in parts)
    return StationarityIndex(float(index), float(np.sqrt(variance)))


def _with_others(terms: list[Array]) -> Array:
    """⟨a_i, Σ_j a_j⟩ over the other atoms j, free of bias for i's own block of m, shape (Σm,)."""
    everything = sum(a.sum(axis=1) for a in terms)
    parts = []
    for a in terms:
        own = a.sum(axis=1)
        m = a.shape[1]
        # m terms stand for the block's kernel, of which m - 1 are not i's own.
        others = (own @ a - np.einsum("ni,ni->i", a, a)) * m / (m - 1)
        parts.append((everything - own) @ a + others)
    return np.concatenate(parts)
