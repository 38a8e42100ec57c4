"""Sufficient statistics on a tree: a Gram matrix per leaf, over the columns that reach it.

They add over rows and equal the dense Gram matrix, which is never formed: two columns that meet in
no leaf have no entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block, resized
from rwf.errors import IncompatibleModelsError
from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.cells import SortedRows
from rwf.inference.multifrontal.dissection import AnyArray
from rwf.inference.multifrontal.posterior import TreePosterior
from rwf.linalg.dense import EPSILON, RESOLUTION, call
from rwf.linalg.threads import in_parallel

LEAST_GATHERED, ROWS_PER_LEAF = 2**19, 512  # rows added at a time: at least, and per leaf


@dataclass(frozen=True)
class TreeMoments:
    """Gram form, by leaf."""

    form: ClassVar[str] = "multifrontal"
    tree: AtomTree  # the columns and their dissection
    grams: Annotated[Array, "g"]  # lower triangle of every leaf's ZᵀZ over its list, packed
    Zty: Annotated[Array, "p k"]  # b in the original order of columns, shape (p, k) for k outputs
    yty: Annotated[Array, "k"]  # yᵀy of each output, shape (k,)
    n: float  # number of rows, or their total weight
    log_volume: float = 0.0  # Σ log v of the rows, where their noise varies

    @classmethod
    def empty(cls, tree: AtomTree, n_outputs: int) -> TreeMoments:
        """The moments of no rows."""
        grams = np.zeros(int(tree.dissection.packed_starts[-1]))
        return cls(tree, grams, np.zeros((tree.n_features, n_outputs)), np.zeros(n_outputs), 0.0)

    @property
    def n_outputs(self) -> int:
        return int(self.Zty.shape[1])

    def __add__(self, other: TreeMoments) -> TreeMoments:
        if not self.tree.dissection.same_as(other.tree.dissection):
            raise IncompatibleModelsError(
                "moments of different trees cannot be added: accumulate both on one tree."
            )
        if self.n_outputs != other.n_outputs:
            raise IncompatibleModelsError(
                f"moments of {self.n_outputs} and of {other.n_outputs} outputs cannot be added."
            )
        return TreeMoments(
            self.tree,
            self.grams + other.grams,
            self.Zty + other.Zty,
            self.yty + other.yty,
            self.n + other.n,
            self.log_volume + other.log_volume,
        )

    def __sub__(self, other: TreeMoments) -> TreeMoments:
        """The moments without some of the rows, on the same tree."""
        return TreeMoments(
            self.tree,
            self.grams - other.grams,
            self.Zty - other.Zty,
            self.yty - other.yty,
            self.n - other.n,
            self.log_volume - other.log_volume,
        )

    def tempered(self, effective_rows: float) -> TreeMoments:
        """The moments with every row counted less, so that all count as so many, or as they are."""
        w = effective_rows / max(self.n, 1e-300)
        return self if w >= 1 else self.scaled(w)

    def scaled(self, share: float) -> TreeMoments:
        """Every row counted so many times."""
        return TreeMoments(
            self.tree, share * self.grams, share * self.Zty, share * self.yty, share * self.n,
            share * self.log_volume,
        )  # fmt: skip

    def gram(self, leaf: int) -> Array:
        """The packed Gram matrix of a leaf."""
        starts = self.tree.dissection.packed_starts
        return self.grams[starts[leaf] : starts[leaf + 1]]

    @property
    def column_energies(self) -> Array:
        """‖z_j‖² of every column, shape (p,)."""
        from rwf.inference.multifrontal import _fronts

        dissection = self.tree.dissection
        energies = np.zeros(dissection.n_columns)
        for leaf in dissection.leaves:
            _fronts.add_diagonal(self.gram(leaf), dissection.columns(leaf), energies)
        return dissection.in_original_order(energies)

    def quadratic_form(self, w: Array) -> float:
        """wᵀGw = ‖Zw‖²."""
        from rwf.inference.multifrontal import _fronts

        dissection = self.tree.dissection
        w = dissection.in_tree_order(w)
        return sum(
            float(_fronts.quadratic_form(self.gram(leaf), w[dissection.columns(leaf)]))
            for leaf in dissection.leaves
        )

    def resolvable_noise(self, prior_variances: Array) -> float:
        """The smallest σ² that stands out of the rounding in the leaves' Gram matrices."""
        widest = int(self.tree.dissection.fronts.max())
        median = float(np.median(self.column_energies * prior_variances))
        return EPSILON * widest * median / RESOLUTION

    def posterior(
        self, output: int, prior_variances: Array, noise_variance: float
    ) -> TreePosterior:
        """p(w | y) of one output: one factorisation, as no row is needed again."""
        return TreePosterior.of(self, output, prior_variances, noise_variance)

    def sums(self) -> dict[str, Array]:
        """All but the tree, as plain arrays."""
        return {
            "grams": self.grams,
            "Zty": self.Zty,
            "yty": self.yty,
            "totals": np.array([self.n, self.log_volume]),
        }

    @classmethod
    def of_sums(cls, tree: AtomTree, arrays: Mapping[str, AnyArray]) -> TreeMoments:
        """The moments on a tree, as they were saved."""
        n, log_volume = arrays["totals"].tolist()
        return cls(tree, arrays["grams"], arrays["Zty"], arrays["yty"], n, log_volume)


