"""What is learned of a table before a fit: kinds of columns, categories, replacements of gaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import inputs_among, listed, require_columns
from rwf.data.readers.files import TableFile, arrow, values_in
from rwf.data.schema.columns import (
    CategoryColumn,
    NumberColumn,
    TableSchema,
    as_strings,
    kind_of,
    missing_strings,
)
from rwf.errors import NoSuchColumnError

if TYPE_CHECKING:
    import pyarrow

Missing = Literal["error", "impute"]  # by the median, or the most frequent category
MOST_CATEGORIES = 200  # categories of one column; one with more is an identifier, or prose
MEDIAN_ROWS = 2**17  # rows for medians; of more rows, a sample


def learn_schema(
    files: Sequence[TableFile],
    target: str,
    features: Sequence[str] | None = None,
    weight: str | None = None,
    missing: Missing = "error",
    group: str | None = None,
) -> TableSchema:
    """Learn the columns: in one pass, if some are categorical or missing values are replaced."""
    if missing not in ("error", "impute"):
        raise ValueError(f"missing={missing!r} is unknown: use 'error' or 'impute'.")
    schema, where = files[0].schema, str(files[0].path)
    names = _chosen(schema.names, where, target, features, weight, group)
    for name in [target, *([] if weight is None else [weight])]:
        if kind_of(schema.field(name).type) != "number":
            raise ValueError(
                f"column {name!r} of {where} holds {schema.field(name).type}: "
                f"{'the target' if name == target else 'weights'} must be numbers."
            )
    columns = tuple(_draft(name, schema.field(name).type, where) for name in names)
    draft = TableSchema(columns, target, weight, group)
    for file in files[1:]:
        draft.check(file, targets=True)
    if missing == "error" and not draft.categorical:
        return draft
    return _looked_through(files, draft, missing)


def _chosen(
    present: Sequence[str],
    where: str,
    target: str,
    features: Sequence[str] | None,
    weight: str | None,
    group: str | None,
) -> Sequence[str]:
    """The input columns."""
    others = [target, *(name for name in (weight, group) if name is not None)]
    require_columns([*others, *(features or ())], present, where)
    if target == weight:
        raise NoSuchColumnError(f"column {target!r} cannot be both the target and the weights.")
    if group in (target, weight) and group is not None:
        raise NoSuchColumnError(f"column {group!r} cannot be that of groups, too: name another.")
    if features is None:
        return inputs_among(present, others, None, where)
    used = [name for name in features if name in others]
    if used or len(set(features)) < len(features) or not features:
        raise NoSuchColumnError(
            f"the features {listed(features)} must be different columns, without the target, "
            "the weights and the groups."
        )
    return features


def _draft(name: str, dtype: pyarrow.DataType, where: str) -> NumberColumn | CategoryColumn:
    """A column of which only the type is known."""
    kind = kind_of(dtype)
    if kind is None:
        raise ValueError(
            f"column {name!r} of {where} holds {dtype}, which is neither numbers nor text: turn it "
            "into numbers, such as days since a date, or leave it out by naming all other features."
        )
    dtype = str(dtype)
    return NumberColumn(name, dtype) if kind == "number" else CategoryColumn(name, dtype, ())


def _looked_through(
    files: Sequence[TableFile], draft: TableSchema, missing: Missing
) -> TableSchema:
    """The schema with its categories, and replacements of missing values."""
    counts = {name: Counter[str]() for name in draft.categorical}
    wanted = draft.read_columns(targets=False)
    numbers = [name for name in wanted if name not in counts]
    sample = _Sample(len(numbers)) if missing == "impute" else None
    for batch in (b for file in files for b in file.batches(wanted, 0, draft.categorical)):
        for name, seen in counts.items():
            strings = as_strings(batch.column(name), name)
            _count(strings.filter(arrow().array(~missing_strings(strings))), seen, name)
        if sample is not None and numbers:
            sample.add(np.column_stack([values_in(batch.column(name)) for name in numbers]))
    medians = dict(zip(numbers, sample.medians if sample else [], strict=False))
    columns = tuple(
        _number(column, medians.get(column.name))
        if isinstance(column, NumberColumn)
        else _category(column, counts[column.name], missing)
        for column in draft.columns
    )
    return replace(draft, columns=columns)


def _number(column: NumberColumn, median: float | None) -> NumberColumn:
    if median is not None and not np.isfinite(median):
        raise ValueError(
            f"column {column.name!r} has no finite number in it, so that its median cannot "
            "replace missing values: leave it out by naming all other features."
        )
    return replace(column, fill=median)


def _category(column: CategoryColumn, seen: Counter[str], missing: Missing) -> CategoryColumn:
    if not seen:
        raise ValueError(
            f"column {column.name!r} has no text in it: leave it out by naming all other features."
        )
    top = min(seen, key=lambda category: (-seen[category], category))
    fill = top if missing == "impute" else None
    return replace(column, categories=tuple(sorted(seen)), fill=fill)


def _count(strings: pyarrow.Array, seen: Counter[str], name: str) -> None:
    for entry in arrow("compute").value_counts(strings).to_pylist():
        seen[entry["values"]] += entry["counts"]
    if len(seen) > MOST_CATEGORIES:
        raise ValueError(
            f"column {name!r} holds more than {MOST_CATEGORIES} categories, such as "
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
