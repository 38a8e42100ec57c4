"""A row format: JSON Lines, one object per row."""

from pathlib import Path

from pyarrow.json import read_json

from rwf.data.readers import LoadedTable


def open_jsonl(path: Path) -> LoadedTable:
    """The table of a file; columns are the keys of its objects."""
    return LoadedTable(path, read_json(path))
