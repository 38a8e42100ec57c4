"""Rows that are not all in memory: one thread reads them, and workers add them up.

Workers take blocks in turn, and after every segment their sums are added in a fixed order: so a sum
does not depend on threads or pieces, and an interrupted one continues to the same bits. Another
number of workers gives the same sums up to rounding.
"""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Protocol, Self

import numpy as np

from rwf._types import Array
from rwf.data.progress import Progress, ProgressMeter, silent
from rwf.data.rows import BLOCK_BYTES, Block, RowSum, Sum, joined, resized, sampling_keys
from rwf.linalg.threads import one_blas_thread

if TYPE_CHECKING:
    from rwf.data.readers import Reader

SEGMENT = 32  # blocks after which the sums of all workers are added
AHEAD = 2  # blocks that wait for every worker

NO_WEIGHT = "all rows have weight zero: give some rows a weight."

PATIENCE = 0.1  # seconds after which threads that wait look whether others have given up


@dataclass(frozen=True)
class Entry:
    """How far a sum over rows has come."""

    name: str
    rows: int  # rows in the sum
    done: bool  # whether these are all
    sums: dict[str, Annotated[Array, "..."]]


class PartialSums(Protocol):
    """Keeps sums where they outlive the process. Sums are made in the same order every time."""

    def recall(self, name: str) -> Entry | None:
        """How far the next sum had come, if it has this name."""

    def note(self, entry: Entry) -> None:
        """Keep a sum, at once or after a while."""

    def flush(self) -> None:
        """Keep what was noted at once."""


@dataclass(frozen=True)
class Stream:
    """The rows of a reader, for models that take sums over them."""

    reader: Reader
    n_rows: int | None = None  # if it is known
    progress: Progress = silent  # called with a line of text now and then
    partial_sums: PartialSums | None = None  # keeps unfinished sums

    @property
    def n_outputs(self) -> int:
        return self.reader.n_outputs

    def total(self, row_sum: RowSum[Sum]) -> Sum:
        """The sum over all rows."""
        return self.reader.sum(row_sum, self)


