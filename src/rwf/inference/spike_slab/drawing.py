"""Random dictionaries: a step in every gap of the data, and local atoms where the data are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rwf._types import Array, BoolArray, IntArray
from rwf.inference.spike_slab.columns import CompressedColumns
from rwf.inference.spike_slab.dictionary import CUSP, GABOR, HAT, STEP, Dictionary

LOCAL_KINDS = (CUSP, HAT, GABOR)

FINEST = 4.0  # the smallest scale, in spacings of the data: an atom is informed by several rows
HIGHEST_FREQUENCY = 5.0  # the largest F of a Gabor atom: about four waves in its support
MARGIN = 3  # cells beyond the data that have atoms, because their supports reach into the data
NEIGHBORS = 8  # the spacing is the median over so many, which evens out clusters of inputs
LONE = 1.5  # an atom of less energy over its largest square depends on one row only


def octaves(x: Array) -> Array:
    """The largest scale of each octave: from the span of sorted inputs to a few spacings."""
    if len(x) < 2:
        return np.empty(0)
    span, hop = x[-1] - x[0], min(NEIGHBORS, len(x) - 1)
    spacing = float(np.median(x[hop:] - x[:-hop])) / hop
    count = max(int(np.round(np.log2(span / (FINEST * spacing)))), 0)
    tops: Array = span * 2.0 ** -np.arange(count)
    return tops


def n_blocks(x: Array) -> int:
    """Blocks of a dictionary drawn at sorted, distinct inputs; some may have no atom."""
    return 1 + len(LOCAL_KINDS) * len(octaves(x))


def in_blocks(dictionary: Dictionary, x: Array) -> Dictionary:
    """The atoms in the blocks of a dictionary that is drawn at other inputs."""
    tops = octaves(x)
    local = dictionary.kinds != STEP
    if not len(tops):
        return dictionary.take(~local)
    octave = np.floor(np.log2(tops[0] / dictionary.scales[local])).astype(np.intp)
    position = np.searchsorted(LOCAL_KINDS, dictionary.kinds[local])
    blocks = np.zeros(len(local), dtype=np.intp)
    blocks[local] = 1 + position * len(tops) + np.clip(octave, 0, len(tops) - 1)
    return replace(dictionary, blocks=blocks)


@dataclass(frozen=True)
class Pool:
    """Atoms to choose from."""

    dictionary: Dictionary  # local atoms, then steps
    active: IntArray  # indices of those that are active


def draw(x: Array, rng: np.random.Generator) -> Dictionary:
    """An atom of each local kind per scale length and octave, and a step in every gap of x."""
    tops = octaves(x)
    parts = []
    for position, kind in enumerate(LOCAL_KINDS):
        for octave, top in enumerate(tops):
            block = 1 + position * len(tops) + octave
            parts.append(_local(kind, float(top), block, x, rng))
    parts.append(_steps(x, rng))
    drawn = Dictionary.join(parts)
    return drawn.take(reaches_several(drawn, x))


def redraw(x: Array, active: Dictionary, copies: int, rng: np.random.Generator) -> Pool:
    """Other inactive atoms beside the active ones.

    Active atoms take the place of new ones, so that a block has as many atoms as ever: were they
    added, a block would grow with what is active in it, and so would the odds of its atoms.
    ``copies`` atoms near each active one take up to half of the room in a block.
    """
    fresh, total = draw(x, rng), n_blocks(x)
    room = np.bincount(fresh.blocks, minlength=total) - np.bincount(active.blocks, minlength=total)
    near = active.jittered(copies, rng)
    near = _up_to(near.take(reaches_several(near, x)), room // 2, rng)
    fresh = _up_to(fresh, room - np.bincount(near.blocks, minlength=total), rng)
    pool = Dictionary.join([fresh, near, active])
    order = np.argsort(pool.kinds == STEP, kind="stable")
    old = pool.n_features - active.n_features
    return Pool(pool.take(order), np.flatnonzero(order >= old))


def _up_to(dictionary: Dictionary, room: IntArray, rng: np.random.Generator) -> Dictionary:
    """At random, so many atoms of every block."""
    shuffled = rng.permutation(dictionary.n_features)
    by_block = shuffled[np.argsort(dictionary.blocks[shuffled], kind="stable")]
    blocks = dictionary.blocks[by_block]
    rank = np.arange(len(blocks)) - np.searchsorted(blocks, blocks)
    return dictionary.take(np.sort(by_block[rank < room[blocks]]))


def _steps(x: Array, rng: np.random.Generator) -> Dictionary:
    """One step inside each gap."""
    m = len(x) - 1
    zero, block = np.zeros(m), np.zeros(m, dtype=np.intp)
    steps = Dictionary(np.full(m, STEP), np.ones(m), x[1:], zero, zero, block)
    return moved_within_gaps(steps, x, rng)


def moved_within_gaps(dictionary: Dictionary, x: Array, rng: np.random.Generator) -> Dictionary:
    """The atoms with steps elsewhere in their gaps: rows say nothing about the place in a gap.

    It is away from the ends, so that rounding cannot move it out.
    """
    steps = dictionary.kinds == STEP
    gaps = np.searchsorted(x, dictionary.shifts[steps])
    shifts = dictionary.shifts.copy()
    shifts[steps] = x[gaps - 1] + rng.uniform(0.02, 0.98, len(gaps)) * (x[gaps] - x[gaps - 1])
    return replace(dictionary, shifts=shifts)


def _local(kind: int, top: float, block: int, x: Array, rng: np.random.Generator) -> Dictionary:
    """An atom in every cell of length top near the data, with a scale in (top/2, top]."""
    occupied = np.unique(np.floor((x - x[0]) / top))
    cells = np.unique(occupied[:, None] + np.arange(-MARGIN, MARGIN + 1))
    m = len(cells)
    return Dictionary(
        np.full(m, kind),
        top * 2.0 ** -rng.uniform(size=m),
        x[0] + top * (cells + rng.uniform(size=m)),
        rng.uniform(0.0, HIGHEST_FREQUENCY, m),
        rng.uniform(0.0, 2 * np.pi, m),
        np.full(m, block),
    )


def reaches_several(dictionary: Dictionary, x: Array) -> BoolArray:
    """Which atoms reach more than one of the sorted, distinct inputs, shape (m,)."""
    runs = CompressedColumns.of(dictionary, x, np.ones(len(x))).runs
    several = np.ones(dictionary.n_features, dtype=bool)
    if len(runs.starts):
        squares = np.append(runs.values**2, 0.0)  # so that an empty run at the end has a start
        energies = np.add.reduceat(squares, runs.starts)
        peaks = np.maximum.reduceat(squares, runs.starts)
        several[: len(energies)] = (runs.sizes > 0) & (energies > LONE * peaks)
    return several
