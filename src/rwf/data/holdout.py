"""Which training rows are held out, for every choice that is made by prediction."""

from __future__ import annotations

import numpy as np

from rwf._types import IntArray
from rwf.data.rows import Block

SHARE, MOST = 0.1, 5000
"""Share of the rows, and their largest number: a mean over more of them is hardly more precise."""

ENOUGH, LARGEST_SHARE = 300, 0.3
"""The share grows up to the largest one to hold out enough rows of a small table."""


def held_out_rows(n: int, rng: np.random.Generator) -> IntArray:
    """Indices, ascending, of those of n training rows that are held out."""
    share = min(max(SHARE, ENOUGH / max(n, 1)), LARGEST_SHARE)
    return np.sort(rng.permutation(n)[: min(int(share * n), MOST)])


def hold_out(rows: Block, rng: np.random.Generator) -> tuple[Block, Block]:
    """The rows to learn from, and the rows that are held out."""
    held = np.zeros(len(rows), dtype=bool)
    held[held_out_rows(len(rows), rng)] = True
    return rows.part(~held), rows.part(held)
