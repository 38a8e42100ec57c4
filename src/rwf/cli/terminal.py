"""What commands share: results on standard output, progress and warnings on standard error."""

import json
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rwf.data.wording import numeral

if TYPE_CHECKING:
    from rwf.diagnostics.scores import Scores
    from rwf.fit.groups import GroupScores

ModelFile = Annotated[Path, typer.Argument(help="The model file.")]
TableFile = Annotated[
    Path, typer.Argument(help="A CSV or Parquet file, a folder of such, or a pattern.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Do not report progress.")]


def print_result(as_json: bool, answer: object, *parts: object) -> None:
    """Print an answer as JSON, and nothing else, on standard output; or strings and tables."""
    if as_json:
        typer.echo(json.dumps(finite(answer), allow_nan=False, indent=2, default=str))
        return
    console = Console()
    for part in parts:
        shown = Text(part) if isinstance(part, str) else part
        console.print(shown, soft_wrap=isinstance(shown, Text))


def finite(value: object) -> object:
    """The same with null for NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table_of(title: str, first: str, *others: str) -> Table:
    """A table with names in the first column and numbers in the others."""
    table = Table(title=Text(title), title_justify="left")
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right")
    return table


def scores_table(scores: "Scores") -> Table:
    """Scores of a model and of trivial predictors."""
    table = table_of(
        f"{scores.method}, {scores.n_rows:,} rows", "predictor", "RMSE", "NLL", "95 % coverage"
    )
    for name, score in scores.lines:
        nll = f"{score.nll:.4g}" if math.isfinite(score.nll) else "none"
        table.add_row(name, numeral(score.rmse), nll, f"{100 * score.coverage:.1f} %")
    return table


def group_table(scores: "GroupScores") -> Table:
    """Scores of rows that were predicted without their groups."""
    title = f"leave-group-out, {scores.n_groups:,} groups"
    table = table_of(title, "predictor", "RMSE", "NLL", "95 % coverage")
    covered = f"{100 * scores.coverage:.1f} %"
    table.add_row("model", numeral(scores.rmse), f"{scores.nll:.4g}", covered)
    return table


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Show every kind of warning once, as one line on standard error."""
    seen: set[type[Warning]] = set()

    def line(message: Warning | str, category: type[Warning], *rest: object) -> None:
        if category not in seen:
            seen.add(category)
            sys.stderr.write(f"rwf: warning: {message}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = line  # type: ignore[assignment]
        yield
