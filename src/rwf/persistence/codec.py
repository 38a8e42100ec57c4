"""Frozen dataclasses as JSON and arrays, and back: their annotations are the format.

A :class:`Registry` lists the classes that a file may hold; no others are written or made. What a
field may hold follows from its annotation: ``float``, ``int``, ``bool``, ``str``, ``Literal``,
``tuple``, ``dict[str, X]``, unions, registered classes, and arrays with named lengths such as
``Annotated[Array, "m d"]``. Objects stand in one flat list, every one after those that it refers
to, so that shared parts are stored once and cycles cannot be written down.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar, Union, get_args, get_origin

import numpy as np

from rwf.errors import ModelFileError, UnsavableModelError
from rwf.persistence.arrays import AnyArray, Json
from rwf.persistence.registry import Hint, Mismatch, Registry, fields_of, require

T = TypeVar("T")
Sizes: TypeAlias = dict[str, int]  # lengths that the arrays of one object share, by their names

SCALARS: dict[Hint, tuple[type, ...]] = {
    float: (float, int, np.floating, np.integer),
    int: (int, np.integer),
    bool: (bool, np.bool_),
    str: (str,),
}
"""The scalar annotations, and the types of values that they take."""


class Encoder:
    """Collects the objects and arrays of a file."""

    def __init__(self, registry: Registry) -> None:
        self.objects: list[Json] = []
        self.arrays: list[AnyArray] = []
        self._registry = registry
        self._places: dict[int, int] = {}
        self._derived = set[int]()

    def reference(self, value: object) -> Json:
        """A reference to an object, which is written when it is first met."""
        cls = type(value)
        if cls not in self._registry.classes:
            raise UnsavableModelError(
                f"the model holds {value!r}, of the class {cls.__module__}.{cls.__qualname__}. A "
                "model file has no code in it, so it can hold only classes of rwf: use one of its "
                "wavelets and shift samplers, or keep the model by pickle or joblib."
            )
        if id(value) not in self._places:
            self._derived |= self._registry.derivable(value, self._derived)
            written = {"type": cls.__name__, **self.fields(value)}
            self._places[id(value)] = len(self.objects)
            self.objects.append(written)
        return {"object": self._places[id(value)]}

    @property
    def derived(self) -> set[int]:
        """The numbers of arrays that a file need not hold."""
        return {i for i, array in enumerate(self.arrays) if id(array) in self._derived}

    def fields(self, value: object) -> dict[str, Json]:
        """The fields of a dataclass, registered or not."""
        cls, sizes, written = type(value), Sizes(), dict[str, Json]()
        where = cls.__name__
        try:
            for name, hint in self._registry.stored(cls).items():
                if name in vars(value):  # not so for a cached property that was never computed
                    where = f"{cls.__name__}.{name}"
                    written[name] = self.encode(getattr(value, name), hint, sizes)
            where = cls.__name__
            self._registry.check(value)
        except Mismatch as error:
            raise UnsavableModelError(f"{where} cannot be saved: {error}.") from None
        return written

    def encode(self, value: Any, hint: Hint, sizes: Sizes) -> Json:  # noqa: ANN401
        """A value as JSON; arrays and objects are collected."""
        origin, args = _parts(hint)
        if hint in SCALARS:
            is_bool = isinstance(value, bool | np.bool_)
            _expect(isinstance(value, SCALARS[hint]) and is_bool == (hint is bool), value, hint)
            plain: Json = hint(value)
            return str(plain) if isinstance(plain, float) and not np.isfinite(plain) else plain
        if origin is Literal:
            return _choice(value, hint)
        if origin is Annotated:
            _expect(isinstance(value, np.ndarray), value, "array")
            _check_array(value, hint, sizes)
            return {"array": self._array(value)}
        if origin is tuple:
            _expect(isinstance(value, tuple), value, "tuple")
            return [self.encode(item, inner, {}) for item, inner in _items(value, args)]
        if origin is dict:
            _expect(isinstance(value, dict), value, "dictionary")
            return {str(name): self.encode(item, args[1], {}) for name, item in value.items()}
        if origin is Union:
            return _first_match(args, value, lambda inner: self.encode(value, inner, sizes))
        reference = self.reference(value)
        _expect(type(value) in self._registry.members(hint), value, hint)
        return reference

    def _array(self, array: AnyArray) -> int:
        if id(array) not in self._places:
            self._places[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._places[id(array)]


class Decoder:
    """Makes the objects of a file again, and nothing else."""

    def __init__(
        self,
        registry: Registry,
        objects: Json,
        arrays: Sequence[AnyArray],
        derived: Collection[int] = (),
    ) -> None:
        self._registry, self._arrays = registry, arrays
        self._pending = {id(arrays[i]) for i in derived}
        self._made: list[object] = []
        if not isinstance(objects, list):
            raise ModelFileError(f"the header has {type(objects).__name__} for a list of objects.")
        for written in objects:
            self._made.append(self._object(written))
        if self._pending:
            raise ModelFileError("the header leaves out arrays that nothing determines.")

    def _object(self, written: Json) -> object:
        name = written.get("type") if isinstance(written, dict) else written
        cls = self._registry.named(name)
        if not isinstance(written, dict) or cls is None:
            raise ModelFileError(
                f"the header names an object of the type {str(name)[:40]!r}, which this rwf does "
                "not know. It may be of a newer one: install that, or save the model with this."
            )
        return self.make(cls, {key: value for key, value in written.items() if key != "type"})

    def make(self, cls: type[T], written: Json) -> T:
        """An object of a dataclass, registered or not, from its fields."""
        own, known = fields_of(cls), self._registry.stored(cls)  # type: ignore[arg-type]
        if not isinstance(written, dict) or not set(own) <= set(written) <= set(known):
            found = sorted(written) if isinstance(written, dict) else written
            raise ModelFileError(
                f"{cls.__name__} should have the fields {sorted(own)}, and the file has "
                f"{str(found)[:200]}. Install the version of rwf that wrote the file."
            )
        sizes, values = Sizes(), dict[str, Any]()
        for name, json in written.items():
            try:
                values[name] = self.decode(json, known[name], sizes)
            except Mismatch as error:
                raise ModelFileError(f"{cls.__name__}.{name}: {error}.") from None
        try:
            made = cls(**{name: values.pop(name) for name in own})
            # A cached property looks for its value in the dictionary of the object. This is the
            # only place where a file puts something there.
            vars(made).update(values)
            self._registry.check(made)
            self._registry.fill(made, self._pending)
        except ValueError as error:  # Mismatch is one
            raise ModelFileError(f"{cls.__name__} makes no sense: {error}") from None
        return made

    def decode(self, json: Any, hint: Hint, sizes: Sizes) -> Any:  # noqa: ANN401
        """The value again."""
        origin, args = _parts(hint)
        if hint in SCALARS:
            if hint is float and json in ("nan", "inf", "-inf"):  # which JSON has no numbers for
                return float(json)
            fits = type(json) is hint and (type(json) is not int or abs(json) < 2**63)
            _expect(fits, json, hint)
            return json
        if origin is Literal:
            return _choice(json, hint)
        if origin is Annotated:
            array = self._arrays[_place(json, "array", len(self._arrays))]
            _check_array(array, hint, sizes)
            return array.astype(np.intp, copy=False) if array.dtype == np.int64 else array
        if origin is tuple:
            _expect(isinstance(json, list), json, "list")
            return tuple(self.decode(item, inner, {}) for item, inner in _items(json, args))
        if origin is dict:
            _expect(isinstance(json, dict), json, "dictionary")
            return {name: self.decode(item, args[1], {}) for name, item in json.items()}
        if origin is Union:
            return _first_match(args, json, lambda inner: self.decode(json, inner, sizes))
        made = self.made(json)
        _expect(type(made) in self._registry.members(hint), made, hint)
        return made

    def made(self, json: Json) -> object:
        """An object that was made before the one that refers to it."""
        return self._made[_place(json, "object", len(self._made))]


def _parts(hint: Hint) -> tuple[Hint, tuple[Hint, ...]]:
    """What an annotation is of, such as ``tuple``, and what stands in its brackets."""
    return Union if isinstance(hint, UnionType) else get_origin(hint), get_args(hint)


def _expect(holds: bool, value: object, wanted: Hint) -> None:
    """Raise a mismatch that names what was found, unless a condition holds."""
    if not holds:
        plain = value is None or isinstance(value, bool | int | float | str)
        found = repr(str(value)[:40]) if plain else type(value).__name__
        raise Mismatch(f"{found} is no {getattr(wanted, '__name__', wanted)}")


def _choice(value: Json, hint: Hint) -> Json:
    options = [(type(option), option) for option in get_args(hint)]
    _expect((type(value), value) in options, value, hint)
    return value


def _items(values: Any, hints: tuple[Hint, ...]) -> Iterable[tuple[Any, Hint]]:  # noqa: ANN401
    """The entries of a tuple with their annotations; arrays in it may differ in their lengths."""
    if hints[-1] is Ellipsis:
        return ((value, hints[0]) for value in values)
    require(len(values) == len(hints), f"there are {len(values)} entries and not {len(hints)}")
    return zip(values, hints, strict=True)


def _first_match(hints: tuple[Hint, ...], value: object, attempt: Callable[[Hint], T]) -> T | None:
    """What the first alternative of a union gives that matches."""
    if value is None and NoneType in hints:
        return None
    errors = []
    for hint in hints:
        if hint is not NoneType:
            try:
                return attempt(hint)
            except Mismatch as error:
                errors.append(str(error))
    raise Mismatch(", and ".join(errors))


def _check_array(array: AnyArray, hint: Hint, sizes: Sizes) -> None:
    kind, lengths = get_args(hint)
    entry = get_args(kind)[-1]  # np.float64 of NDArray[np.float64], or its dtype before numpy 2.5
    dtype = np.dtype(get_args(entry)[0] if get_args(entry) else entry)
    names = ["_"] * array.ndim if lengths == "..." else lengths.split()
    if array.dtype != dtype or array.ndim != len(names):
        raise Mismatch(
            f"an array of {array.dtype} in {array.ndim} dimensions is not one of {dtype} "
            f"in {len(names)}"
        )
    for name, length in zip(names, array.shape, strict=True):
        if name != "_" and sizes.setdefault(name, length) != length:
            raise Mismatch(f"an array has length {length}, and another has {sizes[name]}")


def _place(json: Json, what: str, count: int) -> int:
    """The number in a reference such as {"array": 3}."""
    place = json.get(what) if isinstance(json, dict) and len(json) == 1 else None
    if type(place) is not int or not 0 <= place < count:
        raise Mismatch(f"{str(json)[:40]!r} refers to none of {count} {what}s")
    return place
