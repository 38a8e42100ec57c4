"""The interface of all sources of rows, and the checks that rows pass on their way in."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.data.progress import Progress, silent
from rwf.data.rows import Block, RowSum, Sum, block_rows, check_weights, joined, non_finite, resized
from rwf.data.stream import NO_WEIGHT, Stream, sample_blocks, sum_blocks
from rwf.errors import NoSuchColumnError

PIECE_BYTES = 8 * 2**20  # memory for rows that are read together
SMALL = 2**28  # bytes of rows up to which a file is read into memory and fitted as an array is
IN_MEMORY = 2**30  # most bytes of rows that are read where a model needs all of them at once
DIGEST = 16  # characters of a checksum
SPACED_ROWS = 1000  # rows, evenly spaced, in the fingerprint of rows in memory
LISTED = 30  # names that an error lists, at most

Results: TypeAlias = tuple[Array, ...]


@dataclass(frozen=True)
class RowLayout:
    """The columns of rows."""

    n_inputs: int
    n_outputs: int
    single_output: bool = True  # whether y is one column, and not a table of one
    names: tuple[str, ...] | None = None  # of the columns that were given, if they have any
    n_given: int | None = field(default=None, kw_only=True)  # where encoding changes their number


class Reader(ABC):
    """Rows that can be read any number of times, piece by piece, in the same order every time.

    A new kind of source implements the abstract members. What a fit needs, :meth:`sum`,
    :meth:`sample`, :meth:`read_all` and :meth:`map`, follows from them; a source that is not on
    this machine overrides these to bring the work to its rows.
    """

    always_streams: ClassVar[bool] = False  # whether few rows, too, are fitted as a stream

    @property
    @abstractmethod
    def layout(self) -> RowLayout: ...

    @property
    def n_inputs(self) -> int:
        return self.layout.n_inputs

    @property
    def n_outputs(self) -> int:
        return self.layout.n_outputs

    @property
    def n_rows(self) -> int | None:
        """The number of rows, if it is known without reading them."""
        return None

    @abstractmethod
    def read(self, start: int = 0) -> Iterator[Block]:
        """The rows from row ``start`` on, in pieces of any length, all of them finite numbers."""

    @abstractmethod
    def fingerprint(self) -> dict[str, str]:
        """What tells these rows from others, found without reading all of them."""

    def sum(self, row_sum: RowSum[Sum], stream: Stream | None = None) -> Sum:
        """The sum over all rows; a stream of them says where progress and partial sums go."""
        return sum_blocks(stream or Stream(self), row_sum)

    def sample(
        self, size: int, rng: np.random.Generator, progress: Progress = silent
    ) -> tuple[Block, int]:
        """In one pass, a sample of at most ``size`` rows, and the number of all rows."""
        return sample_blocks(self, size, rng, progress)

    def map(self, function: Callable[[Array], Results], example: Array) -> Results:
        """The results of a function of blocks of inputs, with a row for each of theirs.

        By ``example``, one row of inputs, a lazy source finds the shapes of the results.
        """
        blocks = resized(self.read(), block_rows(self.n_inputs))
        found = [function(block.X) for block in blocks]
        if not found:
            raise ValueError("there are no rows to predict.")
        return tuple(np.concatenate(parts) for parts in zip(*found, strict=True))

    def read_all(self, why: str | None = None) -> Block:
        """All rows in memory; at most :data:`IN_MEMORY` bytes if it is said what needs them."""
        rows = self._read_up_to(None if why is None else IN_MEMORY)
        if rows is None:
            raise ValueError(
                f"{why} needs all rows in memory, and there are more than the "
                f"{self._count(IN_MEMORY):,} that make {IN_MEMORY / 2**30:g} GiB: do without it, "
                "or read as many as you have memory for yourself, and give arrays."
            )
        return rows

    def read_if_small(self) -> Block | None:
        """All rows in memory, if they take at most :data:`SMALL` bytes; ``None`` if they stream."""
        return None if self.always_streams else self._read_up_to(SMALL)

    def _read_up_to(self, budget: int | None) -> Block | None:
        most = None if budget is None else self._count(budget)
        if most is not None and (self.n_rows or 0) > most:
            return None
        pieces, count = [], 0
        for piece in self.read():
            pieces.append(piece)
            count += len(piece)
            if most is not None and count > most:
                return None
        if not count:
            raise ValueError("the source has no rows.")
        rows = joined(pieces)
        if not rows.weights.any():
            raise ValueError(NO_WEIGHT)
        return rows

    def _count(self, budget: int) -> int:
        """Rows of so many bytes."""
        return budget // (8 * (self.n_inputs + self.n_outputs + 1))


def piece_rows(n_columns: int) -> int:
    """Rows to read together."""
    return max(256, PIECE_BYTES // (8 * max(n_columns, 1)))


def checked(
    X: Array,
    y: Array,
    weights: Array,
    place: Callable[[int], str],
    inputs: Sequence[str] | None = None,
    targets: Sequence[str] | None = None,
) -> Block:
    """Rows, all finite, with usable weights; errors name the place of a row, and its column."""
    columns = ((X, inputs, "column"), (y, targets, "target"), (weights[:, None], None, "weight"))
    for values, names, what in columns:
        for row, column in non_finite(values)[:1]:
            label = what if what == "weight" else f"{what} {column}"
            label = label if names is None else f"column {names[column]!r}"
            fault = "a missing value or NaN" if np.isnan(values[row, column]) else "infinity"
            raise ValueError(
                f"{place(row)}, {label}: {fault}. Drop such rows, or fill them in, for "
                "example with sklearn.impute.SimpleImputer."
            )
    check_weights(weights, lambda row: f"{place(row)}: the weight")
    return Block(X, y, weights)


def row_place(where: object, first: int, row: int) -> str:
    """The place of a row after the first, for errors."""
    return f"{where}, row {first + row} (the first is 0)"


def as_numbers(values: ArrayLike, what: str) -> Array:
    """Values as float64, if they are numbers."""
    try:
        if np.asarray(values).dtype.kind not in "Mm":  # dates are numbers only in some unit
            return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        pass
    raise ValueError(
        f"{what} holds something that is no number, such as text or dates: encode it first, or fit "
        "rwf.TableRegressor, which takes them as they are."
    )


def require_columns(wanted: Sequence[str], present: Sequence[str], where: str) -> None:
    """Raise an error if a column is missing; it lists those present, and similar names."""
    missing = [name for name in wanted if name not in present]
    if not missing:
        return
    shown = [str(name) for name in present]
    close = [match for name in missing for match in get_close_matches(name, shown, n=1)]
    meant = f" Did you mean {listed(list(dict.fromkeys(close)))}?" if close else ""
    raise NoSuchColumnError(
        f"{where} has no column {listed(missing)}; its columns are {listed(present)}.{meant}"
    )


def inputs_among(
    present: Sequence[str], others: Sequence[str], names: Sequence[str] | None, where: str
) -> tuple[str, ...]:
    """The input columns of a table: those named, or all but the others, which must be there too."""
    wanted = [n for n in present if n not in others] if names is None else list(names)
    require_columns([*wanted, *others], present, where)
    if not wanted:
        raise ValueError(f"{where} has no column beside {listed(others)}.")
    return tuple(wanted)


def listed(names: Sequence[str]) -> str:
    """Names with commas between them, if they are not too many."""
    shown = ", ".join(repr(str(name)[:80]) for name in names[:LISTED])
    return shown if len(names) <= LISTED else f"{shown} and {len(names) - LISTED} more"


def skipped(pieces: Iterable[Block], count: int) -> Iterator[Block]:
    """The pieces without their first rows."""
    for piece in pieces:
        if count < len(piece):
            yield piece.part(slice(count, None)) if count else piece
        count = max(0, count - len(piece))


def digest(parts: Sequence[bytes]) -> str:
    """A short checksum."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:DIGEST]


def digest_of(rows: Block) -> str:
    """A short checksum of some rows."""
    return digest([part.tobytes() for part in (rows.X, rows.y, rows.weights)])