def rows_at_once(tree: AtomTree) -> int:
    """Rows that are sorted and added together."""
    return max(LEAST_GATHERED, ROWS_PER_LEAF * len(tree.dissection.leaves))


def accumulate_tree(tree: AtomTree, blocks: Iterable[Block], n_outputs: int) -> TreeMoments:
    """One pass over the rows, by threads over leaves."""
    total = TreeMoments.empty(tree, n_outputs)
    Zty, yty, n, log_volume = np.zeros_like(total.Zty), total.yty.copy(), 0.0, 0.0
    for block in resized(blocks, rows_at_once(tree)):
        if block.y.shape[1] != n_outputs:
            raise ValueError(f"y has {block.y.shape[1]} columns, but {n_outputs} were expected.")
        root = block.root_precision[:, 0]
        rows = tree.sorted_rows(block.X, root)
        YT = np.ascontiguousarray(block.y[rows.order].T) * rows.root
        parts = in_parallel(partial(_add_cells, total, rows, YT), rows.batches())
        for leaf, b in (pair for part in parts for pair in part):
            Zty[tree.dissection.columns(leaf)] += b
        yty += np.einsum("kn,kn->k", YT, YT)
        n += float(block.weights.sum())
        log_volume += block.log_volume
    b = tree.dissection.in_original_order(Zty)
    return TreeMoments(tree, total.grams, b, yty, n, log_volume)


def _add_cells(
    total: TreeMoments, rows: SortedRows, YT: Array, cells: IntArray
) -> list[tuple[int, Array]]:
    """Add the Gram matrices of cells to their leaves; Zᵀy of every leaf is returned."""
    from rwf.inference.multifrontal import _fronts

    tree, k = total.tree, total.n_outputs
    work, found = tree.workspace(extra=k), dict[int, Array]()
    widest = len(work.places)
    square = np.empty(widest * widest)
    for leaf, begin, end in cells.tolist():
        size = int(tree.dissection.fronts[leaf])
        places, Z = tree.features_of(rows, leaf, begin, end, work)
        a, n = Z.shape
        # Targets stand below the features, so that one product gives ZᵀZ and Zᵀy.
        work.values[a * n : (a + k) * n].reshape(k, n)[:] = YT[:, begin:end]
        C = square[: (a + k) ** 2].reshape(a + k, a + k)
        call("dsyrk", "L", "T", a + k, n, 1.0, work.values, n, 0.0, C, a + k)
        _fronts.add_packed(C, places, size, total.gram(leaf))
        if leaf not in found:
            found[leaf] = np.zeros((size, k))
        found[leaf][places] += C[:a, a:]
    return list(found.items())
