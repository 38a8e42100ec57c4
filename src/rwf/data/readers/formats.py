"""The registry of file formats, and the files that a path, a pattern or a dataframe stands for."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rwf.data.readers.csv import CSVFile
from rwf.data.readers.dataframes import arrow_table
from rwf.data.readers.files import LoadedTable, TableFile
from rwf.data.readers.parquet import ParquetFile

FORMATS: dict[str, Callable[[Path], TableFile]] = {
    ".parquet": ParquetFile,
    ".pq": ParquetFile,
    ".csv": CSVFile,
    ".csv.gz": CSVFile,
}
"""How files are opened, by the end of their names. ``FORMATS[".abc"] = ABCFile`` adds a format."""


def files_of(path: str) -> list[Path]:
    """The files that a path, a folder or a pattern stands for, in the order of their names."""
    home = Path(path).expanduser()
    if home.is_dir():
        found = [p for p in home.rglob("*") if p.is_file() and p.name.endswith(tuple(FORMATS))]
        # Names that begin with a dot or an underscore are other programs' notes about the table.
        found = [p for p in found if not p.name.startswith((".", "_"))]
        what = f"the folder {home} has no files whose names end in {', '.join(FORMATS)}"
    elif home.exists():
        return [home]
    else:
        top = Path(home.anchor)
        found = [p for p in top.glob(str(home.relative_to(top))) if p.is_file()]
        what = f"there is no file {home}, and as a pattern it matches none"
    if not found:
        raise FileNotFoundError(f"{what}. The present folder is {Path.cwd()}.")
    return sorted(found)


def open_file(path: Path) -> TableFile:
    """A file, by the end of its name."""
    for suffix, opener in FORMATS.items():
        if path.name.endswith(suffix):
            return opener(path)
    raise ValueError(
        f"{path} is read by the end of its name, which should be one of {', '.join(FORMATS)}: "
        "rename it, or give a function that returns blocks of rows."
    )


def open_table(table: object) -> tuple[TableFile, ...]:
    """All files of a path, a folder or a pattern, in the order of their rows; or a dataframe."""
    if isinstance(table, str | os.PathLike):
        return tuple(open_file(found) for found in files_of(os.fspath(table)))
    loaded = arrow_table(table)
    if loaded is None:
        remedy = "a path, or a dataframe of pandas, polars or pyarrow"
        if hasattr(table, "to_dataframe"):
            remedy = "X.to_dataframe().reset_index()"
        raise TypeError(f"{type(table).__name__} is no table with names: give {remedy}.")
    return (LoadedTable(Path("the dataframe"), loaded),)
