"""Run suites, print their tables, draw their figures, rebuild the docs.

Example: python -m experiments run --suite tables --methods rwf,rff --tasks airfoil --jobs 2
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from experiments.plan import load_suite, suite_names
from experiments.store import RESULTS, Row, read, results_file, rewrite


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    command: Callable[[argparse.Namespace], None] = options.command
    try:
        command(options)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(required=True, metavar="command")
    for name, function, has_suite in (
        ("run", run, True),
        ("table", table, True),
        ("tidy", tidy, True),
        ("theory", theory, False),
        ("figures", figures, False),
        ("docs", docs, False),
    ):
        sub = commands.add_parser(
            name,
            help=(function.__doc__ or "").splitlines()[0],
            description=function.__doc__,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        sub.set_defaults(command=function)
        sub.add_argument("--results", type=Path, default=RESULTS, help="directory of the rows")
        if has_suite:
            sub.add_argument("--suite", required=True, help=f"one of {', '.join(suite_names())}")
        if name == "run":
            _add_run_options(sub)
        if name == "table":
            sub.add_argument("--measures", type=_names, default=["rmse", "nll", "coverage95"])
    return top


def _add_run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--methods", type=_names, help="only these, separated by commas")
    sub.add_argument("--tasks", type=_names, help="only these, separated by commas")
    sub.add_argument("--splits", type=_numbers, help="only these, separated by commas")
    sub.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each if several")
    sub.add_argument("--retry-failed", action="store_true", help="run again what failed")
    sub.add_argument("--again", action="store_true", help="run again what has a row")


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def run(options: argparse.Namespace) -> None:
    """Do the runs of a suite that have no row yet.

    Example: python -m experiments run --suite tables --jobs 2
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from experiments.session import Conditions, dgemm_gflops, pending, perform

    suite = load_suite(options.suite)
    path = results_file(suite.name, options.results)
    runs = suite.runs(options.tasks, options.methods)
    if options.splits is not None:
        runs = [run for run in runs if run.split in options.splits]
    todo = pending(runs, read(path), retry_failed=options.retry_failed, again=options.again)
    console = Console(stderr=True)
    console.print(f"{suite.name}: {len(todo)} runs to do, {len(runs) - len(todo)} have their rows.")
    if not todo:
        return
    conditions = Conditions(options.jobs, suite.timeout, dgemm_gflops())
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bar, console=console) as progress:
        entry = progress.add_task(suite.name, total=len(todo))
        for row in perform(todo, path, conditions):
            console.print(line_of(row), markup=False, highlight=False, soft_wrap=True)
            progress.advance(entry)


def line_of(row: Row) -> str:
    """A finished run in one line."""
    what = f"{row['task']} · {row['method']} · split {row['split']}"
    if row["settings"]:
        what += f" · {row['settings']}"
    if row["error"] is not None:
        return f"{what}: {row['error']}"
    rmse, nll, covered, seconds = (
        cast(float, row[name]) for name in ("rmse", "nll", "coverage95", "fit_seconds")
    )
    return f"{what}: rmse {rmse:.4g}, nll {nll:.3f}, coverage {covered:.3f}, {seconds:.1f} s"


def table(options: argparse.Namespace) -> None:
    """Print the tables of a suite as Markdown.

    Example: python -m experiments table --suite tables --measures rmse,fit_seconds
    """
    from experiments.tables import MEASURES, conditions, failures, suite_tables

    suite = load_suite(options.suite)
    rows = read(results_file(suite.name, options.results))
    unknown = set(options.measures) - set(MEASURES)
    if unknown:
        raise ValueError(f"no measure {', '.join(unknown)}: use some of {', '.join(MEASURES)}.")
    parts = [suite_tables(suite, rows, measure) for measure in options.measures]
    print("\n\n".join(part for part in [*parts, failures(rows), conditions(rows)] if part))


def tidy(options: argparse.Namespace) -> None:
    """Keep the last row of every run, in the order of the suite, and drop rows it does not name.

    Example: python -m experiments tidy --suite tables
    """
    suite = load_suite(options.suite)
    path = results_file(suite.name, options.results)
    rows = {row["key"]: row for row in read(path)}
    kept = [rows[run.key] for run in suite.runs() if run.key in rows]
    rewrite(path, kept)
    print(f"{path.name}: {len(kept)} rows kept, {len(rows) - len(kept)} dropped.")


def theory(options: argparse.Namespace) -> None:
    """Measure the error of the random kernel where it has no row yet, and draw it.

    Example: python -m experiments theory
    """
    from experiments.theory import draw, run

    for row in run(options.results):
        quantile, bound = cast(float, row["quantile"]), cast(float, row["rows"])
        print(f"{row['method']} · {row['n_atoms']} atoms: {quantile:.4f}, bound {bound:.4f}")
    print(draw(options.results).name)


def figures(options: argparse.Namespace) -> None:
    """Draw the figures of the docs from stored rows.

    Example: python -m experiments figures
    """
    from experiments.figures import draw_all

    for path in draw_all(options.results):
        print(path.name)


def docs(options: argparse.Namespace) -> None:
    """Rebuild the generated sections of README and docs from stored rows.

    Example: python -m experiments docs
    """
    from experiments.docs import rewrite_pages

    for page in rewrite_pages(options.results):
        print(page.name)


if __name__ == "__main__":
    sys.exit(main())
