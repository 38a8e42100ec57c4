"""Rows of benchmarks: measured in processes of their own, and kept as lines of JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

Row = TypeVar("Row")

RENAMED = {"frame": "lattice", "projected": "nystrom"}
"""Words of older rows, in names of fields and of cases, and their names today."""


def append(path: Path | None, row: Any) -> None:  # noqa: ANN401 - a dataclass or a mapping
    """Add a row to a file, if there is one."""
    if path is not None:
        fields = row if isinstance(row, Mapping) else asdict(row)
        with path.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(fields) + "\n")


def in_own_process(
    kind: type[Row], module: str, arguments: Iterable[object], seconds: float | None = None
) -> Row:
    """The row that a benchmark prints, as JSON, in a process of its own.

    Raises:
        TimeoutError: the process took longer than the given seconds, and was ended.
    """
    command = [sys.executable, "-m", module, *map(str, arguments)]
    try:
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TimeoutError(f"{module} took more than {seconds} s.") from error
    return kind(**json.loads(done.stdout))


def history(name: str, kind: type[Row]) -> dict[str, list[Row]]:
    """The stored rows of every case, oldest first; rows with other fields are left out."""
    path = Path(__file__).parent / f"{name}.jsonl"
    found: dict[str, list[Row]] = {}
    for text in path.read_text(encoding="utf-8").splitlines():
        line = _renamed(json.loads(text))
        if line.keys() == kind.__dataclass_fields__.keys():  # type: ignore[attr-defined]
            found.setdefault(line["case"], []).append(kind(**line))
    return found


def newest(name: str, kind: type[Row]) -> list[Row]:
    """The newest stored row of every case."""
    return [rows[-1] for rows in history(name, kind).values()]


def _renamed(line: dict[str, Any]) -> dict[str, Any]:
    fields = {RENAMED.get(name, name): value for name, value in line.items()}
    for name in fields.keys() & {"case", "features"}:
        fields[name] = ", ".join(RENAMED.get(part, part) for part in fields[name].split(", "))
    return fields
