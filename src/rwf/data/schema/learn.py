"""What is learned of a table before a fit: kinds of columns, categories, replacements of gaps.

One pass over the rows finds all that is wrong with a table, so that one error or a few lines can
say all of it; a second one is made if columns are encoded by means of the target.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rwf._types import Array
from rwf.data.readers.base import checked, inputs_among, listed, require_columns
from rwf.data.readers.files import TableFile, errors_name, values_in
from rwf.data.readers.table import Place
from rwf.data.scaling import LARGEST_TARGET
from rwf.data.schema.columns import Kind, kind_of
from rwf.data.schema.counts import (
    ColumnCounts,
    DateCounts,
    NumberCounts,
    Sample,
    SpelledCounts,
    TextCounts,
    gaps_at,
    refuse_beyond,
)
from rwf.data.schema.dates import is_text, reads_as_dates
from rwf.data.schema.folds import with_targets
from rwf.data.schema.table import Preparation, TableSchema
from rwf.data.schema.target_encoding import encode_by_target
from rwf.data.schema.text import as_strings, missing_strings, spelled_numbers
from rwf.errors import NoSuchColumnError

if TYPE_CHECKING:
    import pyarrow

MOSTLY = 0.9  # share of numbers in text that is one of numbers
MAX_ONE_HOT = 20  # categories up to which a column is one-hot encoded


@dataclass(frozen=True)
class Roles:
    """What the columns of a table are."""

    target: str
    weight: str | None = None
    group: str | None = None
    features: Sequence[str] | None = None  # the inputs; None for all other columns
    categorical: Sequence[str] = ()  # inputs that are categories although they hold numbers
    named: bool = True  # whether the names are the user's


def learn_schema(
    files: Sequence[TableFile],
    roles: Roles,
    *,
    strict: bool = False,
    max_one_hot: int = MAX_ONE_HOT,
) -> tuple[Preparation, tuple[TableFile, ...]]:
    """Learn the columns of a table: what was done, and the files without rows to be left out.

    Args:
        files: which are one table.
        roles: of its columns.
        strict: refuse a table for which anything must be done, with a list of all of it.
        max_one_hot: categories up to which a column is one-hot encoded.
    """
    names = _chosen(files[0], roles)
    begun = [_begun(files[0], name, roles, max_one_hot) for name in names]
    counts = [each for each in begun if not isinstance(each, str)]
    draft = TableSchema((), roles.target, roles.weight, roles.group, tuple(names), roles.named)
    found = _pass(files, counts, draft)
    unusable = {
        name: each if isinstance(each, str) else each.unusable
        for name, each in zip(names, begun, strict=True)
    }
    left_out = {name: why for name, why in unusable.items() if why}
    if strict:
        _require_none(files[0], found, begun, left_out, draft)
    if found.n_rows == found.without_target:
        raise ValueError(f"no row of {files[0].path} has a target in {roles.target!r}.")
    used = [each for each in counts if not each.unusable]
    if not used:
        used = [each for each in counts if each.unusable == "constant"][:1]
        _require_inputs(files[0], used, left_out)
        left_out.pop(used[0].name)
    y, sample = _unexplained(found), dict(zip(counts, found.sample.rows.T, strict=False))
    schema = replace(draft, columns=tuple(each.column(sample[each], y) for each in used))
    for file in files:
        schema.check(file, targets=True)
    if found.without_target:
        files = [with_targets(file, roles.target) for file in files]
    wide = {each.name for each in used if each.wide}
    schema = encode_by_target(files, schema, wide) if wide else schema
    left = tuple(left_out.items())
    return Preparation(schema, found.n_rows, found.without_target, 0, left), tuple(files)


def _chosen(file: TableFile, roles: Roles) -> Sequence[str]:
    """The input columns."""
    present, where, features = file.schema.names, str(file.path), roles.features
    target, weight, group = roles.target, roles.weight, roles.group
    others = [target, *(name for name in (weight, group) if name is not None)]
    require_columns([*others, *(features or ()), *roles.categorical], present, where)
    if target == weight:
        raise NoSuchColumnError(f"column {target!r} cannot be both the target and the weights.")
    if group in (target, weight) and group is not None:
        raise NoSuchColumnError(f"column {group!r} cannot be that of groups, too: name another.")
    for name in [target, *([] if weight is None else [weight])]:
        if kind_of(file.schema.field(name).type) not in ("number", "nothing"):
            raise ValueError(
                f"column {name!r} of {where} holds {file.schema.field(name).type}: "
                f"{'the target' if name == target else 'weights'} must be numbers."
            )
    if features is None:
        return inputs_among(present, others, None, where)
    used = [name for name in features if name in others]
    if used or len(set(features)) < len(features) or not features:
        raise NoSuchColumnError(
            f"the features {listed(features)} must be different columns, without the target, "
            "the weights and the groups."
        )
    return features


def _begun(file: TableFile, name: str, roles: Roles, max_one_hot: int) -> ColumnCounts | str:
    """The counts of a column before any row; or why it cannot be used."""
    dtype = file.schema.field(name).type
    kind = kind_of(dtype)
    if kind == "text" and name not in roles.categorical:
        kind = _kind_of_text(file, name)
    if kind == "text" or name in roles.categorical:
        return TextCounts(name, str(dtype), max_one_hot)
    if kind == "date":
        return DateCounts(name, str(dtype))
    if kind == "number" and is_text(dtype):
        return SpelledCounts(name, str(dtype))
    if kind == "other":
        return f"it holds {dtype}, which is neither numbers, text nor dates"
    return NumberCounts(name, str(dtype))


def _kind_of_text(file: TableFile, name: str) -> Kind:
    """What a column of text begins with; numbers only where a file has no types."""
    batch = next(iter(file.batches([name], 0, [name])), None)
    if batch is None:
        return "text"
    text = as_strings(batch.column(name), name)
    if reads_as_dates(text):
        return "date"
    known = ~missing_strings(text)
    spelled = known.any() and np.isfinite(spelled_numbers(text))[known].mean() >= MOSTLY
    return "number" if spelled and not file.typed else "text"


@dataclass
class _Found:
    """What a pass over the rows found."""

    sample: Sample
    n_rows: int = 0
    without_target: int = 0
    first: str = field(default="")  # the place of the first row without a target


def _pass(files: Sequence[TableFile], counts: Sequence[ColumnCounts], draft: TableSchema) -> _Found:
    """Count the rows that have a target."""
    wanted = (*(each.name for each in counts), *draft.read_columns(targets=True))
    found = _Found(Sample(len(counts) + 1))
    for file in files:
        require_columns(wanted, file.schema.names, str(file.path))
        row = 0
        for batch in file.batches(wanted, 0, [each.name for each in counts if each.as_text]):
            with errors_name(f"{file.path}, after row {row}"):
                _count(batch, Place(file.path, row), counts, draft, found)
            row += batch.num_rows
    return found


def _count(
    batch: pyarrow.RecordBatch,
    place: Place,
    counts: Sequence[ColumnCounts],
    draft: TableSchema,
    found: _Found,
) -> None:
    y = values_in(batch.column(str(draft.target)))
    missing = np.isnan(y)
    if missing.any() and not found.without_target:
        found.first = place(int(np.argmax(missing)))
    _check_numbers(batch, np.where(missing, 0.0, y), place, draft)
    found.n_rows += len(y)
    found.without_target += int(missing.sum())
    numbers: list[Array] = [each.add(batch.column(each.name), place) for each in counts]
    found.sample.add(np.column_stack([*numbers, y])[~missing])


def _check_numbers(batch: pyarrow.RecordBatch, y: Array, place: Place, draft: TableSchema) -> None:
    """That targets and weights can be used."""
    weights = np.ones(len(y))
    if draft.weight is not None:
        weights = values_in(batch.column(draft.weight))
    checked(np.empty((len(y), 0)), y[:, None], weights, place, (), [str(draft.target)])
    refuse_beyond(LARGEST_TARGET, y, place, str(draft.target))


def _unexplained(found: _Found) -> Array:
    """What least squares on the numbers of a sample leaves of the target."""
    X, y = found.sample.rows[:, :-1], found.sample.rows[:, -1]
    known = np.isfinite(X)
    X = np.where(known, X, 0.0)
    X = X / np.maximum(np.abs(X).max(axis=0), 1e-300)
    means = X.sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    Z = np.column_stack([np.ones(len(X)), np.where(known, X - means, 0.0)])
    residual: Array = y - Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    return residual


def _require_none(
    file: TableFile,
    found: _Found,
    begun: Sequence[ColumnCounts | str],
    left_out: dict[str, str],
    draft: TableSchema,
) -> None:
    """Raise an error that lists all that must be done to use the table, if anything must."""
    problems = [f"column {n!r}: {why}" for n, why in left_out.items() if why in begun]
    problems += [each for c in begun if not isinstance(c, str) for each in c.problems]
    if found.without_target:
        gaps = gaps_at(found.without_target, found.first)
        problems.append(f"column {draft.target!r}, the target: {gaps}")
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        raise ValueError(
            f"{file.path} needs {len(problems)} repairs:\n{lines}\nCorrect the table, or leave out "
            "strict=True, or --strict: then all of this is done, and said."
        )


def _require_inputs(
    file: TableFile, used: Sequence[ColumnCounts], left_out: dict[str, str]
) -> None:
    if not used:
        reasons = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise ValueError(f"no column of {file.path} can be used. {reasons}.")
