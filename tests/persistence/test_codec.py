"""Dataclasses are stored as their annotations say, and nothing else passes for one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Literal, Union, get_args, get_origin

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from rwf._types import Array, BoolArray, IntArray
from rwf.data.stream import Entry
from rwf.errors import ModelFileError, UnsavableModelError
from rwf.fit.pipeline import FitState
from rwf.persistence.codec import SCALARS, Decoder, Encoder, Mismatch, _check_array
from rwf.persistence.estimators import FittedAttributes, TableAttributes
from rwf.persistence.records import CHECKPOINT, MODEL_FILE
from rwf.persistence.registry import Registry, require


class Shape:
    """A family."""


@dataclass(frozen=True)
class Disc(Shape):
    radius: float


@dataclass(frozen=True)
class Box(Shape):
    sides: tuple[float, float]


@dataclass(frozen=True)
class Stranger(Shape):
    pass


@dataclass(frozen=True)
class Everything:
    shape: Shape
    either: Disc | Box | None
    kind: Literal["round", "square"]
    count: int | None
    label: str | float
    flags: tuple[bool, ...]
    seconds: dict[str, float]
    points: Annotated[Array, "n d"]
    index: Annotated[IntArray, "n"]
    chosen: Annotated[BoolArray, "d"] | None
    lists: tuple[Annotated[IntArray, "p"], ...]
    sums: dict[str, Annotated[Array, "..."]]

    @cached_property
    def area(self) -> tuple[Disc, ...]:
        return (Disc(3.0),)


def check(value: object) -> None:
    require(not isinstance(value, Disc) or value.radius > 0, "the radius is not positive")


REGISTRY = Registry((Disc, Box, Everything), {Shape: (Disc, Box)}, {Everything: ("area",)}, check)
DISC = Disc(2.0)
VALUE = Everything(
    shape=DISC,
    either=None,
    kind="round",
    count=5,
    label=2.5,
    flags=(True, False),
    seconds={"fit": 3.0, "never": float("inf")},
    points=np.arange(6.0).reshape(3, 2),
    index=np.array([3, 4, 5]),
    chosen=None,
    lists=(np.array([1, 2]), np.array([3])),
    sums={"a": np.ones((2, 2)), "b": np.ones(3)},
)


def written(value):
    encoder = Encoder(REGISTRY)
    reference = encoder.reference(value)
    return encoder, reference


def again(value, change=lambda objects: None):
    encoder, reference = written(value)
    change(encoder.objects)
    return Decoder(REGISTRY, encoder.objects, encoder.arrays).made(reference)


def test_values_of_every_annotation_come_back():
    other = replace(
        VALUE, either=Box((3.0, 4.0)), count=None, label="x", chosen=np.array([True, False])
    )
    for value in (VALUE, other):
        found = again(value)
        for name in ("shape", "either", "kind", "count", "label", "flags", "seconds"):
            assert getattr(found, name) == getattr(value, name)
        for name in ("points", "index", "chosen"):
            assert_array_equal(getattr(found, name), getattr(value, name))
        assert [part.tolist() for part in found.lists] == [[1, 2], [3]]
        assert {name: part.shape for name, part in found.sums.items()} == {"a": (2, 2), "b": (3,)}


def test_parts_that_are_shared_are_stored_once():
    found = again(replace(VALUE, either=DISC))
    assert found.shape is found.either
    assert len(written(replace(VALUE, either=DISC))[0].objects) == 2


def test_cached_values_are_stored_where_they_were_computed():
    value = replace(VALUE)
    assert "area" not in vars(again(value))
    _ = value.area
    assert vars(again(value))["area"] == (Disc(3.0),)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"shape": Stranger()}, "only classes of rwf"),
        ({"either": VALUE.shape.radius}, "only classes of rwf"),
        ({"shape": Disc(-1.0)}, "Disc cannot be saved: the radius"),
        ({"kind": "oval"}, r"Everything\.kind cannot be saved: 'oval'"),
        ({"count": True}, "'True' is no int"),
        ({"count": 5.0}, "'5.0' is no int"),
        ({"label": None}, "is no str, and 'None' is no float"),
        ({"flags": [True]}, "list is no tuple"),
        ({"shape": DISC, "either": Box((3.0,))}, "1 entries and not 2"),
        ({"points": np.arange(6.0)}, "float64 in 1 dimensions is not one of float64 in 2"),
        ({"points": np.arange(6).reshape(3, 2)}, "an array of int64"),
        ({"index": np.array([3, 4])}, "length 2, and another has 3"),
        ({"chosen": np.array([True])}, "length 1, and another has 2"),
        ({"lists": (np.ones((1, 1), dtype=int),)}, "in 2 dimensions"),
        ({"seconds": {"fit": "3"}}, "is no float"),
    ],
)
def test_values_that_do_not_match_are_not_written(changes, message):
    with pytest.raises(UnsavableModelError, match=message):
        written(replace(VALUE, **changes))


@pytest.mark.parametrize(
    "field, json, message",
    [
        ("shape", {"object": 1}, "refers to none of 1 objects"),
        ("shape", None, "refers to none"),
        ("kind", "oval", "'oval' is no"),
        ("kind", ["round"], "list is no"),
        ("count", 2**63, "is no int"),
        ("count", True, "is no int"),
        ("label", 5, "is no str, and '5' is no float"),
        ("flags", {"0": True}, "dict is no list"),
        ("seconds", {"fit": 3}, "'3' is no float"),
        ("points", {"array": 1}, "not one of float64 in 2"),
        ("lists", [{"array": 0}], "not one of int64 in 1"),
        ("sums", {"a": {"array": 99}}, "refers to none of"),
        ("area", [{"object": 9}], "refers to none of"),
        ("size", 3, "should have the fields"),
    ],
)
def test_json_that_does_not_match_is_not_loaded(field, json, message):
    with pytest.raises(ModelFileError, match=message):
        again(VALUE, lambda objects: objects[1].update({field: json}))


def test_a_class_of_the_wrong_family_is_not_taken():
    def change(objects):
        objects.insert(1, {**objects[1]})
        objects[2]["shape"] = {"object": 1}

    with pytest.raises(ModelFileError, match="Everything is no Shape"):
        again(VALUE, change)


def supported(hint, registry):
    """Whether the codec can store what an annotation describes."""
    if get_origin(hint) in (tuple, dict, Union, UnionType):
        return all(supported(inner, registry) for inner in get_args(hint))
    if get_origin(hint) is Annotated:
        array, lengths = get_args(hint)
        return array in (Array, IntArray, BoolArray) and isinstance(lengths, str)
    if get_origin(hint) is Literal or hint in (*SCALARS, NoneType, Ellipsis):
        return True
    return set(registry.members(hint)) <= set(registry.classes)


@pytest.mark.parametrize(
    "registry, parts",
    [(MODEL_FILE, (FittedAttributes, TableAttributes)), (CHECKPOINT, (Entry, FitState))],
)
def test_every_saved_field_has_an_annotation_that_can_be_stored(registry, parts):
    unsupported = [
        f"{cls.__name__}.{name}: {hint}"
        for cls in (*registry.classes, *parts)
        for name, hint in registry.stored(cls).items()
        if not supported(hint, registry)
    ]
    assert not unsupported
    assert not supported(Array, registry)
    assert not supported(Callable, registry)


def test_saved_classes_are_frozen_and_have_names_of_their_own():
    for registry in (MODEL_FILE, CHECKPOINT):
        assert len({cls.__name__ for cls in registry.classes}) == len(registry.classes)
        assert all(cls.__dataclass_params__.frozen for cls in registry.classes)
        for cls, names in registry.cached.items():
            assert all(isinstance(vars(cls)[name], cached_property) for name in names)


@pytest.mark.parametrize("spelled", [Array, GenericAlias(np.ndarray, (np.float64,))])
def test_entries_of_arrays_are_checked_however_numpy_spells_their_type(spelled):
    hint = Annotated[spelled, "m d"]  # from numpy 2.5 on, NDArray is an alias with one argument
    sizes = {"m": 3}
    _check_array(np.ones((3, 2)), hint, sizes)
    assert sizes == {"m": 3, "d": 2}
    with pytest.raises(Mismatch, match="an array of int64 in 2 dimensions is not one of float64"):
        _check_array(np.ones((3, 2), dtype=np.int64), hint, sizes)
