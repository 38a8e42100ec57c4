r"""Which columns to keep: greedy forwards, then greedy backwards, from the moments alone.

The posterior mean m of all columns is where :math:`(w-m)^\top A\,(w-m)` vanishes, with
:math:`A = Z^\top Z/\sigma^2 + \Lambda^{-1}`. Its minimum over weights that are zero outside a set
S is the posterior mean of the model that has the columns S only, and the sub-block of A belongs to
that model. Forwards, the column is added that lowers the minimum most, by pivoted Cholesky; when
there are more columns than needed, the column whose removal raises it least is dropped, again and
again. Forwards alone kept 6 to 26 % more columns for the same change, on four signals; backwards
alone, from all thousand columns, took over ten times as long and was no better.

What is asked of S is said in the data's own terms: the mean square change of f over the rows,
:math:`(m - w)^\top Z^\top Z\,(m - w)/n`, is exact, and needs no rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rwf.factorization import factor_matrix
from rwf.types import Array, BoolArray, IntArray

REDUNDANT = 1e-9
"""A column with less than this share of its length outside of those chosen adds nothing."""

SPARE = 3.0
"""Forwards goes on to a third of the change that is allowed, or to twice the columns."""

STRIDE = 1.1
"""Forwards looks at the change whenever the columns have grown by this factor."""


@dataclass(frozen=True)
class Target:
    """What the columns of one output are to reproduce.

    Args:
        precision: A, shape (p, p).
        mean: m, shape (p,).
        variance: the mean over rows of the posterior variance of f, the unit of changes.
    """

    precision: Array
    mean: Array
    variance: float


@dataclass(frozen=True)
class Columns:
    """All columns, and what they are for.

    Args:
        gram: ZᵀZ/n, shape (p, p).
        targets: of each output.
        owners: the atom of every column, shape (p,), whose columns stay or go together; -1 for
            columns that always stay.
    """

    gram: Array
    targets: tuple[Target, ...]
    owners: IntArray

    @cached_property
    def free(self) -> BoolArray:
        """Which columns can go, shape (p,)."""
        return self.owners >= 0

    def of(self, atom: int) -> IntArray:
        """The columns of an atom."""
        return np.flatnonzero(self.owners == atom)

    def change(self, keep: IntArray, weights: Array, target: Target) -> float:
        """The mean square change of f over rows, in units of its variance."""
        d = target.mean.copy()
        d[keep] -= weights
        return float(d @ self.gram @ d) / target.variance

    def largest_change(self, keep: IntArray) -> float:
        """The largest change of an output, when only these columns are kept."""
        return max(self.change(keep, refitted(t, keep), t) for t in self.targets)


def refitted(target: Target, keep: IntArray) -> Array:
    """The posterior mean of a model with these columns only, in their order."""
    b = target.precision[keep] @ target.mean
    found: Array = factor_matrix(target.precision[np.ix_(keep, keep)]).inverse() @ b
    return found


def fewest(columns: Columns, tolerance: float) -> IntArray:
    """As few columns as change f by at most ``tolerance`` times its variance, ascending."""
    keep = forwards(columns, lambda keep: columns.largest_change(keep) <= tolerance / SPARE)
    return backwards(columns, keep, lambda _, change: change <= tolerance)


def so_many(columns: Columns, count: int) -> IntArray:
    """At most ``count`` columns, beside those that always stay, ascending."""
    always = int((~columns.free).sum())
    if columns.free.sum() <= count:
        return np.arange(len(columns.free))
    keep = forwards(columns, lambda keep: len(keep) >= always + 2 * count)
    return backwards(columns, keep, lambda keep, _: len(keep) > always + count)


def forwards(columns: Columns, enough: Callable[[IntArray], bool]) -> IntArray:
    """Columns in the order of what they add, until there are enough of them."""
    steps = [_Elimination.start(t) for t in columns.targets]
    keep: list[int] = []

    def take(column: int) -> None:
        for step in steps:
            step.eliminate(column, len(keep))
        keep.append(column)

    for column in np.flatnonzero(~columns.free):
        take(int(column))
    left, look_at = columns.free.copy(), 1.0
    while left.any():
        gains = np.where(left, sum(step.gains() for step in steps), 0.0)
        by_atom = np.bincount(columns.owners[left], gains[left])
        if by_atom.max() <= 0:
            break
        for column in columns.of(int(by_atom.argmax())):
            take(int(column))
            left[column] = False
        if len(keep) >= look_at:
            if enough(np.array(keep)):
                break
            look_at = STRIDE * len(keep)
    return np.array(keep, dtype=np.intp)


@dataclass
class _Elimination:
    """A pivoted Cholesky decomposition under way, of A scaled to a unit diagonal.

    Args:
        scaled: A, shape (p, p).
        rest: what is left of Am after the chosen columns, shape (p,).
        lengths: what is left of the diagonal, shape (p,).
        factor: rows of the factor, one for every chosen column, in memory of p rows.
    """

    scaled: Array
    rest: Array
    lengths: Array
    factor: Array

    @classmethod
    def start(cls, target: Target) -> _Elimination:
        A = target.precision
        scale = 1.0 / np.sqrt(A.diagonal())
        return cls(
            scale[:, None] * A * scale,
            scale * (A @ target.mean),
            np.ones(len(A)),
            np.zeros(A.shape),
        )

    def gains(self) -> Array:
        """How much every column would lower the minimum, shape (p,)."""
        useful = self.lengths > REDUNDANT
        gains: Array = np.where(useful, self.rest**2 / np.where(useful, self.lengths, 1.0), 0.0)
        return gains

    def eliminate(self, column: int, done: int) -> None:
        """Take a column, when ``done`` of them have been taken."""
        if self.lengths[column] <= REDUNDANT:
            return
        above = self.factor[:done]
        pivot = np.sqrt(self.lengths[column])
        row = (self.scaled[column] - above[:, column] @ above) / pivot
        self.factor[done] = row
        self.rest -= row * (self.rest[column] / pivot)
        self.lengths -= row**2


def backwards(
    columns: Columns, keep: IntArray, go_on: Callable[[IntArray, float], bool]
) -> IntArray:
    """Drop the atom that matters least, again and again.

    ``go_on`` is asked before, with the columns that there are and the change that would follow.
    """
    keep = np.sort(keep)
    inverses = [factor_matrix(t.precision[np.ix_(keep, keep)]).inverse() for t in columns.targets]
    weights = [
        H @ (t.precision[keep] @ t.mean) for H, t in zip(inverses, columns.targets, strict=True)
    ]
    while columns.free[keep].any():
        losses = np.sum(
            [w**2 / H.diagonal() for w, H in zip(weights, inverses, strict=True)], axis=0
        )
        owners = columns.owners[keep]
        atoms = np.unique(owners[owners >= 0])
        by_atom = np.bincount(owners[owners >= 0], losses[owners >= 0])
        out = np.isin(owners, atoms[by_atom[atoms].argmin()])
        reduced = [_without(H, w, out) for H, w in zip(inverses, weights, strict=True)]
        left = keep[~out]
        change = max(
            columns.change(left, w, t) for (_, w), t in zip(reduced, columns.targets, strict=True)
        )
        if not go_on(keep, change):
            break
        keep, inverses, weights = left, [H for H, _ in reduced], [w for _, w in reduced]
    return keep


def _without(inverse: Array, weights: Array, out: BoolArray) -> tuple[Array, Array]:
    """A⁻¹ and the minimum after some columns are dropped, by the Schur complement."""
    pull = np.linalg.solve(inverse[np.ix_(out, out)], inverse[out][:, ~out])
    rest = inverse[np.ix_(~out, ~out)] - inverse[~out][:, out] @ pull
    return rest, weights[~out] - weights[out] @ pull
