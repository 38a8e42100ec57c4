"""What can be done in parallel: disjoint subtrees are independent, the nodes above them are not."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from rwf._types import Array
from rwf.inference.multifrontal.dissection import Dissection
from rwf.linalg.threads import cores, one_blas_thread

SUBTREES_PER_CORE = 2  # more even out their different costs, but need more memory at once
LARGE_FRONT = 1000  # columns of a front from which on two threads of BLAS are faster than one


def schedule(tree: Dissection) -> tuple[list[int], list[Sequence[int]]]:
    """The nodes at the top, and the nodes of disjoint subtrees below, all ascending."""
    cost = np.cumsum(np.concatenate([[0.0], tree.own * tree.fronts.astype(float) ** 2]))
    wanted = SUBTREES_PER_CORE * cores() if cores() > 1 else 1
    roots, top = [0], list[int]()
    while len(roots) < wanted:
        heaviest = max(roots, key=lambda v: cost[tree.ends[v]] - cost[v])
        if tree.axes[heaviest] < 0:
            break
        roots.remove(heaviest)
        roots.extend(tree.children(heaviest))
        top.append(heaviest)
    return sorted(top), [range(v, int(tree.ends[v])) for v in sorted(roots)]


def threads_for(tree: Dissection, nodes: Sequence[int]) -> AbstractContextManager[object]:
    """A context for nodes that are done one by one: only large fronts gain by threads of BLAS."""
    large = max((int(tree.fronts[v]) for v in nodes), default=0) >= LARGE_FRONT
    return nullcontext() if large else one_blas_thread()


class Pile:
    """A stack of square matrices in one piece of memory, which is used again while in a cache."""

    def __init__(self, size: int) -> None:
        self._memory = np.empty(size)
        self._starts = [0]

    @property
    def height(self) -> int:
        """How many entries are in use."""
        return self._starts[-1]

    def push(self, rows: int) -> Array:
        """An uninitialised matrix on top."""
        start = self.height
        self._starts.append(start + rows * rows)
        return self._memory[start : self.height].reshape(rows, rows)

    def pop(self) -> None:
        """Remove the top matrix."""
        self._starts.pop()
