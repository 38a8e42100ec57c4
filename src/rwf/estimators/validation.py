"""Checks at the border: what is wrong with an input, where, and what to do about it."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from rwf._types import FloatArray
from rwf.data.readers import (
    Data,
    Reader,
    Targets,
    columns_of,
    is_collection,
    is_dataframe,
    names_of,
    open_inputs,
    open_rows,
    values_of,
)
from rwf.data.rows import Block, check_weights, copies_among, distinct, non_finite, repeated_share
from rwf.errors import NoImprovementWarning, RepeatedInputsWarning
from rwf.fit.cards import no_better

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from rwf.fit.report import FitReport


def check_inputs(
    estimator: BaseEstimator, X: ArrayLike, *, reset: bool, keep_float32: bool = False
) -> FloatArray:
    """X as a finite float array of the right width; errors name the column and the row."""
    dtype = [np.float64, np.float32] if keep_float32 else np.float64
    _refuse_dates(X)
    try:
        checked = validate_data(
            estimator, X, reset=reset, dtype=dtype, ensure_all_finite=False, order="C"
        )
    except ValueError as error:
        if "could not convert string" in str(error):
            raise ValueError(_text_column(X)) from None
        raise
    _require_finite("X", checked, getattr(X, "columns", None))
    return checked  # type: ignore[no-any-return]


def check_data(
    estimator: BaseEstimator,
    X: Data,
    y: Targets | None,
    sample_weight: Targets | None,
    *,
    reset: bool,
    inputs: list[str] | None = None,
) -> tuple[Block | Reader, bool]:
    """Rows in memory, or a reader of them, and whether y is one-dimensional.

    ``inputs`` are the names of the input columns of a table, if some others are none.
    """
    names = inputs if reset else fitted_names(estimator)
    if not reset:
        _require_names(X, names)
    reader = X if isinstance(X, Reader) else open_rows(X, y, sample_weight, names)
    if reader is not None:
        _check_columns(estimator, reader, reset=reset)
        return reader, reader.layout.single_output
    targets, weight = names_of(y), names_of(sample_weight)
    if targets is None or not is_dataframe(X):
        if inputs is not None and is_dataframe(X):
            X = columns_of(X, inputs)  # type: ignore[assignment]
        return check_rows(estimator, X, y, sample_weight, reset=reset)  # type: ignore[arg-type]
    if names is None:
        others = {*targets, *(weight or ())}
        names = [name for name in X.columns if name not in others]
    values = values_of(X, targets)
    rows, _ = check_rows(
        estimator,
        columns_of(X, names),  # type: ignore[arg-type]
        values,
        values_of(X, weight)[:, 0] if weight else sample_weight,  # type: ignore[arg-type]
        reset=reset,
    )
    return rows, isinstance(y, str)


def require_memory(X: Data, y: Targets | None, name: str) -> None:
    """That rows can be read into memory, for a parameter that needs all of them."""
    if is_collection(X) or (y is None and not isinstance(X, Reader)):
        raise ValueError(
            f"{name} needs all rows in memory, and is not for blocks of rows or Dask: give arrays, "
            "a dataframe, or the path of a file, or a sample of the rows."
        )


def fitted_names(estimator: BaseEstimator) -> list[str] | None:
    """The names of the columns that an estimator was fitted to, if they had names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else list(names)


