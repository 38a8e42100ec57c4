"""Rows on disk: one line of JSON a run, appended whole, the last line of a key being the one."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

from experiments import ROOT

JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
Row: TypeAlias = dict[str, JSON]

RESULTS = ROOT / "experiments" / "results"
"""Where suites keep their rows."""


def results_file(suite: str, directory: Path = RESULTS) -> Path:
    return directory / f"{suite}.jsonl"


def as_line(row: Row) -> str:
    """A row as one line of strict JSON: NaN is refused, so that every reader can parse it."""
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def append(path: Path, row: Row) -> None:
    """Add one line in one write, after whatever an interrupted writer may have left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torn = path.exists() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
    line = ("\n" if torn else "") + as_line(row) + "\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read(path: Path) -> list[Row]:
    """The last row of every key, in the order in which keys first appeared."""
    if not path.exists():
        return []
    rows: dict[str, Row] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            warnings.warn(f"{path.name}, line {number} is not JSON: left out.", stacklevel=2)
            continue
        rows[str(row["key"])] = row
    return list(rows.values())


def rewrite(path: Path, rows: Iterable[Row]) -> None:
    """Replace the file by these rows, whole or not at all."""
    fresh = path.with_suffix(".tmp")
    fresh.write_text("".join(as_line(row) + "\n" for row in rows), encoding="utf-8")
    fresh.replace(path)
