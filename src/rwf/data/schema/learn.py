"""What is learned of a table before a fit: kinds of columns, categories, and what fills gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from rwf._types import Array
from rwf.data.readers.files import TableFile, arrow
from rwf.data.readers.table import values_in
from rwf.data.schema.columns import (
    CategoryColumn,
    NumberColumn,
    TableSchema,
    as_texts,
    kind_of,
    listed,
    missing_texts,
    require_columns,
)
from rwf.errors import NoSuchColumnError

if TYPE_CHECKING:
    import pyarrow

Missing = Literal["error", "impute"]
"""What a missing value is: an error, or the median or the most frequent text."""

MOST_CATEGORIES = 200
"""Texts of one column; one with more is an identifier, or prose."""

MEDIAN_ROWS = 2**17
"""Rows that medians are taken of; of more, a sample."""


def learn_schema(
    files: Sequence[TableFile],
    target: str,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    missing: Missing = "error",
) -> TableSchema:
    """Look through a table once, if it has texts or missing values are to be filled in.

    Args:
        files: of the table.
        target: the column of y.
        features: input columns, in the order of the model; ``None`` for all others.
        weight: the column that says how many times a row counts.
        missing: what a missing value is.
    """
    if missing not in ("error", "impute"):
        raise ValueError(f"missing={missing!r} is unknown: use 'error' or 'impute'.")
    schema, where = files[0].schema, str(files[0].path)
    names = _chosen(schema.names, where, target, features, weight)
    for name in (target, *([] if weight is None else [weight])):
        if kind_of(schema.field(name).type) != "number":
            raise ValueError(
                f"column {name!r} of {where} holds {schema.field(name).type}: "
                f"{'the target' if name == target else 'weights'} must be numbers."
            )
    kinds = {name: _kind(name, schema.field(name).type, where) for name in names}
    draft = TableSchema(
        tuple(
            NumberColumn(name, str(schema.field(name).type))
            if kinds[name] == "number"
            else CategoryColumn(name, str(schema.field(name).type), ())
            for name in names
        ),
        target,
        weight,
    )
    for file in files[1:]:
        draft.check(file.schema, str(file.path), targets=True)
    if missing == "error" and not draft.texts:
        return draft
    return _looked_through(files, draft, missing)


def _chosen(
    present: Sequence[str],
    where: str,
    target: str,
    features: Sequence[str] | None,
    weight: str | None,
) -> list[str]:
    """The input columns."""
    others = [target, *([] if weight is None else [weight])]
    require_columns([*others, *(features or ())], present, where)
    if target == weight:
        raise NoSuchColumnError(f"column {target!r} cannot be both the target and the weights.")
    if features is None:
        names = [name for name in present if name not in others]
        if not names:
            raise ValueError(f"{where} has no column beside {listed(others)}.")
        return names
    used = [name for name in features if name in others]
    if used or len(set(features)) < len(features) or not features:
        raise NoSuchColumnError(
            f"the features {listed(features)} must be different columns, without the target "
            "and the weights."
        )
    return list(features)


def _kind(name: str, dtype: pyarrow.DataType, where: str) -> Literal["number", "text"]:
    kind = kind_of(dtype)
    if kind is None:
        raise ValueError(
            f"column {name!r} of {where} holds {dtype}, which is neither numbers nor text: turn it "
            "into numbers, such as days since a date, or leave it out by naming all other features."
        )
    return kind


def _looked_through(
    files: Sequence[TableFile], draft: TableSchema, missing: Missing
) -> TableSchema:
    """The schema with its categories, and what fills gaps."""
    counts = {name: Counter[str]() for name in draft.texts}
    numbers = [c.name for c in draft.columns if c.name not in counts]
    sample = _Sample(len(numbers)) if missing == "impute" else None
    wanted = [column.name for column in draft.columns]
    for batch in _batches(files, wanted, draft.texts):
        for name, seen in counts.items():
            texts = as_texts(batch.column(name), name)
            _count(texts.filter(arrow().array(~missing_texts(texts))), seen, name)
        if sample is not None and numbers:
            sample.add(np.column_stack([values_in(batch.column(name)) for name in numbers]))
    medians = dict(zip(numbers, sample.medians if sample else [], strict=False))
    columns: list[NumberColumn | CategoryColumn] = []
    for column in draft.columns:
        if isinstance(column, NumberColumn):
            fill = medians.get(column.name)
            if fill is not None and not np.isfinite(fill):
                raise ValueError(
                    f"column {column.name!r} has no finite number in it, so that its median cannot "
                    "fill gaps: leave it out by naming all other features."
                )
            columns.append(NumberColumn(column.name, column.dtype, fill))
            continue
        seen = counts[column.name]
        if not seen:
            raise ValueError(
                f"column {column.name!r} has no text in it: leave it out by naming all other "
                "features."
            )
        top = min(seen, key=lambda text: (-seen[text], text)) if missing == "impute" else None
        columns.append(CategoryColumn(column.name, column.dtype, tuple(sorted(seen)), top))
    return TableSchema(tuple(columns), draft.target, draft.weight)


def _batches(
    files: Sequence[TableFile], columns: Sequence[str], texts: Sequence[str]
) -> Iterator[pyarrow.RecordBatch]:
    for file in files:
        yield from file.batches(columns, 0, texts)


def _count(texts: pyarrow.Array, seen: Counter[str], name: str) -> None:
    for entry in arrow("compute").value_counts(texts).to_pylist():
        seen[entry["values"]] += entry["counts"]
    if len(seen) > MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} holds more than {MOST_CATEGORIES} different texts, such as "
            f"{listed(sorted(seen)[:3])}: it is one-hot encoded, and so many are an identifier "
            "rather than categories. Join rare ones, or leave it out by naming all other features."
        )


class _Sample:
    """Rows for medians: all of them, or as many as are enough, each with the same chance."""

    def __init__(self, width: int) -> None:
        self._rows, self._keys = np.empty((0, width)), np.empty(0)
        self._rng = np.random.default_rng(0)

    def add(self, rows: Array) -> None:
        keys = np.concatenate([self._keys, self._rng.uniform(size=len(rows))])
        table = np.vstack([self._rows, rows])
        if len(keys) > MEDIAN_ROWS:
            kept = np.argpartition(-keys, MEDIAN_ROWS)[:MEDIAN_ROWS]
            keys, table = keys[kept], table[kept]
        self._rows, self._keys = table, keys

    @property
    def medians(self) -> list[float]:
        """Of the values that are there; NaN where there is none."""
        found = []
        for column in self._rows.T:
            values = column[np.isfinite(column)]
            found.append(float(np.median(values)) if len(values) else float("nan"))
        return found
