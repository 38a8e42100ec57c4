"""Fitted estimators to files and back."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import rwf
from rwf.data.places import Places
from rwf.data.schema import Preparation, TableSchema
from rwf.diagnostics.scores import Scores
from rwf.errors import (
    ModelFileError,
    NotPositiveDefiniteError,
    RowsInFileWarning,
    UnsavableModelError,
)
from rwf.fit.report import FitReport
from rwf.models.base import Model
from rwf.persistence import file
from rwf.persistence.arrays import Json
from rwf.persistence.codec import Decoder, Encoder
from rwf.persistence.records import MODEL_FILE
from rwf.persistence.registry import Mismatch, require

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

ESTIMATORS = (
    "RWFRegressor",
    "RFFRegressor",
    "TableRegressor",
)  # looked up when needed: they import this module

UNUSABLE = (
    RecursionError,
    MemoryError,
    OverflowError,
    ArithmeticError,
    NotPositiveDefiniteError,  # a factor that the file leaves out does not follow from its moments
)
"""What fields that pass all checks may still end in."""


@dataclass(frozen=True)
class FittedAttributes:
    """The attributes of a fitted estimator; names of columns are missing where they have none."""

    n_features_in_: int
    _single_output: bool
    _by_name: bool
    model_: Model
    fit_report_: FitReport
    n_iter_: int
    feature_names_in_: tuple[str, ...] | None

    @classmethod
    def of(cls, estimator: BaseEstimator) -> FittedAttributes:
        own = [field.name for field in fields(cls)]
        values: dict[str, Any] = {n: getattr(estimator, n, None) for n in own}
        names = values.pop("feature_names_in_")
        return cls(**values, feature_names_in_=None if names is None else tuple(names))

    def put_into(self, estimator: BaseEstimator) -> None:
        values = dict(vars(self))
        names = values.pop("feature_names_in_")
        if names is not None:
            values["feature_names_in_"] = np.array(names, dtype=object)
        vars(estimator).update(values)

    def check(self, schema: TableSchema | None) -> None:
        """That the attributes go together, and with the columns of a table."""
        units, names, d = self.model_.units, self.feature_names_in_, self.n_features_in_
        encoded = d if schema is None else len(schema.names)
        require(encoded == len(units.X.center), "units are of other input columns")
        require(not self._single_output or len(units.y.center) == 1, "one output has several")
        require(names is None or len(names) == d, "names are of other columns")
        require(schema is None or len(schema.given) == d, "a table has other columns")
        require(schema is None or self._single_output, "a table has one target")


@dataclass(frozen=True)
class TableAttributes:
    """What a fitted regressor of tables has beside those."""

    preparation_: Preparation
    scores_: Scores | None


CACHED = (
    "rwf.features.inducing.NystromResidual",
    "rwf.uncertainty.extrapolation.PriorReversion",
    "rwf.inference.spike_slab.mixture.Mixture",
    "rwf.inference.spike_slab.windows.WindowedMixture",
    "rwf.inference.multifrontal._rows.ColumnTable",
    "rwf.inference.multifrontal.inverse.SelectedInverse",
)
"""What a model computes when it first needs it; pickle and skops keep it, model files do not."""

SKOPS_TYPES = (
    *(f"{cls.__module__}.{cls.__qualname__}" for cls in MODEL_FILE.classes),
    "rwf.estimators.regressor.RWFRegressor",
    "rwf.estimators.fourier.RFFRegressor",
    "rwf.estimators.table.TableRegressor",
    *CACHED,
)
"""The classes of a fitted estimator, for ``skops.io.load(file, trusted=SKOPS_TYPES)``."""


def save(
    estimator: BaseEstimator,
    path: str | os.PathLike[str],
    *,
    include_rows: bool | None = None,
    places: Places | None = None,
) -> None:
    """Write a fitted estimator to a file; with places it is that of a :class:`rwf.MapModel`."""
    name = type(estimator).__name__
    if name not in ESTIMATORS or type(estimator) is not getattr(rwf, name):
        raise UnsavableModelError(
            f"{name} is a class of your own, and a model file has no code in it: save an "
            f"{' or '.join(ESTIMATORS)}, or keep the model by pickle or joblib."
        )
    _require_rows_allowed(estimator, include_rows)
    if estimator.model_.n_rows > 0:
        _ = estimator.model_.summary  # its posterior is cached from now on: the file holds it
    encoder = Encoder(MODEL_FILE)
    parameters = estimator.get_params(deep=False).items()
    header: dict[str, Json] = {
        "rwf": rwf.__version__,
        "estimator": name,
        "parameters": {key: _encode_parameter(key, value, encoder) for key, value in parameters},
        "fitted": encoder.fields(FittedAttributes.of(estimator)),
    }
    if hasattr(estimator, "preparation_"):
        table = TableAttributes(estimator.preparation_, estimator.scores_)
        header["table"] = encoder.fields(table)
    if places is not None:
        header["map"] = encoder.fields(places)
    header["objects"] = encoder.objects
    file.write(Path(path), header, encoder.arrays, encoder.derived)


def _require_rows_allowed(estimator: BaseEstimator, include_rows: bool | None) -> None:
    """That a model whose predictions use the training rows may have them in its file."""
    if not estimator.model_.keeps_rows:
        return
    kept = "this model keeps all training rows, because predictions use the nearest ones"
    if include_rows is None:
        warnings.warn(
            f"{kept}, and so does its file: pass include_rows=True if that is intended, or fit "
            "with neighbors=None.",
            RowsInFileWarning,
            stacklevel=4,
        )
    elif not include_rows:
        raise ValueError(f"{kept}: pass include_rows=True, or fit with neighbors=None.")


def load(path: str | os.PathLike[str]) -> BaseEstimator:
    """The fitted estimator that was saved to a file.

    Nothing in the file is run, and only classes of rwf are made. A file that ``rwf fit`` wrote
    gives a :class:`rwf.TableRegressor`, and one of a map a :class:`rwf.MapModel`. One that is
    damaged, or of another version, raises a :class:`rwf.errors.ModelFileError`.
    """
    try:
        header, arrays, derived = file.read(Path(path))
        return _estimator(header, Decoder(MODEL_FILE, header.get("objects"), arrays, derived))
    except Mismatch as error:
        raise ModelFileError(f"{path} makes no sense: {error}.") from None
    except UNUSABLE as error:
        raise ModelFileError(f"{path} makes no sense: {error!r}.") from None


def _estimator(header: Mapping[str, Json], decoder: Decoder) -> BaseEstimator:
    name, given = header.get("estimator"), header.get("parameters")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise Mismatch(f"{str(name)[:40]!r} is no estimator of rwf")
    estimator: BaseEstimator = getattr(rwf, name)()
    if not isinstance(given, dict) or not set(given) <= set(estimator.get_params(deep=False)):
        raise Mismatch(
            f"{name} has the parameters {str(given)[:200]}, and they are not those that this rwf "
            "knows. Install the version that wrote the file"
        )
    estimator.set_params(**{key: _decode_parameter(value, decoder) for key, value in given.items()})
    fitted = decoder.make(FittedAttributes, header.get("fitted"))
    fitted.put_into(estimator)
    if "map" in header:
        fitted.check(None)
        places = decoder.make(Places, header["map"])
        require(fitted.n_features_in_ == len(places.names), "a map has other columns")
        return rwf.MapModel(places, estimator)
    require(("table" in header) == (name == "TableRegressor"), "only a table has columns")
    if "table" not in header:
        fitted.check(None)
        return estimator
    table = decoder.make(TableAttributes, header["table"])
    fitted.check(table.preparation_.schema)
    vars(estimator).update(vars(table))
    return estimator


def _encode_parameter(name: str, value: object, encoder: Encoder) -> Json:
    """A parameter; what JSON has no word for becomes a dictionary with one key."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, bool | int | str):
        return plain
    if isinstance(plain, float):
        return {"float": encoder.encode(plain, float, {})}
    if isinstance(plain, list | tuple):
        items: list[Json] = [_encode_parameter(name, item, encoder) for item in plain]
        return {"list" if isinstance(plain, list) else "tuple": items}
    if isinstance(plain, np.random.Generator | np.random.RandomState):
        return None  # the state of a generator is no part of the model
    try:
        return encoder.reference(plain)
    except UnsavableModelError as error:
        raise UnsavableModelError(
            f"{error} Or reset the parameter before saving, which changes no prediction: "
            f"set_params({name}='auto')."
        ) from None


def _decode_parameter(json: Json, decoder: Decoder) -> object:
    if json is None or isinstance(json, bool | int | str):
        return json
    if not isinstance(json, dict) or len(json) != 1:
        raise Mismatch(f"{str(json)[:40]!r} is no parameter")
    ((key, value),) = json.items()
    if key == "float":
        return decoder.decode(value, float, {})
    if key in ("list", "tuple") and isinstance(value, list):
        items = [_decode_parameter(item, decoder) for item in value]
        return items if key == "list" else tuple(items)
    return decoder.made(json)
