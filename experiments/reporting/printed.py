"""Numbers that papers print, which stand beside ours only where the data are the same."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PRINTED = Path(__file__).with_suffix(".toml")


@cache
def _stored() -> dict[str, Any]:
    return tomllib.loads(PRINTED.read_text(encoding="utf-8"))


def printed(name: str, task: str, field: str) -> Mapping[str, str]:
    """What is printed of every method in an experiment or suite, or nothing."""
    found = _stored().get(name, {"tasks": []})
    if task not in found["tasks"]:
        return {}
    k = found["tasks"].index(task)
    return {method: cells[k] for method, cells in found.get(field, {}).items()}


def printed_methods(name: str, field: str) -> list[str]:
    """The methods of which numbers are printed."""
    return [*_stored().get(name, {}).get(field, {})]