def sum_blocks(stream: Stream, row_sum: RowSum[Sum]) -> Sum:
    """The sum over all rows, block by block; a partial sum is continued where it stopped."""
    n_rows, partial_sums = stream.n_rows, stream.partial_sums
    known = None if partial_sums is None else partial_sums.recall(row_sum.name)
    total = None if known is None else row_sum.from_arrays(known.sums)
    rows = 0 if known is None else known.rows
    if known is not None and known.done:
        assert total is not None
        return total

    def note(total: Sum, *, done: bool) -> None:
        if partial_sums is not None:
            partial_sums.note(Entry(row_sum.name, rows, done, row_sum.to_arrays(total)))

    meter = ProgressMeter(row_sum.name, n_rows, stream.progress, rows)
    width = stream.reader.n_inputs + stream.n_outputs + 1
    size = min(row_sum.size, max(256, BLOCK_BYTES // (8 * width)))
    with _Workers(stream.reader.read(rows), size, row_sum.workers) as workers:
        while workers.more():
            part, count = workers.segment(row_sum)
            if count:
                total = part if total is None else row_sum.add(total, part)
                rows += count
                note(total, done=False)
                meter.reached(rows)
    if n_rows is not None and rows != n_rows:
        raise ValueError(
            f"the source had {n_rows:,} rows when it was first read, and now {rows:,}: "
            "it must give the same rows every time."
        )
    if total is None:
        raise ValueError("the source has no rows.")
    note(total, done=True)
    meter.reached(rows, finished=True)
    return total


class _Workers:
    """The blocks of a source, dealt to workers in turn by a thread that reads ahead of them.

    Every worker has a queue, in which ``None`` stands after the blocks of a segment. Workers stay
    for the whole pass: allocators keep memory for every thread that there ever was.
    """

    def __init__(self, pieces: Iterator[Block], size: int, workers: int) -> None:
        self._queues = [queue.Queue[Block | None](AHEAD) for _ in range(workers)]
        self._stopped = threading.Event()
        self._ended = False
        self._failure: BaseException | None = None
        deal = functools.partial(self._deal, resized(pieces, size))
        self._thread = threading.Thread(target=deal, daemon=True)
        self._pool = ThreadPoolExecutor(workers)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._pool.shutdown()

    def _deal(self, blocks: Iterator[Block]) -> None:
        try:
            for index, block in enumerate(blocks):
                if index and index % SEGMENT == 0:
                    self._end_segment()
                self._put(self._queues[index % SEGMENT % len(self._queues)], block)
                if self._stopped.is_set():
                    return
        except BaseException as error:  # noqa: BLE001 - it is raised where the sum is wanted
            self._failure = error
        self._ended = True
        self._end_segment()

    def _end_segment(self) -> None:
        for waiting in self._queues:
            self._put(waiting, None)

    def _put(self, waiting: queue.Queue[Block | None], block: Block | None) -> None:
        while not self._stopped.is_set():
            try:
                return waiting.put(block, timeout=PATIENCE)
            except queue.Full:
                continue

    def more(self) -> bool:
        """Whether there is another segment: its first block is dealt before the last one ends."""
        return not self._ended or not all(waiting.empty() for waiting in self._queues)

    def segment(self, row_sum: RowSum[Sum]) -> tuple[Sum, int]:
        """The sum over the blocks of a segment, and how many rows these have."""
        counts = [0] * len(self._queues)

        def blocks_of(worker: int) -> Iterator[Block]:
            while not self._stopped.is_set():
                try:
                    block = self._queues[worker].get(timeout=PATIENCE)
                except queue.Empty:
                    continue
                if block is None:
                    return
                counts[worker] += len(block)
                yield block

        def share(worker: int) -> Sum:
            try:
                return row_sum.gather(blocks_of(worker))
            except BaseException:
                self._stopped.set()  # so that no thread waits for blocks that never come
                raise

        with one_blas_thread():
            try:
                parts = [*self._pool.map(share, range(len(self._queues)))]
            except BaseException:
                self._stopped.set()
                raise
        if self._failure is not None:
            raise self._failure
        return functools.reduce(row_sum.add, parts), sum(counts)


def sample_blocks(
    reader: Reader, size: int, rng: np.random.Generator, progress: Progress
) -> tuple[Block, int]:
    """In one pass, a sample of at most ``size`` rows, and the number of all rows.

    All rows if they are no more than ``size``, else the sample that :func:`rwf.data.rows.sample`
    draws from rows in memory. Rows of weight zero are never drawn.
    """
    meter = ProgressMeter("first pass", reader.n_rows, progress)
    held: list[Block] = []
    keys: Array | None = None
    count = 0
    for piece in reader.read():
        count += len(piece)
        meter.reached(count)
        if count <= size:
            held.append(piece)
            continue
        if keys is None:
            # Only now is it known that not all rows can stay.
            held = [joined([*held, piece])]
            keys = sampling_keys(held[0], rng)
        else:
            new = sampling_keys(piece, rng)
            above = new > keys.min()
            held = [joined([*held, piece.part(above)])]
            keys = np.concatenate([keys, new[above]])
        if len(keys) > size:
            kept = np.argpartition(-keys, size)[:size]
            held, keys = [held[0].part(kept)], keys[kept]
    if not count:
        raise ValueError("the source has no rows.")
    meter.reached(count, finished=True)
    rows = joined(held)
    if keys is None:
        return rows, count
    return drawn(rows), count


def drawn(rows: Block) -> Block:
    """The rows of a sample: those that have a weight, which is one from now on."""
    rows = rows.part(rows.weights > 0)
    if not len(rows):
        raise ValueError(NO_WEIGHT)
    return replace(rows, weights=np.ones(len(rows)))
