"""Fitted estimators to files and back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rwf
from rwf.data.schema import TableSchema
from rwf.diagnostics.scores import Scores
from rwf.errors import ModelFileError, RowsInFileWarning, UnsavableModelError
from rwf.fit.report import FitReport
from rwf.models.blended import NeighborBlend
from rwf.models.calibrated import LocalCalibration
from rwf.models.dense import DenseModel
from rwf.models.spike_slab import SpikeSlabModel
from rwf.models.tree import TreeModel
from rwf.persistence import file
from rwf.persistence.checks import check_estimator, check_table
from rwf.persistence.codec import (
    BOOL,
    INT,
    Decoder,
    Encoder,
    Instance,
    Kind,
    Maybe,
    Mismatch,
    Names,
)
from rwf.persistence.file import Json
from rwf.persistence.parameters import decode_parameter, encode_parameter
from rwf.persistence.records import RECORDS

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

ESTIMATORS = ("RWFRegressor", "RFFRegressor")
"""Names of ``rwf``, where the classes are looked up when they are needed: they know this module."""

FITTED: dict[str, Kind] = {
    "n_features_in_": INT,
    "_single_output": BOOL,
    "model_": Instance(DenseModel, SpikeSlabModel, TreeModel),
    "correction_": Maybe(Instance(LocalCalibration, NeighborBlend)),
    "fit_report_": Instance(FitReport),
    "n_iter_": INT,
}
SOMETIMES: dict[str, Kind] = {
    "_by_name": BOOL,
    "feature_names_in_": Names(),
}
"""Attributes that not every fit has."""

CACHED = (
    "rwf.uncertainty.extrapolation.Background",
    "rwf.uncertainty.extrapolation.Remainder",
    "rwf.inference.spike_slab.mixture.Mixture",
    "rwf.inference.spike_slab.windows.WindowedMixture",
    "rwf.inference.multifrontal._rows.ColumnTable",
    "rwf.inference.multifrontal.inverse.SelectedInverse",
)
"""What a model computes when it first needs it; pickle and skops keep it, model files do not."""

TABLE: dict[str, Kind] = {
    "schema": Instance(TableSchema),
    "scores": Maybe(Instance(Scores)),
}
"""What a model of a table has beside its regressor."""

SKOPS_TYPES = (
    *(f"{record.cls.__module__}.{record.cls.__qualname__}" for record in RECORDS.values()),
    "rwf.estimators.regressor.RWFRegressor",
    "rwf.estimators.fourier.RFFRegressor",
    *CACHED,
)
"""The classes of a fitted estimator, for ``skops.io.load(file, trusted=SKOPS_TYPES)``."""


def save(
    estimator: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    with_rows: bool | None = None,
    schema: TableSchema | None = None,
    scores: Scores | None = None,
) -> None:
    """Write a fitted estimator to a file; see :meth:`rwf.estimators.base.FeatureRegressor.save`.

    A schema says which columns of a table it takes, and scores how it did when it was fitted: with
    them, the file is that of a :class:`rwf.TableModel`.
    """
    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not getattr(rwf, name):
        raise UnsavableModelError(
            f"{name} is a class of your own, and a model file has no code in it: save an "
            f"{' or '.join(ESTIMATORS)}, or keep the model by pickle or joblib."
        )
    _mind_rows(estimator, with_rows)
    if isinstance(estimator.model_, DenseModel | TreeModel) and estimator.model_.n_rows > 0:
        _ = estimator.model_.fits  # what is found now is kept, and need not be found again
    table = None if schema is None else (schema, scores)
    _write(estimator, name, estimator.get_params(deep=False), path, table)


def _mind_rows(estimator: BaseEstimator, with_rows: bool | None) -> None:
    """Where a model keeps all training rows: may they be in the file?"""
    if not isinstance(estimator.correction_, NeighborBlend):
        return
    kept = "this model keeps all training rows, because the nearest are asked for predictions"
    if with_rows is None:
        warnings.warn(
            f"{kept}, and so does its file: pass with_rows=True if that is meant, or fit with "
            "second_opinion=False.",
            RowsInFileWarning,
            stacklevel=4,
        )
    elif not with_rows:
        raise ValueError(f"{kept}: pass with_rows=True, or fit with second_opinion=False.")


def _write(
    estimator: BaseEstimator,
    name: str,
    parameters: Mapping[str, object],
    path: str | os.PathLike[str],
    table: tuple[TableSchema, Scores | None] | None = None,
) -> None:
    encoder = Encoder(RECORDS)
    given = {key: encode_parameter(key, value, encoder) for key, value in parameters.items()}
    present = {key: kind for key, kind in SOMETIMES.items() if key in vars(estimator)}
    fitted: dict[str, Json] = {}
    for key, kind in {**FITTED, **present}.items():
        try:
            fitted[key] = kind.encode(getattr(estimator, key), encoder, {})
        except Mismatch as error:
            raise UnsavableModelError(f"{key} cannot be saved: {error}.") from None
    header: dict[str, Json] = {
        "rwf": rwf.__version__,
        "estimator": name,
        "parameters": given,
        "fitted": fitted,
    }
    if table is not None:
        pairs = zip(TABLE.items(), table, strict=True)
        header["table"] = {key: kind.encode(value, encoder, {}) for (key, kind), value in pairs}
    header["objects"] = encoder.objects
    file.write(Path(path), header, encoder.arrays)


def load(path: str | os.PathLike[str]) -> BaseEstimator:
    """The fitted estimator that was saved to a file.

    Nothing in the file is run, and only classes of rwf are made. A file that is damaged, or of a
    newer with ``mean_only=True`` gives a small estimator with ``predict`` alone, and one that
    ``rwf fit`` wrote, of a table, a :class:`rwf.TableModel`.
    """
    try:
        header, arrays = file.read(Path(path))
        decoder = Decoder(RECORDS, header.get("objects"), arrays)
        estimator = _made(header, decoder)
        return _of_table(estimator, header["table"], decoder) if "table" in header else estimator
    except Mismatch as error:
        raise ModelFileError(f"{path} makes no sense: {error}.") from None
    except (RecursionError, MemoryError, OverflowError, ArithmeticError) as error:
        raise ModelFileError(f"{path} makes no sense: {error!r}.") from None


def _of_table(estimator: BaseEstimator, table: Json, decoder: Decoder) -> BaseEstimator:
    if not isinstance(table, dict) or set(table) != set(TABLE):
        raise Mismatch("the header describes no table")
    # Kinds have checked both: what comes out has the types that went in.
    found: dict[str, Any] = {
        key: kind.decode(table[key], decoder, {}) for key, kind in TABLE.items()
    }
    check_table(found["schema"], estimator)
    return rwf.TableModel(found["schema"], estimator, found["scores"])


def _made(header: Mapping[str, Json], decoder: Decoder) -> BaseEstimator:
    name, given, fitted = (header.get(key) for key in ("estimator", "parameters", "fitted"))
    if not isinstance(given, dict) or not isinstance(fitted, dict):
        raise Mismatch("the header has no parameters or no fitted attributes")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise Mismatch(f"{str(name)[:40]!r} is no estimator of rwf")
    estimator: BaseEstimator = getattr(rwf, name)()
    unknown = set(given) - set(estimator.get_params(deep=False))
    if unknown or not set(FITTED) <= set(fitted) <= {*FITTED, *SOMETIMES}:
        raise Mismatch(
            f"{name} has parameters {str(sorted(given))[:200]} and attributes "
            f"{str(sorted(fitted))[:200]}, and they are not those that this rwf knows. Install "
            "the version that wrote the file"
        )
    estimator.set_params(**{key: decode_parameter(value, decoder) for key, value in given.items()})
    known = {**FITTED, **SOMETIMES}
    vars(estimator).update({key: known[key].decode(fitted[key], decoder, {}) for key in fitted})
    check_estimator(estimator)
    return estimator
