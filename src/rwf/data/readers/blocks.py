"""Rows that the user's code makes: blocks (X, y) or (X, y, weights), made anew for every pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.data.readers.base import Reader, RowLayout, as_numbers, checked, digest_of, skipped
from rwf.data.rows import Block

Item: TypeAlias = ArrayLike | tuple[ArrayLike, ...]
Blocks: TypeAlias = Callable[[], Iterable[Item]] | Iterable[Item]

ONE_SHOT = (
    "{} can be passed over only once, and all rows are needed several times: give a function that "
    "returns a new iterator, such as the generator function itself, without calling it."
)


@dataclass(frozen=True)
class BlockReader(Reader):
    """Rows of blocks."""

    always_streams: ClassVar[bool] = True

    blocks: Blocks  # a function that returns a new iterator, or an iterable
    x_shape: tuple[int, ...]  # of one row of X, (d,)
    y_shape: tuple[int, ...]  # of one row of y: () or (k,), or (0,) without targets

    @classmethod
    def of(cls, blocks: Blocks, *, targets: bool) -> BlockReader:
        """A reader of blocks; the first of them has the shapes of all."""
        passed = _passed(blocks)
        if callable(blocks) and blocks() is passed and iter(passed) is passed:
            raise TypeError(ONE_SHOT.format(f"the {type(passed).__name__} of this function"))
        first = next(iter(passed), None)
        if first is None:
            raise ValueError("there is not a single block: give blocks of rows.")
        X, y = _parts(first, 0, targets)[:2]
        if X.ndim != 2 or y.ndim not in (1, 2):
            raise ValueError(
                f"block 0 has X of shape {X.shape} and y of shape {y.shape}: give X of shape "
                "(n, d) and y of shape (n,) or (n, k)."
            )
        return cls(blocks, X.shape[1:], y.shape[1:])

    @property
    def layout(self) -> RowLayout:
        single = self.y_shape == ()
        return RowLayout(self.x_shape[0], 1 if single else self.y_shape[0], single)

    def read(self, start: int = 0) -> Iterator[Block]:
        found = (self._block(item, index) for index, item in enumerate(_passed(self.blocks)))
        return skipped(found, start)

    def _block(self, item: Item, index: int) -> Block:
        X, y, weights = _parts(item, index, targets=self.n_outputs > 0)
        n = len(X)
        if (X.shape, y.shape, len(weights)) != ((n, *self.x_shape), (n, *self.y_shape), n):
            raise ValueError(
                f"block {index} has X of shape {X.shape}, y of shape {y.shape} and "
                f"{len(weights)} weights: every block needs {self.n_inputs} columns of X and "
                f"{self.n_outputs} of y, as the first has, and as many targets and weights as rows."
            )
        rows = np.ascontiguousarray(X), y.reshape(n, self.n_outputs), weights
        return checked(*rows, lambda row: f"block {index}, row {row}")

    def fingerprint(self) -> dict[str, str]:
        columns = f"{self.n_inputs} and {self.n_outputs}"
        return {"columns": columns, "first block": digest_of(next(self.read()))}


def _passed(blocks: Blocks) -> Iterable[Item]:
    """The blocks from the first on."""
    if callable(blocks):
        return blocks()
    if iter(blocks) is blocks:
        raise TypeError(ONE_SHOT.format(type(blocks).__name__))
    return blocks


def _parts(item: Item, index: int, targets: bool) -> tuple[Array, Array, Array]:
    """X, y and weights of a block."""
    if not targets:
        X = as_numbers(item[0] if isinstance(item, tuple) else item, f"X of block {index}")
        return X, np.empty((len(X), 0)), np.ones(len(X))
    if not isinstance(item, tuple) or len(item) not in (2, 3):
        raise TypeError(
            f"block {index} is {type(item).__name__}, and not a tuple (X, y) or (X, y, weights): "
            "give such blocks, or X and y as two arguments."
        )
    X = as_numbers(item[0], f"X of block {index}")
    y = as_numbers(item[1], f"y of block {index}")
    if len(item) == 2 or item[2] is None:
        return X, y, np.ones(len(X))
    return X, y, as_numbers(item[2], f"the weights of block {index}")
