"""How much memory a tree needs, before any is allocated, and the largest tree that fits."""

from __future__ import annotations

from collections.abc import Callable

from rwf.errors import RWFError
from rwf.inference.multifrontal.atom_tree import AtomTree
from rwf.inference.multifrontal.dissection import Dissection
from rwf.inference.multifrontal.elimination import update_entries
from rwf.inference.multifrontal.inverse import inverse_entries
from rwf.inference.multifrontal.schedule import schedule

CLOSE = 1.03  # factor up to which the largest number of columns is found


class TreeTooLargeError(RWFError, ValueError):
    """A tree needs more memory than there is."""


def memory_needed(tree: Dissection) -> int:
    """Bytes of statistics, factor and inverse together, with all that is needed to make them."""
    top, subtrees = schedule(tree)
    squares = (tree.fronts - tree.own) ** 2
    # As if all subtrees were eliminated at once; their last updates are kept for the top.
    updates = sum(sum(update_entries(tree, nodes)) + int(squares[nodes[0]]) for nodes in subtrees)
    updates += sum(update_entries(tree, top))
    inverses = sum(inverse_entries(tree, nodes) for nodes in subtrees)
    inverses += sum(int(tree.fronts[v]) ** 2 for v in top)
    kept = 2 * int(tree.packed_starts[-1]) + int(tree.panel_starts[-1])
    return 8 * (kept + max(updates, inverses) + 2 * len(tree.lists))


def largest_that_fits(draw: Callable[[int], AtomTree], n_features: int, budget: int) -> AtomTree:
    """The tree that ``draw`` makes of ``n_features`` columns, or of as many as fit the bytes."""
    tree = draw(n_features)
    need = memory_needed(tree.dissection)
    if need <= budget:
        return tree
    fits, too_many = 0, n_features
    best = tree
    while too_many > CLOSE * max(fits, 1):
        # Memory grows a little faster than the number of columns.
        guess = int(too_many * min((budget / need) ** 0.9, 1 / CLOSE**0.5))
        if guess <= fits:
            guess = (fits + too_many) // 2
        if guess < 1 or guess in (fits, too_many):
            break
        tree = draw(guess)
        size = memory_needed(tree.dissection)
        if size <= budget:
            fits, best = guess, tree
        else:
            too_many, need = guess, size
    if not fits:
        raise TreeTooLargeError(f"not even one column fits {budget / 2**20:.3g} MiB.")
    return best


def draw_within(draw: Callable[[int], AtomTree], n_features: int, budget: int) -> AtomTree:
    """As :func:`largest_that_fits`, but an error that says what would fit if not all columns do."""
    tree = draw(n_features)
    need = memory_needed(tree.dissection)
    if need <= budget:
        return tree
    largest = largest_that_fits(draw, n_features, budget).n_features
    raise TreeTooLargeError(
        f"{tree.n_features} columns need {need / 2**30:.2f} GiB, but {budget / 2**30:.2f} GiB are "
        f"available: ask for at most {largest} columns, or provide more memory."
    )
