"""What must hold of the stored columns of a table."""

from __future__ import annotations

from rwf.data.schema import FOLDS, CategoryColumn, DateColumn, TableSchema, TargetEncodedColumn
from rwf.data.schema.dates import CYCLES
from rwf.persistence.registry import require


def check_table(part: object) -> None:
    match part:
        case CategoryColumn(categories=names, fill=fill):
            require(len(set(names)) == len(names) > 0, "categories are repeated, or there are none")
            require(fill in names, "gaps are filled by no category")
        case TargetEncodedColumn(categories=names, sums=sums, counts=counts):
            lengths = {len(row) for row in (*sums, *counts)}
            require(lengths == {len(names)}, "sums are of other categories")
            require(len(sums) == len(counts) == FOLDS, "sums are of other folds")
            require(part.smoothing > 0, "means are not smoothed")
        case DateColumn(cycles=cycles):
            require(set(cycles) <= set(CYCLES), "there is no such cycle")
        case TableSchema(columns=columns):
            used = [column.name for column in columns]
            used += [name for name in (part.target, part.weight) if name is not None]
            require(len(columns) > 0, "a table has no columns")
            require(len(set(used)) == len(used), "columns of a table are repeated")
