"""Rows on a cluster: workers add up their partitions, and the sums are added in a fixed tree.

What is computed depends on the rows and on how they are parted, and never on how many workers there
are, or on which of them did what: a worker that is lost costs time, as Dask computes its share
again. Sums travel as plain arrays; what they are made with is in the graph once.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from rwf._types import Array
from rwf.data import stream as streams
from rwf.data.readers import PartitionReader, Reader, computed
from rwf.data.rows import Block, Rows, RowSum, Sum, joined, sampling_keys
from rwf.data.stream import Entry, PartialSums, Progress, ProgressMeter, Stream
from rwf.linalg.threads import one_thread

if TYPE_CHECKING:
    from dask.delayed import Delayed

FAN_IN = 8
"""Sums that are added at a time."""

DISCARDED = 2**20
"""Random numbers that are drawn at a time, to reach those of the next partition."""

Drawn: TypeAlias = tuple[Block, Array]
"""Rows of a sample, and their keys."""

Results: TypeAlias = tuple[Array, ...]


def rows_of(
    reader: Reader, n_rows: int | None, progress: Progress, partial_sums: PartialSums | None = None
) -> Rows:
    """The rows of a source, where sums over them are made: on a cluster, or here."""
    if isinstance(reader, PartitionReader):
        return Spread(reader, progress, partial_sums)
    return Stream(reader, n_rows, progress, partial_sums)


@dataclass(frozen=True)
class Spread:
    """Rows that are spread over a cluster.

    Args:
        reader: the source.
        progress: called with a line of text after every pass.
        journal: keeps sums, if it is there; a sum over all rows is kept once it is complete.
    """

    reader: PartitionReader
    progress: Progress
    partial_sums: PartialSums | None = None

    @property
    def n_outputs(self) -> int:
        return self.reader.n_outputs

    def total(self, row_sum: RowSum[Sum]) -> Sum:
        """The sum over all rows."""
        from dask import delayed

        known = None if self.partial_sums is None else self.partial_sums.recall(row_sum.name)
        if known is not None and known.done:
            return row_sum.from_arrays(known.sums)
        meter, rule = ProgressMeter(row_sum.name, None, self.progress), _shared(row_sum)
        parts = [delayed(_sums)(rule, block) for block in self.reader.blocks]
        whole = _tree(lambda *sums: delayed(_added)(rule, *sums), parts)
        (found,) = computed([whole])
        sums, rows = cast(tuple[dict[str, Array], int], found)
        if not rows:
            raise ValueError("the source has no rows.")
        if self.partial_sums is not None:
            self.partial_sums.note(Entry(row_sum.name, rows, True, sums))
        meter.reached(rows, finished=True)
        return row_sum.from_arrays(sums)


def draw(
    reader: Reader, size: int, rng: np.random.Generator, progress: Progress
) -> tuple[Block, int]:
    """In one pass, a sample of at most ``size`` rows, and the number of all rows.

    On a cluster too it is the very sample that is drawn from rows in memory: the generator is
    wound on to the first row of every partition, so keys depend on the seed and the row's number
    alone.
    """
    if not isinstance(reader, PartitionReader):
        return streams.draw(reader, size, rng, progress)
    from dask import delayed

    meter, n = ProgressMeter("looking through the rows", None, progress), sum(reader.lengths)
    if not n:
        raise ValueError("the source has no rows.")
    if n <= size:
        return joined([*reader.read()]), n
    parts = []
    for block, length in zip(reader.blocks, reader.lengths, strict=True):
        parts.append(delayed(_candidates)(copy.deepcopy(rng), size, block))
        for first in range(0, length, DISCARDED):
            rng.uniform(size=min(DISCARDED, length - first))
    (found,) = computed([_tree(functools.partial(delayed(_largest), size), parts)])
    rows, _ = cast(Drawn, found)
    meter.reached(n, finished=True)
    if not len(rows):
        raise ValueError("all rows have weight zero: give some rows a weight.")
    return replace(rows, weights=np.ones(len(rows))), n


def lazily(reader: PartitionReader, function: Callable[[Array], Results], like: Results) -> Results:
    """Results of a function of inputs as Dask arrays, parted as the inputs are.

    Args:
        reader: of the inputs.
        function: gives several arrays with a row for every row of inputs.
        like: such arrays, for their shapes.
    """
    import dask.array as da
    from dask import delayed

    shapes, rule = [array.shape[1:] for array in like], _shared(function)
    task = delayed(functools.partial(_applied, shapes), nout=len(like))
    lengths = reader.known or [np.nan] * len(reader.blocks)
    found: list[list[Array]] = [[] for _ in like]
    for block, length in zip(reader.blocks, lengths, strict=True):
        for arrays, part, shape in zip(found, task(rule, block), shapes, strict=True):
            arrays.append(da.from_delayed(part, (length, *shape), dtype=np.float64))
    return tuple(da.concatenate(arrays, allow_unknown_chunksizes=True) for arrays in found)


def _shared(value: object) -> Delayed:
    """A value that all tasks need: in the graph, and on every worker, once.

    Unlike data that were scattered, it can be made again if the workers that had it are lost.
    """
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


def _candidates(rng: np.random.Generator, size: int, rows: Block) -> Drawn:
    """Rows of a partition that the sample can hold at most."""
    # A copy, as the task may be run again.
    keys = sampling_keys(rows, copy.deepcopy(rng))
    return _largest(size, (rows.part(rows.weights > 0), keys[rows.weights > 0]))


def _largest(size: int, *drawn: Drawn) -> Drawn:
    """The rows of the largest keys."""
    rows = joined([part for part, _ in drawn])
    keys = np.concatenate([part for _, part in drawn])
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
