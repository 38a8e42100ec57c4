"""Rows of a table with texts, as numbers; and rows without every fifth, or these alone."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from rwf.data.readers import Reader
from rwf.data.readers.base import checked, digest, skipped
from rwf.data.readers.files import TableFile
from rwf.data.readers.table import content_of, place_in, rows_from, total_rows, values_in
from rwf.data.rows import Block
from rwf.data.schema.columns import TableSchema, Unknown
from rwf.data.schema.open import open_any

FOLDS = 5
"""Parts into which rows are dealt."""

PERIOD = 2000
"""Groups of rows after which they are dealt alike."""


@dataclass(frozen=True)
class EncodedReader:
    """Rows of a table, encoded by its schema.

    Args:
        files: in the order of their rows.
        schema: how columns become numbers.
        targets: whether the target and weights are wanted, too.
        unknown: what a text is that was not seen in the fit.
    """

    files: tuple[TableFile, ...]
    schema: TableSchema
    targets: bool
    unknown: Unknown = "error"

    @classmethod
    def of(
        cls, table: object, schema: TableSchema, *, targets: bool, unknown: Unknown = "error"
    ) -> Self:
        """A reader of a path or a frame that has the columns of the schema."""
        files = open_any(table)
        for file in files:
            schema.check(file.schema, str(file.path), targets=targets)
        return cls(files, schema, targets, unknown)

    @property
    def names(self) -> tuple[str, ...]:
        return self.schema.names

    @property
    def n_inputs(self) -> int:
        return len(self.names)

    @property
    def n_outputs(self) -> int:
        return int(self.targets)

    @property
    def single_output(self) -> bool:
        return True

    @property
    def n_rows(self) -> int | None:
        return total_rows(self.files)

    def read(self, start: int = 0) -> Iterator[Block]:
        return rows_from(self.files, start, self._read)

    def _read(self, file: TableFile, row: int) -> Iterator[Block]:
        schema, targets = self.schema, self.schema.target if self.targets else None
        weight = schema.weight if self.targets else None
        columns = [column.name for column in schema.columns]
        columns += [name for name in (targets, weight) if name is not None]
        for batch in file.batches(columns, row, schema.texts):
            if not batch.num_rows:
                continue
            place = functools.partial(place_in, file.path, row)
            y = np.empty((batch.num_rows, 0))
            if targets is not None:
                y = values_in(batch.column(targets))[:, None]
            yield checked(
                schema.encode(batch, place, self.unknown),
                y,
                np.ones(batch.num_rows) if weight is None else values_in(batch.column(weight)),
                place,
                lambda column: f"column {self.names[column]!r}",
                lambda column: f"column {schema.target!r}",
            )
            row += batch.num_rows

    def fingerprint(self) -> dict[str, str]:
        found = {f"file {file.path.name}": content_of(file.path) for file in self.files}
        return {
            "columns": ", ".join(self.names),
            "schema": digest([repr(self.schema).encode()]),
            **found,
        }


@dataclass(frozen=True)
class Fold:
    """The rows of a source that are in one of five folds, or those that are not.

    Every five rows that follow each other are dealt at random, so folds are equally large, and the
    deal does not depend on how a source parts its rows.

    Args:
        reader: the source.
        index: the fold.
        held: whether its rows are wanted, or all others.
        seed: of the deal.
    """

    reader: Reader
    index: int
    held: bool
    seed: int = 0

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.reader.names

    @property
    def n_inputs(self) -> int:
        return self.reader.n_inputs

    @property
    def n_outputs(self) -> int:
        return self.reader.n_outputs

    @property
    def single_output(self) -> bool:
        return self.reader.single_output

    @property
    def n_rows(self) -> Literal[None]:
        return None

    def read(self, start: int = 0) -> Iterator[Block]:
        return skipped(self._chosen(), start)

    def _chosen(self) -> Iterator[Block]:
        rng = np.random.default_rng(self.seed)
        dealt = rng.permuted(np.tile(np.arange(FOLDS), (PERIOD, 1)), axis=1).ravel()
        row = 0
        for piece in self.reader.read():
            folds = dealt[(row + np.arange(len(piece))) % len(dealt)]
            row += len(piece)
            chosen = np.flatnonzero((folds == self.index) == self.held)
            if len(chosen):
                yield piece.part(chosen)

    def fingerprint(self) -> dict[str, str]:
        return {**self.reader.fingerprint(), "fold": f"{self.index}, {self.held}, {self.seed}"}
