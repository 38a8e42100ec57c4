"""Frozen dataclasses as JSON and arrays, and back: only what is listed is ever written or made.

A :class:`Record` lists the fields of one class, with a :class:`Kind` for each. Objects stand in one
flat list, every one after those that it refers to, so that shared parts are stored once and cycles
cannot be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from rwf.errors import ModelFileError, UnsavableModelError
from rwf.persistence.file import AnyArray, Json

NOT_FINITE = ("nan", "inf", "-inf")
"""How JSON, which has no such numbers, holds them."""


class Mismatch(ValueError):
    """A value is not what its field asks for; caught where the name of the field is known."""


def require(holds: bool, what: str) -> None:
    """What must be so for a value to make sense."""
    if not holds:
        raise Mismatch(what)


class Kind(Protocol):
    """What a field may hold."""

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        """The value as JSON; arrays and objects are left with the encoder.

        Args:
            value: to be written.
            encoder: keeps arrays and objects.
            sizes: lengths that fields of one record share, by name.
        """
        ...

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        """The value again."""
        ...


@dataclass(frozen=True)
class Scalar:
    """A number, a truth value or a text."""

    kind: type[float] | type[int] | type[bool] | type[str]
    like: ClassVar[dict[type, tuple[type, ...]]] = {
        float: (float, int, np.floating, np.integer),
        int: (int, np.integer),
        bool: (bool, np.bool_),
        str: (str,),
    }

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        is_truth = isinstance(value, bool | np.bool_)
        if not isinstance(value, self.like[self.kind]) or is_truth != (self.kind is bool):
            raise Mismatch(f"{value!r} is no {self.kind.__name__}")
        plain: Json = self.kind(value)  # type: ignore[arg-type, call-overload]
        return _as_json(plain) if isinstance(plain, float) else plain

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        if self.kind is float and json in NOT_FINITE:
            return float(str(json))
        if type(json) is not self.kind or (type(json) is int and abs(json) >= 2**63):
            raise Mismatch(f"{str(json)[:40]!r} is no {self.kind.__name__}")
        return json


def _as_json(value: float) -> Json:
    return value if np.isfinite(value) else str(value)


FLOAT, INT, BOOL, TEXT = Scalar(float), Scalar(int), Scalar(bool), Scalar(str)


@dataclass(frozen=True)
class Entries:
    """An array. Equal names of lengths in one record mean equal lengths; "_" means any."""

    dtype: str
    lengths: tuple[str, ...]

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        if not isinstance(value, np.ndarray):
            raise Mismatch(f"{type(value).__name__} is no array")
        self._check(value, sizes)
        return {"array": encoder.array(value)}

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        array = decoder.array(json)
        self._check(array, sizes)
        return array.astype(np.intp, copy=False) if self.dtype == "int64" else array

    def _check(self, array: AnyArray, sizes: dict[str, int]) -> None:
        if array.dtype.name != self.dtype or array.ndim != len(self.lengths):
            raise Mismatch(
                f"an array of {array.dtype} in {array.ndim} dimensions is not one of {self.dtype} "
                f"in {len(self.lengths)}"
            )
        for name, length in zip(self.lengths, array.shape, strict=True):
            if name != "_" and sizes.setdefault(name, length) != length:
                raise Mismatch(f"an array has length {length}, and another has {sizes[name]}")


def floats(*lengths: str) -> Entries:
    return Entries("float64", lengths)


def ints(*lengths: str) -> Entries:
    return Entries("int64", lengths)


def bools(*lengths: str) -> Entries:
    return Entries("bool", lengths)


@dataclass(frozen=True)
class Maybe:
    """A value of a kind, or ``None``."""

    kind: Kind

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        return None if value is None else self.kind.encode(value, encoder, sizes)

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        return None if json is None else self.kind.decode(json, decoder, sizes)


@dataclass(frozen=True)
class Many:
    """A tuple, of a given length or of any; arrays in it may differ in their lengths."""

    kind: Kind
    count: int | None = None

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        if not isinstance(value, tuple):
            raise Mismatch(f"{type(value).__name__} is no tuple")
        self._check(value)
        return [self.kind.encode(item, encoder, {}) for item in value]

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        if not isinstance(json, list):
            raise Mismatch(f"{type(json).__name__} is no list")
        self._check(json)
        return tuple(self.kind.decode(item, decoder, {}) for item in json)

    def _check(self, items: Sequence[object]) -> None:
        require(self.count in (None, len(items)), f"there are {len(items)} and not {self.count}")


@dataclass(frozen=True)
class Table:
    """A dictionary from texts to values of a kind."""

    kind: Kind

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        if not isinstance(value, dict):
            raise Mismatch(f"{type(value).__name__} is no dictionary")
        return {str(key): self.kind.encode(item, encoder, {}) for key, item in value.items()}

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        if not isinstance(json, dict):
            raise Mismatch(f"{type(json).__name__} is no dictionary")
        return {key: self.kind.decode(item, decoder, {}) for key, item in json.items()}


@dataclass(frozen=True)
class Names:
    """An array of texts, as scikit-learn keeps the names of columns."""

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        return [TEXT.encode(name, encoder, sizes) for name in np.asarray(value).tolist()]

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        return np.array(Many(TEXT).decode(json, decoder, sizes), dtype=object)


@dataclass(frozen=True, init=False)
class Instance:
    """An object of one of several classes, each with a record."""

    classes: tuple[type, ...]

    def __init__(self, *classes: type) -> None:
        object.__setattr__(self, "classes", classes)

    def encode(self, value: object, encoder: Encoder, sizes: dict[str, int]) -> Json:
        reference = encoder.reference(value)
        self._check(value)
        return reference

    def decode(self, json: Json, decoder: Decoder, sizes: dict[str, int]) -> object:
        value = decoder.made(json)
        self._check(value)
        return value

    def _check(self, value: object) -> None:
        known = " or ".join(cls.__name__ for cls in self.classes)
        require(type(value) in self.classes, f"{type(value).__name__} is no {known}")


@dataclass(frozen=True)
class Record:
    """How objects of a class are written.

    Args:
        cls: the class, a dataclass.
        fields: the kind of each of its fields.
        check: raises :class:`Mismatch` if fields do not go together. Compiled loops trust what it
            has let pass.
        found: the kinds of values that were computed when first needed, and are kept, if they are
            there: computing them anew might give others.
    """

    cls: type
    fields: Mapping[str, Kind]
    check: Callable[..., None] = lambda value: None
    found: Mapping[str, Kind] = field(default_factory=dict)


class Encoder:
    """Collects the objects and arrays of a model."""

    def __init__(self, records: Mapping[str, Record]) -> None:
        self.objects: list[Json] = []
        self.arrays: list[AnyArray] = []
        self._records = {record.cls: record for record in records.values()}
        self._places: dict[int, int] = {}

    def array(self, array: AnyArray) -> int:
        """The place of an array."""
        if id(array) not in self._places:
            self._places[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._places[id(array)]

    def knows(self, value: object) -> bool:
        return type(value) in self._records

    def reference(self, value: object) -> Json:
        """A reference to an object, which is written when it is first met."""
        if not self.knows(value):
            kind = type(value)
            raise UnsavableModelError(
                f"the model holds {value!r}, of the class {kind.__module__}.{kind.__qualname__}. A "
                "model file has no code in it, so it can hold only classes of rwf: use one of its "
                "wavelets and shift samplers, or keep the model by pickle or joblib."
            )
        if id(value) not in self._places:
            written = self._written(value, self._records[type(value)])
            self._places[id(value)] = len(self.objects)
            self.objects.append(written)
        return {"object": self._places[id(value)]}

    def _written(self, value: object, record: Record) -> Json:
        name, sizes = record.cls.__name__, dict[str, int]()
        written: dict[str, Json] = {"type": name}
        kept = {key: kind for key, kind in record.found.items() if key in vars(value)}
        for key, kind in {**record.fields, **kept}.items():
            try:
                written[key] = kind.encode(getattr(value, key), self, sizes)
            except Mismatch as error:
                raise UnsavableModelError(f"{name}.{key} cannot be saved: {error}.") from None
        try:
            record.check(value)
        except Mismatch as error:
            raise UnsavableModelError(f"{name} cannot be saved: {error}.") from None
        return written


class Decoder:
    """Makes the objects of a model again, and nothing else."""

    def __init__(
        self, records: Mapping[str, Record], objects: Json, arrays: Sequence[AnyArray]
    ) -> None:
        self._records, self._arrays = records, arrays
        self._made: list[object] = []
        if not isinstance(objects, list):
            raise ModelFileError(f"the header has {type(objects).__name__} for a list of objects.")
        for written in objects:
            self._made.append(self._make(written))

    def array(self, json: Json) -> AnyArray:
        return self._arrays[_place(json, "array", len(self._arrays))]

    def made(self, json: Json) -> object:
        """An object that was made before the one that refers to it."""
        return self._made[_place(json, "object", len(self._made))]

    def _make(self, written: Json) -> object:
        name = written.get("type") if isinstance(written, dict) else written
        if not isinstance(written, dict) or name not in list(self._records):
            raise ModelFileError(
                f"the header names an object of the type {str(name)[:40]!r}, which this rwf does "
                "not know. It may be of a newer one: install that, or save the model with this."
            )
        record = self._records[str(name)]
        known, given = {**record.fields, **record.found}, set(written) - {"type"}
        if not set(record.fields) <= given <= set(known):
            raise ModelFileError(
                f"{record.cls.__name__} should have the fields {sorted(record.fields)}, and the "
                f"file has {str(sorted(given))[:200]}."
            )
        sizes: dict[str, int] = {}
        values = {key: self._value(record, key, known[key], written[key], sizes) for key in given}
        found = {key: values.pop(key) for key in given - set(record.fields)}
        try:
            made: object = record.cls(**values)
            made.__dict__.update(found)
            record.check(made)
        except ValueError as error:  # Mismatch is one
            raise ModelFileError(f"{record.cls.__name__} makes no sense: {error}") from None
        return made

    def _value(
        self, record: Record, key: str, kind: Kind, json: Json, sizes: dict[str, int]
    ) -> object:
        try:
            return kind.decode(json, self, sizes)
        except Mismatch as error:
            raise ModelFileError(f"{record.cls.__name__}.{key}: {error}.") from None


def _place(json: Json, what: str, count: int) -> int:
    """The number in a reference such as {"array": 3}."""
    place = json.get(what) if isinstance(json, dict) and len(json) == 1 else None
    if type(place) is not int or not 0 <= place < count:
        raise Mismatch(f"{str(json)[:40]!r} refers to none of {count} {what}s")
    return place
