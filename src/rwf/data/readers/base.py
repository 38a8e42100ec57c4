"""What every source of rows can do, and the checks that all rows pass on their way in."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.data.rows import Block, wrong_weight

PIECE_BYTES = 8 * 2**20
"""Memory for rows that are read together."""

DIGEST = 16
"""Characters of a checksum that stand for some content."""


class Reader(Protocol):
    """Rows that can be read any number of times, piece by piece, in the same order every time."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the input columns, if they have any."""
        ...

    @property
    def n_inputs(self) -> int: ...

    @property
    def n_outputs(self) -> int: ...

    @property
    def single_output(self) -> bool:
        """Whether the target is one column, and not a table of one."""
        ...

    @property
    def n_rows(self) -> int | None:
        """How many there are, if that is known without reading them."""
        ...

    def read(self, start: int = 0) -> Iterator[Block]:
        """The rows from some row on, in pieces of any length, all of them finite numbers."""
        ...

    def fingerprint(self) -> dict[str, str]:
        """By what these rows are told from others, without reading them all."""
        ...


def is_reader(X: object) -> TypeGuard[Reader]:
    """Whether this is a reader; asked of its class, as frames have attributes by their columns."""
    return all(callable(getattr(type(X), name, None)) for name in ("read", "fingerprint"))


def piece_rows(n_columns: int) -> int:
    """Rows to read together."""
    return max(256, PIECE_BYTES // (8 * max(n_columns, 1)))


def checked(
    X: Array,
    y: Array,
    weights: Array,
    place: Callable[[int], str],
    labels: Callable[[int], str] = lambda column: f"column {column}",
    targets: Callable[[int], str] = lambda column: f"target {column}",
) -> Block:
    """Rows, all finite, with weights that can be used.

    Args:
        X: inputs, shape (n, d).
        y: targets, shape (n, k).
        weights: shape (n,).
        place: where one of the rows is, for errors.
        labels: what an input column is called.
        targets: what a target is called.
    """
    for values, called in ((X, labels), (y, targets), (weights[:, None], lambda column: "weight")):
        with np.errstate(over="ignore", invalid="ignore"):
            fine = np.isfinite(values.sum())
        if not fine and not np.isfinite(values).all():
            row, column = (int(i) for i in np.argwhere(~np.isfinite(values))[0])
            what = "a missing value or NaN" if np.isnan(values[row, column]) else "infinity"
            raise ValueError(
                f"{place(row)}, {called(column)}: {what}. Drop such rows, or fill them in, for "
                "example with sklearn.impute.SimpleImputer."
            )
    wrong = wrong_weight(weights)
    if wrong is not None:
        row, fault = wrong
        raise ValueError(
            f"{place(row)}: the weight {weights[row]:.3g} is {fault}. A weight says how many "
            "times a row counts: use zero to leave a row out."
        )
    return Block(X, y, weights)


def as_numbers(values: ArrayLike, what: str) -> Array:
    """Values as float64, if they are numbers."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{what} holds something that is no number: encode it first.") from None


def skipped(pieces: Iterable[Block], count: int) -> Iterator[Block]:
    """The pieces without their first rows."""
    for piece in pieces:
        if count < len(piece):
            yield piece.part(slice(count, None)) if count else piece
        count = max(0, count - len(piece))


def digest(parts: Sequence[bytes]) -> str:
    """A short checksum."""
    return hashlib.sha256(b"".join(parts)).hexdigest()[:DIGEST]
