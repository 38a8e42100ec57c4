"""The rows of a table as users give them: a path, a dataframe or arrays, and what columns are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import validate_data

from rwf.data.readers import LoadedTable, arrow_column, arrow_table, open_table
from rwf.data.readers.base import require_columns
from rwf.data.readers.files import TableFile, arrow
from rwf.data.schema import Roles, TableSchema, with_targets
from rwf.estimators.validation import refuse_what_is_no_number

if TYPE_CHECKING:
    import pyarrow
    from sklearn.base import BaseEstimator

Table: TypeAlias = object  # a path, a dataframe of pandas, polars or pyarrow, or an array
Values: TypeAlias = ArrayLike | str | None  # one for each row, or the name of a column

ROLES = {"target": "y", "weight": "weights", "group": "groups"}  # names of columns without one


def open_training(
    estimator: BaseEstimator,
    X: Table,
    others: tuple[Values, Values, Values],
    known: TableSchema | None = None,
) -> tuple[tuple[TableFile, ...], Roles]:
    """The files of a table, with y, weights and groups as columns, and which columns these are.

    Args:
        estimator: for errors; it notes the columns of an array.
        X: the table, or its inputs.
        others: the target, weights and groups, or the names of their columns.
        known: the columns of the fit, for rows that are added to it.
    """
    given = dict(zip(ROLES, others, strict=True))
    if known is not None:
        given = {r: getattr(known, r) if v is None else v for r, v in given.items()}
    if isinstance(X, str | os.PathLike):
        roles = _named(X, given)
        return open_table(X), roles
    loaded, named = _loaded(estimator, X, None if known is None else known.given)
    table = loaded.table
    for role, values in given.items():
        if values is not None and not isinstance(values, str):
            own = getattr(values, "name", None) if known is None else getattr(known, role)
            name = own if isinstance(own, str) else _new_name(ROLES[role], table)
            if name in table.column_names:
                raise ValueError(
                    f"{name!r} was given beside X, and X has a column of this name: leave that "
                    f"out, or name it, fit(X, target={name!r})."
                )
            table, given[role] = _attached(table, role, name, values)
    return (LoadedTable(loaded.path, table),), replace(_named(X, given), named=named)


def open_known(
    estimator: BaseEstimator, schema: TableSchema, X: Table, others: tuple[Values, Values, Values]
) -> tuple[TableFile, ...]:
    """The files of a table with the columns of a fit, without rows that have no target."""
    if schema.target is None:
        raise ValueError(
            "the model was fitted to numbers, without the name of its target: load it with "
            "rwf.load, or fit a table by rwf fit."
        )
    files, roles = open_training(estimator, X, others, schema)
    if roles.target != schema.target:
        raise ValueError(f"the target is {roles.target!r}, and was {schema.target!r} in the fit.")
    for file in files:
        require_columns([roles.target], file.schema.names, str(file.path))
    return tuple(with_targets(file, roles.target) for file in files)


def _named(X: Table, given: dict[str, Values]) -> Roles:
    """Which columns are what, if all of them are given by their names."""
    what = repr(os.fspath(X)) if isinstance(X, str | os.PathLike) else "X"
    if given["target"] is None:
        raise ValueError(
            "fit requires y to be passed, but the target y is None: pass fit(X, y), or name a "
            f"column of the table, fit({what}, target='price')."
        )
    names = {role: name for role, name in given.items() if name is None or isinstance(name, str)}
    if len(names) < len(given):
        raise ValueError(
            f"with the path {what}, the target, weights and groups are names of columns: pass "
            f"fit({what}, target='price')."
        )
    return Roles(str(names["target"]), names["weight"], names["group"])


def open_inputs(estimator: BaseEstimator, X: Table, given: Sequence[str]) -> tuple[TableFile, ...]:
    """The files of a table of inputs for a fitted estimator."""
    if isinstance(X, str | os.PathLike):
        return open_table(X)
    return (_loaded(estimator, X, given)[0],)


def _loaded(
    estimator: BaseEstimator, X: Table, given: Sequence[str] | None
) -> tuple[LoadedTable, bool]:
    """A table in memory, and whether its columns have names of the user's.

    ``given`` are the names of the columns of a fit, which those of an array get by their order.
    """
    found = arrow_table(X)
    if found is not None:
        return LoadedTable(Path("the dataframe"), found), True
    if hasattr(X, "to_dataframe"):
        open_table(X)  # raises an error that says how
    if isinstance(X, list | tuple) and np.asarray(X).dtype.kind in "US":
        X = np.asarray(X, dtype=object)  # numbers beside text stay numbers
    rows = validate_data(estimator, X, reset=given is None, dtype=None, ensure_all_finite=False)
    if rows.dtype.kind in "biuf":
        rows = rows.astype(np.float64)
    elif rows.dtype.kind in "Mm":
        rows = rows.astype(f"{rows.dtype.kind}8[us]")
    names = given if given is not None else [f"x{i}" for i in range(rows.shape[1])]
    columns = dict(zip(names, map(arrow_column, rows.T), strict=True))
    return LoadedTable(Path("the array"), arrow().table(columns)), False


def _new_name(name: str, table: pyarrow.Table) -> str:
    """The name, or a longer one that no column has."""
    return name if name not in table.column_names else _new_name(f"{name}_", table)


def _attached(
    table: pyarrow.Table, role: str, name: str, values: ArrayLike
) -> tuple[pyarrow.Table, str]:
    """The table with one more column, and its name."""
    if role == "group":
        column = arrow_column(np.asarray(values))
    else:
        numbers = column_or_1d(values, warn=True)
        refuse_what_is_no_number("y" if role == "target" else "sample_weight", numbers)
        column = arrow().array(np.asarray(numbers, dtype=np.float64), from_pandas=True)
    check_consistent_length(table, column)
    return table.append_column(name, column), name
