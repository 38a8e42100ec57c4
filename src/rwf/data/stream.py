"""Rows that are not all in memory: one thread reads them, and workers add them up.

Blocks are dealt to workers in turn, a segment of blocks at a time, and after every segment the sums
of all workers are added in their order. So a sum does not depend on which thread was faster, nor on
how a source happens to part its rows, and a sum that was broken off after a segment goes on to the
same bits. Another number of workers gives the same sums up to rounding.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Annotated, Protocol, Self

import numpy as np

from rwf._types import Array
from rwf.data.readers import Reader
from rwf.data.rows import BLOCK_BYTES, Block, RowSum, Sum, joined, resized, sampling_keys
from rwf.linalg.threads import one_blas_thread

SEGMENT = 32
"""Blocks after which the sums of all workers are added."""

AHEAD = 2
"""Blocks that wait for every worker."""

PATIENCE = 0.1
"""Seconds after which threads that wait look whether others have given up."""

REPORT_SECONDS = 5.0
"""Seconds between two lines of progress."""

IN_MEMORY = 2**30
"""Bytes of rows that are read into memory, at most, where all of them are needed at once."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Entry:
    """How far a sum over rows has come.

    Args:
        name: of the sum.
        rows: rows that are in it.
        done: whether they are all.
        sums: the sum over them.
    """

    name: str
    rows: int
    done: bool
    sums: dict[str, Annotated[Array, "..."]]


class PartialSums(Protocol):
    """Keeps sums where they outlive the process. Sums are made in the same order every time."""

    def recall(self, name: str) -> Entry | None:
        """How far the next sum had come, if it has this name."""
        ...

    def note(self, entry: Entry) -> None:
        """Keep a sum, at once or after a while."""
        ...

    def flush(self) -> None:
        """Keep what was noted at once."""
        ...


@dataclass
class ProgressMeter:
    """Says now and then how fast a pass over rows is.

    Args:
        what: the pass.
        rows: how many there are, if that is known.
        progress: called with a line of text.
        first: rows that were there at the beginning.
    """

    what: str
    rows: int | None
    progress: Progress
    first: int = 0
    begun: float = field(default_factory=time.perf_counter)
    said: float = field(default_factory=time.perf_counter)

    def reached(self, done: int, *, finished: bool = False) -> None:
        """Report, if it is time to."""
        now = time.perf_counter()
        if not finished and (now - self.said < REPORT_SECONDS or done == self.rows):
            return
        self.said = now
        speed = (done - self.first) / max(now - self.begun, 1e-9)
        line = f"{self.what}: {done:,} rows"
        if self.rows is not None and not finished:
            line += f" of {self.rows:,}"
        line += f", {speed:,.0f} rows/s"
        if self.rows is not None and not finished and speed > 0:
            line += f", {_duration((self.rows - done) / speed)} left"
        self.progress(line)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


@dataclass(frozen=True)
class Stream:
    """Rows of a source, passed over block by block: memory does not grow with their number.

    Args:
        reader: the source.
        n_rows: how many there are, if that is known.
        progress: called with a line of text now and then.
        journal: keeps unfinished sums, if it is there.
    """

    reader: Reader
    n_rows: int | None
    progress: Progress
    partial_sums: PartialSums | None = None

    @property
    def n_outputs(self) -> int:
        return self.reader.n_outputs

    def total(self, row_sum: RowSum[Sum]) -> Sum:
        """The sum over all rows; the journal's own, as far as it has it."""
        known = None if self.partial_sums is None else self.partial_sums.recall(row_sum.name)
        total = None if known is None else row_sum.from_arrays(known.sums)
        rows = 0 if known is None else known.rows
        if known is not None and known.done:
            assert total is not None
            return total
        meter = ProgressMeter(row_sum.name, self.n_rows, self.progress, rows)
        width = self.reader.n_inputs + self.n_outputs + 1
        size = min(row_sum.size, max(256, BLOCK_BYTES // (8 * width)))
        with _Workers(self.reader, rows, size, row_sum.workers) as hands:
            while hands.more():
                part, count = hands.segment(row_sum)
                if count:
                    total = part if total is None else row_sum.add(total, part)
                    rows += count
                    self._note(row_sum, total, rows, done=False)
                    meter.reached(rows)
        if self.n_rows is not None and rows != self.n_rows:
            raise ValueError(
                f"the source had {self.n_rows:,} rows when it was first read, and now {rows:,}: "
                "it must give the same rows every time."
            )
        if total is None:
            raise ValueError("the source has no rows.")
        self._note(row_sum, total, rows, done=True)
        meter.reached(rows, finished=True)
        return total

    def _note(self, row_sum: RowSum[Sum], total: Sum, rows: int, *, done: bool) -> None:
        if self.partial_sums is not None:
            self.partial_sums.note(Entry(row_sum.name, rows, done, row_sum.to_arrays(total)))


class _Workers:
    """The blocks of a source, dealt to workers in turn by a thread that reads ahead of them.

    Every worker has a queue, in which ``None`` stands after the blocks of a segment. Workers stay
    for the whole pass: allocators keep memory for every thread that there ever was.
    """

    def __init__(self, reader: Reader, start: int, size: int, workers: int) -> None:
        self._queues = [queue.Queue[Block | None](AHEAD) for _ in range(workers)]
        self._stopped = threading.Event()
        self._ended = False
        self._failure: BaseException | None = None
        blocks = resized(reader.read(start), size)
        self._thread = threading.Thread(target=self._deal, args=(blocks,), daemon=True)
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

        def hand(worker: int) -> Iterator[Block]:
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
                return row_sum.gather(hand(worker))
            except BaseException:
                self._stopped.set()  # so that nobody waits for blocks that never come
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


def read_all(reader: Reader, why: str) -> Block:
    """All rows in memory, where they are needed at once, if they are not too many.

    Args:
        reader: the source.
        why: who needs them.
    """
    most = IN_MEMORY // (8 * (reader.n_inputs + reader.n_outputs + 1))
    pieces, count = [], 0
    for piece in reader.read():
        pieces.append(piece)
        count += len(piece)
        if max(count, reader.n_rows or 0) > most:
            raise ValueError(
                f"{why} needs all rows in memory, and there are more than the {most:,} that make "
                f"{IN_MEMORY / 2**30:g} GiB: do without it, or read as many as you have memory for "
                "yourself, and give arrays."
            )
    if not count:
        raise ValueError("the source has no rows.")
    return joined(pieces)


def draw(
    reader: Reader, size: int, rng: np.random.Generator, progress: Progress
) -> tuple[Block, int]:
    """In one pass, a sample of at most ``size`` rows, and the number of all rows.

    All rows as they are, if there are no more than ``size``, and then nothing is drawn. Else it is
    the very sample that :func:`rwf.data.rows.sample` draws from rows in memory: those of the
    largest log(u)/w, with u drawn row by row. Drawn rows have weight one, and rows without weight
    are never drawn.
    """
    meter = ProgressMeter("looking through the rows", reader.n_rows, progress)
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
    rows = rows.part(rows.weights > 0)
    if not len(rows):
        raise ValueError("all rows have weight zero: give some rows a weight.")
    return replace(rows, weights=np.ones(len(rows))), count