def _check_columns(estimator: BaseEstimator, reader: Reader, *, reset: bool) -> None:
    """Note the columns of a reader, as scikit-learn does, or compare them with those noted."""
    if reset:
        estimator.n_features_in_ = _n_given(reader)
        if reader.layout.names is not None:
            estimator.feature_names_in_ = np.array(reader.layout.names, dtype=object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
    elif _n_given(reader) != estimator.n_features_in_:
        raise ValueError(
            f"X has {_n_given(reader)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )


def _n_given(reader: Reader) -> int:
    """How many columns were given, before they were encoded."""
    return reader.n_inputs if reader.layout.n_given is None else reader.layout.n_given


def open_checked(estimator: BaseEstimator, X: Data) -> Reader | None:
    """A reader of inputs for a fitted estimator; ``None`` if they are in memory."""
    names = fitted_names(estimator)
    _require_names(X, names)
    reader = X if isinstance(X, Reader) else open_inputs(X, names)
    if reader is not None:
        _check_columns(estimator, reader, reset=False)
    return reader


def _require_names(X: Data, names: list[str] | None) -> None:
    if names is None and isinstance(X, str | os.PathLike):
        raise ValueError(
            "the model was fitted to columns without names, so it cannot know which columns of "
            f"{str(X)!r} it should take: give it arrays."
        )


def check_rows(
    estimator: BaseEstimator,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    reset: bool,
) -> tuple[Block, bool]:
    """Rows ready to fit, and whether y was one-dimensional."""
    if y is None:
        raise ValueError("fit requires y to be passed, but the target y is None: pass fit(X, y).")
    inputs = check_inputs(estimator, X, reset=reset)
    refuse_what_is_no_number("y", y)
    targets = check_array(
        y, ensure_2d=False, dtype=np.float64, ensure_all_finite=False, input_name="y"
    )
    if targets.ndim not in (1, 2):
        raise ValueError(f"y has shape {targets.shape}: give one column, (n,), or several, (n, k).")
    _require_finite("y", targets.reshape(len(targets), -1), None)
    if len(targets) != len(inputs):
        raise ValueError(
            f"X has {len(inputs)} rows and y has {len(targets)}: inconsistent numbers of samples. "
            "Give one target for each row."
        )
    weights = _check_sample_weight(sample_weight, inputs, dtype=np.float64)
    check_weights(weights, lambda row: f"sample_weight[{row}] =", complete=True)
    rows = Block(inputs, targets.reshape(len(targets), -1), weights)  # type: ignore[arg-type]
    return rows, targets.ndim == 1


def _require_finite(name: str, values: FloatArray, columns: ArrayLike | None) -> None:
    bad = non_finite(values)
    if not len(bad):
        return
    row, column = bad[0]
    what = "NaN" if np.isnan(values[row, column]) else "infinity"
    label = f" ({np.asarray(columns)[column]!r})" if columns is not None else ""
    raise ValueError(
        f"{name} contains {what} in row {row}, column {column}{label}; {len(bad)} entries in "
        "all are NaN or infinite. Drop those rows, or fill them in, for example with "
        "sklearn.impute.SimpleImputer."
    )


def _text_column(X: ArrayLike) -> str:
    """What to say of an input that holds text."""
    names = getattr(X, "columns", None)
    table = np.asarray(X, dtype=object)
    for column in range(table.shape[1]):
        for row, value in enumerate(table[:, column]):
            try:
                float(value)
            except (TypeError, ValueError):
                label = f" ({np.asarray(names)[column]!r})" if names is not None else ""
                return (
                    f"could not convert string to float: column {column}{label} of X holds text, "
                    f"such as {value!r} in row {row}. {TABLES}"
                )
    return f"X holds text that is no number. {TABLES}"


def _refuse_dates(X: ArrayLike) -> None:
    """Raise an error if X holds dates, whose numbers depend on the unit in which they are kept."""
    dtypes = {"X": getattr(X, "dtype", None)}
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        names = (f"column {name!r} of X" for name in X.columns)
        dtypes = dict(zip(names, X.dtypes, strict=True))
    for label, dtype in dtypes.items():
        if any(word in str(dtype).lower() for word in ("date", "time", "duration", "period")):
            raise ValueError(
                f"{label} holds dates ({dtype}), which are numbers only in some unit. {TABLES}"
            )


def refuse_what_is_no_number(name: str, values: ArrayLike) -> None:
    """Raise an error if targets or weights are text or dates."""
    found = np.asarray(values)
    if found.dtype.kind in "Mm":
        raise ValueError(
            f"{name} holds dates ({found.dtype}): turn them into numbers, such as days since one."
        )
    flat = found.ravel()
    text = found.dtype.kind in "US" or (found.dtype == object and _first_text(flat) is not None)
    if text:
        row = 0 if found.dtype != object else _first_text(flat)
        raise ValueError(
            f"{name} holds text, such as {str(flat[row])!r}, and must hold numbers. The name of a "
            "column is one string, with a dataframe or a path as X: rwf.TableRegressor takes "
            "tables as they are."
        )


def _first_text(values: NDArray[np.generic]) -> int | None:
    return next((row for row, value in enumerate(values) if isinstance(value, str)), None)


TABLES = (
    "rwf.TableRegressor takes text, dates and missing values as they are; or encode the column, or "
    "leave it out."
)

MANY_REPEATED = 0.2  # share of rows with the inputs of another row at which groups are advised

RandomState = int | np.random.RandomState | np.random.Generator | None


def warn_if_repeated(rows: Block) -> None:
    """Warn if many rows have the inputs of another."""
    known = distinct(rows)  # one column is often rounded
    share = repeated_share(known.X) if rows.X.shape[1] > 1 else 0.0
    copied = copies_among(known) / len(rows) if (rows.weights == 1.0).all() else 0.0
    if copied > MANY_REPEATED:
        said = (
            f"{copied:.0%} of the rows are exact copies of others. Up to a few thousand rows these "
            "count once; drop them from larger tables. If they are observations of their own, pass "
            "each once, and its number as sample_weight."
        )
    elif share > MANY_REPEATED:
        said = (
            f"{share:.0%} of the rows have the inputs of another row, so that single held-out rows "
            "say little about new inputs, and choices and intervals may be too optimistic. If rows "
            "belong together, such as those of a site, pass groups=, or blocks= for places."
        )
    else:
        return
    warnings.warn(said, RepeatedInputsWarning, stacklevel=_level_outside())


def warn_if_no_better(report: FitReport) -> None:
    """Warn if a constant or a straight line predicts as well."""
    if not report.beats_trivial:
        said = f"{no_better(report)}. See fit_report_."
        warnings.warn(said, NoImprovementWarning, stacklevel=_level_outside())


def _level_outside() -> int:
    """The stacklevel at which a warning of the caller shows the user's line."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("rwf."):
        frame, level = frame.f_back, level + 1
    return level


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator from what scikit-learn calls a random state.

    An integer seeds a stream of our own: users make data with ``default_rng(0)`` too, and rows
    sampled with the very numbers that became X would all lie at one end of it.
    """
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    return np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(0x727766,)))
