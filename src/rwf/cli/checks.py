"""Checks before anything is computed or overwritten."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from rwf.estimators.regressor import RWFRegressor
    from rwf.estimators.table import TableRegressor
    from rwf.integrations.maps import MapModel


OF_TABLES = ("categorical", "max_one_hot", "strict", "preparation_", "scores_")
"""Parameters and attributes of a TableRegressor that a regressor of numbers does not have."""


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


def load_model(path: Path, *, maps: bool = False) -> TableRegressor:
    """Load the model of a table, or of a map, whose columns are not those of a table."""
    import rwf

    if not path.is_file():
        raise UsageError(f"there is no model file {str(path)!r}.{_suggestion(path)}")
    found = rwf.load(path)
    if isinstance(found, rwf.MapModel):
        if not maps:
            raise UsageError(
                f"{str(path)!r} is the model of a map, not of a table: give rwf predict a raster, "
                "or update it in Python."
            )
        found = found.regressor
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


def load_map(path: Path) -> MapModel:
    """Load the model of a map, or of a table whose columns are those of a raster."""
    import rwf

    found = rwf.load(path) if path.is_file() else load_model(path)
    if isinstance(found, rwf.MapModel):
        return found
    table = load_model(path)
    return rwf.MapModel.of(_on_numbers(table), table.schema_.target or "y")


def _on_numbers(table: TableRegressor) -> RWFRegressor:
    """The same model as a regressor of numbers, if all columns are numbers."""
    import rwf
    from rwf.data.schema import NumberColumn

    other = [c.name for c in table.schema_.columns if not isinstance(c, NumberColumn)]
    if other:
        raise ValueError(
            f"the columns {', '.join(map(repr, other))} are no plain numbers, as those of a raster "
            "are: leave them out of the fit by --features."
        )
    found = rwf.RWFRegressor()
    found.__dict__.update({k: v for k, v in vars(table).items() if k not in OF_TABLES})
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
