"""Rows of a table with categorical columns, as numbers; and the folds of cross-validation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf.data.readers.base import Reader, RowLayout, checked, digest, skipped
from rwf.data.readers.files import values_in
from rwf.data.readers.formats import open_table
from rwf.data.readers.table import FilesReader, Place
from rwf.data.rows import Block
from rwf.data.schema.columns import TableSchema, Unknown

if TYPE_CHECKING:
    import pyarrow

FOLDS = 5  # parts into which rows are dealt
PERIOD = 2000  # groups of rows after which they are dealt alike


@dataclass(frozen=True)
class EncodedReader(FilesReader):
    """Rows of a table, encoded by its schema."""

    schema: TableSchema
    targets: bool  # whether the target and weights are wanted, too
    unknown: Unknown = "error"

    @classmethod
    def of(
        cls, table: object, schema: TableSchema, *, targets: bool, unknown: Unknown = "error"
    ) -> Self:
        """A reader of a path or a dataframe that has the columns of the schema."""
        files = open_table(table)
        for file in files:
            schema.check(file, targets=targets)
        return cls(files, schema, targets, unknown)

    @property
    def layout(self) -> RowLayout:
        names = self.schema.names
        return RowLayout(len(names), int(self.targets), names=names)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.read_columns(targets=self.targets)

    @property
    def categorical(self) -> tuple[str, ...]:
        return self.schema.categorical

    def _block(self, batch: pyarrow.RecordBatch, place: Place) -> Block:
        X, schema, n = self.schema.encode(batch, place, self.unknown), self.schema, batch.num_rows
        y, weights = np.empty((n, 0)), np.ones(n)
        if self.targets and schema.target is not None:
            y = values_in(batch.column(schema.target))[:, None]
        if self.targets and schema.weight is not None:
            weights = values_in(batch.column(schema.weight))
        return checked(X, y, weights, place, schema.names, [str(schema.target)])

    def fingerprint(self) -> dict[str, str]:
        return {**super().fingerprint(), "schema": digest([repr(self.schema).encode()])}


@dataclass(frozen=True)
class Fold(Reader):
    """The rows of a source that are in one of five folds, or those that are not.

    Every five consecutive rows are dealt to the folds at random, so folds are equally large, and do
    not depend on the pieces that a source gives.
    """

    reader: Reader
    index: int
    held: bool  # whether rows of the fold are wanted, or all others

    @property
    def layout(self) -> RowLayout:
        return self.reader.layout

    def read(self, start: int = 0) -> Iterator[Block]:
        return skipped(self._chosen(), start)

    def _chosen(self) -> Iterator[Block]:
        rng = np.random.default_rng(0)
        dealt = rng.permuted(np.tile(np.arange(FOLDS), (PERIOD, 1)), axis=1).ravel()
        row = 0
        for piece in self.reader.read():
            folds = dealt[(row + np.arange(len(piece))) % len(dealt)]
            row += len(piece)
            chosen = np.flatnonzero((folds == self.index) == self.held)
            if len(chosen):
                yield piece.part(chosen)

    def fingerprint(self) -> dict[str, str]:
        return {**self.reader.fingerprint(), "fold": f"{self.index}, {self.held}"}
