"""The classes that a file may hold, and what must hold of them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, TypeAlias
from typing import get_type_hints as hints_of

import numpy as np

Hint: TypeAlias = Any  # an annotation


class Mismatch(ValueError):
    """A value does not match its annotation; caught where the name of the field is known."""


def require(holds: bool | np.bool_, otherwise: str) -> None:
    """Raise a mismatch unless a condition holds."""
    if not holds:
        raise Mismatch(otherwise)


@dataclass(frozen=True)
class Registry:
    """The classes that a file may hold."""

    classes: tuple[type, ...]  # dataclasses with different names
    families: Mapping[type, tuple[type, ...]]  # members of a protocol or base class
    # Cached properties that are stored: computed on another machine, their last bits may differ.
    cached: Mapping[type, tuple[str, ...]]
    check: Callable[[object], None]  # raises Mismatch if fields of an object contradict each other
    # The ids of arrays of an object that a file need not hold, and what computes them when they are
    # pending; see rwf.persistence.derived.
    derivable: Callable[[object, Container[int]], set[int]] = lambda _, __: set()
    fill: Callable[[object, set[int]], None] = lambda _, __: None

    def named(self, name: object) -> type | None:
        """The class of this name, if there is one."""
        return next((cls for cls in self.classes if cls.__name__ == name), None)

    def members(self, hint: Hint) -> tuple[type, ...]:
        """The classes that an annotation stands for."""
        return self.families.get(hint, (hint,))

    def stored(self, cls: type) -> dict[str, Hint]:
        """The annotations of all fields of a dataclass, and of its cached properties in a file."""
        names = self.cached.get(cls, ())
        found = [hints_of(getattr(cls, name).func, include_extras=True) for name in names]
        return fields_of(cls) | {name: h["return"] for name, h in zip(names, found, strict=True)}


@cache
def fields_of(cls: type) -> dict[str, Hint]:
    """The annotations of all fields of a dataclass."""
    hints = hints_of(cls, include_extras=True)
    return {field.name: hints[field.name] for field in fields(cls)}
