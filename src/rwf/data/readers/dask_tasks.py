"""Sums, samples and predictions of partitions as Dask tasks, joined in a fixed tree.

Results depend on the rows and on their partitions, and never on the number of workers or on which
of them did what: if a worker is lost, Dask computes its share again. Sums travel as plain arrays;
what the tasks share is in the graph once.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from rwf._types import Array
from rwf.data.progress import Progress, ProgressMeter
from rwf.data.readers.base import Results
from rwf.data.rows import Block, RowSum, Sum, joined, sampling_keys
from rwf.data.stream import Entry, Stream, drawn
from rwf.linalg.threads import one_thread

if TYPE_CHECKING:
    from dask.delayed import Delayed

FAN_IN = 8  # sums that are added at a time
DISCARDED = 2**20  # random numbers that are drawn at a time, to reach those of the next partition
GRAPH_BYTES = "1GiB"  # size of a graph above which Dask warns: the model is in it, once
Candidates: TypeAlias = tuple[Block, Array]  # rows of a sample, and their keys


def sum_partitions(blocks: Sequence[Delayed], row_sum: RowSum[Sum], stream: Stream) -> Sum:
    """The sum over the rows of all partitions; it is kept once it is complete."""
    from dask import delayed

    partial_sums = stream.partial_sums
    known = None if partial_sums is None else partial_sums.recall(row_sum.name)
    if known is not None and known.done:
        return row_sum.from_arrays(known.sums)
    meter, rule = ProgressMeter(row_sum.name, None, stream.progress), _shared(row_sum)
    parts = [delayed(_sums)(rule, block) for block in blocks]
    (found,) = computed([_tree(lambda *sums: delayed(_added)(rule, *sums), parts)])
    sums, rows = cast(tuple[dict[str, Array], int], found)
    if not rows:
        raise ValueError("the source has no rows.")
    if partial_sums is not None:
        partial_sums.note(Entry(row_sum.name, rows, True, sums))
    meter.reached(rows, finished=True)
    return row_sum.from_arrays(sums)


def sample_partitions(
    blocks: Sequence[Delayed],
    lengths: Sequence[int],
    size: int,
    rng: np.random.Generator,
    progress: Progress,
) -> Block:
    """The same sample that is drawn from rows in memory, of more rows than ``size``.

    The generator is advanced to the first row of every partition, so that keys depend on the seed
    and the row's number alone.
    """
    from dask import delayed

    meter, parts = ProgressMeter("first pass", None, progress), []
    for block, length in zip(blocks, lengths, strict=True):
        parts.append(delayed(_candidates)(copy.deepcopy(rng), size, block))
        for first in range(0, length, DISCARDED):
            rng.uniform(size=min(DISCARDED, length - first))
    (found,) = computed([_tree(functools.partial(delayed(_largest), size), parts)])
    meter.reached(sum(lengths), finished=True)
    return drawn(cast(Candidates, found)[0])


def map_partitions(
    blocks: Sequence[Delayed],
    lengths: Sequence[int] | None,
    function: Callable[[Array], Results],
    shapes: Sequence[tuple[int, ...]],
) -> Results:
    """Results of a function of inputs as Dask arrays; ``shapes`` are those of one row of each."""
    import dask.array as da
    from dask import delayed

    rule, task = _shared(function), delayed(functools.partial(_applied, shapes), nout=len(shapes))
    found: list[list[Array]] = [[] for _ in shapes]
    known: Sequence[float] = lengths or [np.nan] * len(blocks)
    for block, length in zip(blocks, known, strict=True):
        for arrays, part, shape in zip(found, task(rule, block), shapes, strict=True):
            arrays.append(da.from_delayed(part, (length, *shape), dtype=np.float64))
    return tuple(da.concatenate(arrays, allow_unknown_chunksizes=True) for arrays in found)


def computed(tasks: Sequence[Delayed]) -> tuple[object, ...]:
    """Results of tasks, on the current cluster, or by threads if there is none.

    A process that has not imported ``distributed`` has no cluster, and its configuration is not
    touched: a key that is set before the package loads its defaults would hide all of them.
    """
    import dask

    if "distributed" not in sys.modules:
        return tuple(dask.compute(*tasks, traverse=False))
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": GRAPH_BYTES}):
        return tuple(dask.compute(*tasks, traverse=False))


def _shared(value: object) -> Delayed:
    """A value for all tasks, once in the graph, from which a lost worker is replaced."""
    import cloudpickle
    from dask import delayed

    return delayed(cloudpickle.loads)(cloudpickle.dumps(value))


def _tree(join: Callable[..., Delayed], parts: Sequence[Delayed]) -> Delayed:
    """Parts joined with their neighbours, and the results again, always in the same order."""
    while len(parts) > 1:
        parts = [join(*parts[i : i + FAN_IN]) for i in range(0, len(parts), FAN_IN)]
    return parts[0]


def _sums(row_sum: RowSum[Sum], rows: Block) -> tuple[dict[str, Array], int]:
    """A sum over the rows of a partition, and their number."""
    with one_thread():
        return row_sum.to_arrays(row_sum.gather(rows.parts(row_sum.size))), len(rows)


def _added(
    row_sum: RowSum[Sum], *parts: tuple[dict[str, Array], int]
) -> tuple[dict[str, Array], int]:
    with one_thread():
        total = functools.reduce(row_sum.add, (row_sum.from_arrays(sums) for sums, _ in parts))
        return row_sum.to_arrays(total), sum(rows for _, rows in parts)


def _candidates(rng: np.random.Generator, size: int, rows: Block) -> Candidates:
    """Rows of a partition that the sample can hold at most."""
    # A copy, as the task may be run again.
    keys = sampling_keys(rows, copy.deepcopy(rng))
    return _largest(size, (rows.part(rows.weights > 0), keys[rows.weights > 0]))


def _largest(size: int, *found: Candidates) -> Candidates:
    """The rows of the largest keys."""
    rows = joined([part for part, _ in found])
    keys = np.concatenate([part for _, part in found])
    if len(rows) <= size:
        return rows, keys
    kept = np.sort(np.argpartition(-keys, size)[:size])
    return rows.part(kept), keys[kept]


def _applied(
    shapes: Sequence[tuple[int, ...]], function: Callable[[Array], Results], rows: Block
) -> Results:
    if not len(rows):
        return tuple(np.empty((0, *shape)) for shape in shapes)
    with one_thread():
        return function(rows.X)
