"""Rows of a table, encoded by its schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from rwf.data.readers.base import RowLayout, checked, digest
from rwf.data.readers.files import TableFile, values_in
from rwf.data.readers.table import FilesReader, Place
from rwf.data.rows import Block
from rwf.data.schema.folds import dealt
from rwf.data.schema.table import TableSchema

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class EncodedReader(FilesReader):
    """Rows of a table, encoded by its schema."""

    schema: TableSchema
    targets: bool  # whether the target and weights are wanted, too
    strict: bool = False  # whether missing values and new categories are errors
    learning: bool = False  # whether these are the rows that the schema was learned from

    @classmethod
    def of(
        cls,
        files: Sequence[TableFile],
        schema: TableSchema,
        *,
        targets: bool,
        strict: bool = False,
        learning: bool = False,
    ) -> Self:
        """A reader of files that have the columns of the schema."""
        for file in files:
            schema.check(file, targets=targets)
        return cls(tuple(files), schema, targets, strict, learning)

    @property
    def layout(self) -> RowLayout:
        schema = self.schema
        return RowLayout(
            len(schema.names),
            int(self.targets),
            names=schema.given if schema.named else None,
            n_given=len(schema.given),
        )

    @property
    def columns(self) -> tuple[str, ...]:
        return self.schema.read_columns(targets=self.targets)

    @property
    def as_text(self) -> tuple[str, ...]:
        return self.schema.as_text

    @cached_property
    def _small(self) -> Block | None:
        return super().read_if_small()

    def read_if_small(self) -> Block | None:
        return self._small

    def _block(self, batch: pyarrow.RecordBatch, place: Place) -> Block:
        schema, n = self.schema, batch.num_rows
        folds = dealt(place.first + np.arange(n)) if self.learning else None
        X = schema.encode(batch, place, strict=self.strict, folds=folds)
        y, weights = np.empty((n, 0)), np.ones(n)
        if self.targets and schema.target is not None:
            y = values_in(batch.column(schema.target))[:, None]
        if self.targets and schema.weight is not None:
            weights = values_in(batch.column(schema.weight))
        return checked(X, y, weights, place, schema.names, [str(schema.target)])

    def fingerprint(self) -> dict[str, str]:
        return {**super().fingerprint(), "schema": digest([repr(self.schema).encode()])}
