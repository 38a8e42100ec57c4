"""Checks before anything is computed or overwritten."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from rwf.estimators.table import TableRegressor


class UsageError(ValueError):
    """The command cannot be carried out, and nothing was changed."""


def check_output(out: Path, *, force: bool, inputs: Sequence[Path] = ()) -> None:
    """Check that a file can be written, and that nothing is lost by it."""
    folder = out.parent
    if not folder.is_dir():
        raise UsageError(
            f"there is no folder {str(folder)!r} for {str(out)!r}: make it, or choose another."
        )
    if out.is_dir():
        raise UsageError(f"{str(out)!r} is a folder: give the name of a file in it.")
    if out.exists() and not out.is_file():
        raise UsageError(f"{str(out)!r} is a device or a pipe: give the name of a file.")
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise UsageError(f"{str(out)!r} is read by this command: write to another file.")
    if out.exists() and not force:
        raise UsageError(f"{str(out)!r} exists: give another name, or --force to replace it.")


def check_input(path: Path) -> None:
    """Check that files exist at a path or match a pattern; similar names are suggested."""
    from rwf.data.readers.formats import files_of

    try:
        files_of(str(path))
    except FileNotFoundError as error:
        raise UsageError(f"{error}{_suggestion(path)}") from None


def _suggestion(path: Path) -> str:
    folder = path.parent
    names = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean {str(folder / close[0])!r}?" if close else ""


def load_model(path: Path) -> TableRegressor:
    """Load the model of a table."""
    import rwf

    if not path.is_file():
        raise UsageError(f"there is no model file {str(path)!r}.{_suggestion(path)}")
    found = rwf.load(path)
    return found if isinstance(found, rwf.TableRegressor) else _of_numbers(found, str(path))


def _of_numbers(regressor: BaseEstimator, where: str) -> TableRegressor:
    """A regressor that was not fitted to a table, if it knows its columns by name."""
    import rwf
    from rwf.data.schema import NumberColumn, Preparation, TableSchema

    names = getattr(regressor, "feature_names_in_", None)
    if (
        not isinstance(regressor, rwf.RWFRegressor)
        or names is None
        or regressor.model_.n_outputs > 1
    ):
        raise ValueError(
            f"{where} is an RFFRegressor, or was fitted to arrays without names or to several "
            "targets: load it in Python with rwf.load, or fit a table by rwf fit."
        )
    found = rwf.TableRegressor()
    found.__dict__.update(vars(regressor))
    columns = tuple(NumberColumn(str(name), "double") for name in names)
    schema = TableSchema(columns, None, given=tuple(map(str, names)))
    found.preparation_ = Preparation(schema, regressor.fit_report_.n_rows)
    return found


def names_in(text: str | None) -> list[str] | None:
    """Names of columns with commas between them."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def neighbors_in(text: str) -> int | Literal["auto"] | None:
    """The option --neighbors: a number, "auto" or "none"."""
    if text == "auto":
        return "auto"
    if text == "none":
        return None
    if text.isdigit() and int(text) >= 2:
        return int(text)
    raise UsageError(f"--neighbors {text} must be 'auto', 'none', or a number of at least 2.")
