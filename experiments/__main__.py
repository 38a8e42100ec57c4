"""Run suites, print their tables, draw their figures, rebuild the docs.

Example: python -m experiments run --suite tables --methods rwf,rff --tasks airfoil --jobs 2
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from experiments.runner.plan import Suite, load_suite, suite_names
from experiments.runner.run import Run
from experiments.runner.store import RESULTS, Row, read, results_file, rewrite

HOURS = 2.0
"""After so long :func:`reproduce` begins no more runs."""

REPRODUCED = (
    "paper",
    "speech",
    "plateaus",
    "growth",
    "ablation-wavelets",
    "ablation-shifts",
    "ablation-normalization",
    "ablation-starts",
    "peers",
    "peers-map",
)
"""The suites of the paper's experiments, and of other libraries."""

FULL = ("paper-full", "tables", "atoms", "shifted", "series", "fields", "gaps", "donoho")
"""What takes longer."""


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
        ("reproduce", reproduce, False),
        ("peers", peers, False),
        ("settle", settle, False),
        ("theory", theory, False),
        ("curves", curves, False),
        ("figures", figures, False),
        ("docs", docs, False),
        ("report", report, False),
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
        if name in ("reproduce", "peers"):
            sub.add_argument("--jobs", type=int, default=2, help="runs at once, one thread each")
        if name == "reproduce":
            sub.add_argument("--full", action="store_true", help="all suites, however long")
        if name == "settle":
            sub.add_argument("--same", action="store_true", help="older rows stay fresh")
        if name == "table":
            sub.add_argument("--measures", type=_names, default=["rmse", "nll", "coverage95"])
    return top


def _add_run_options(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--methods", type=_names, help="only these, separated by commas")
    sub.add_argument("--tasks", type=_names, help="only these, separated by commas")
    sub.add_argument("--splits", type=_numbers, help="only these, separated by commas")
    sub.add_argument("--timit", type=Path, help="your copy of TIMIT, for the tasks timit-...")
    sub.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each if several")
    sub.add_argument("--retry-failed", action="store_true", help="run again what failed")
    sub.add_argument("--renew", action="store_true", help="run again ours of other sources")
    sub.add_argument("--again", action="store_true", help="run again what has a row")


def _names(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def run(options: argparse.Namespace) -> None:
    """Do the runs of a suite that have no row yet.

    Example: python -m experiments run --suite tables --jobs 2
    """
    from experiments.runner.session import pending

    if options.timit is not None:
        _name_timit(options.timit)
    suite = load_suite(options.suite)
    runs = suite.runs(options.tasks, options.methods)
    if options.splits is not None:
        runs = [run for run in runs if run.split in options.splits]
    stored = suite.rows(options.results)
    todo = pending(
        runs,
        stored,
        retry_failed=options.retry_failed,
        renew=options.renew,
        again=options.again,
    )
    _do(suite, todo, options)


def _name_timit(path: Path) -> None:
    """Tell the processes of the runs where the user's copy of TIMIT is."""
    from experiments.data.speech import TIMIT_VARIABLE

    if not path.exists():
        raise ValueError(
            f"--timit {path}: nothing is there. Name a folder or a zip archive of TIMIT."
        )
    os.environ[TIMIT_VARIABLE] = str(path.resolve())


def reproduce(options: argparse.Namespace) -> None:
    """Run the paper's experiments where rows are missing, then draw and write all results.

    No run begins after two hours, and the next call goes on from there. With --full nothing is
    left out: all suites, and ten minutes a fit for the deep and variational methods too.

    Example: python -m experiments reproduce
    """
    from experiments.runner.session import pending

    until = math.inf if options.full else time.monotonic() + 3600 * HOURS
    for name in (*REPRODUCED, *(FULL if options.full else ())):
        suite = load_suite(name)
        _do(suite, pending(suite.runs(), suite.rows(options.results)), options, until)
    if time.monotonic() < until:
        curves(options)
    report(options)


def peers(options: argparse.Namespace) -> None:
    """Time other libraries where rows are missing, and print how much faster RWF predicts as well.

    Example: python -m experiments peers
    """
    from experiments.reporting.peers import SUITES, ratios
    from experiments.runner.session import pending

    for suite in map(load_suite, SUITES):
        _do(suite, pending(suite.runs(), suite.rows(options.results)), options)
    print(ratios(options.results))


def _do(
    suite: Suite, todo: Sequence[Run], options: argparse.Namespace, until: float = math.inf
) -> None:
    """Do some runs of a suite, with a bar, as far as they begin before ``until``."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from experiments.runner.session import Conditions, dgemm_gflops, perform

    console = Console(stderr=True)
    console.print(f"{suite.name}: {len(todo)} runs to do.")
    if not todo:
        return
    path = results_file(suite.name, options.results)
    conditions = Conditions(options.jobs, suite.timeout, dgemm_gflops())
    bar = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*bar, console=console) as progress:
        entry = progress.add_task(suite.name, total=len(todo))
        for row in perform(todo, path, conditions, until):
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
    from experiments.reporting.cells import MEASURES
    from experiments.reporting.tables import conditions, failures, suite_tables

    suite = load_suite(options.suite)
    rows = suite.rows(options.results)
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


def settle(options: argparse.Namespace) -> None:
    """Make these sources the default of the results: rows of ours with others become stale.

    With --same they predict as before, so that rows which are fresh stay so.

    Example: python -m experiments settle
    """
    from experiments.runner.default import settle

    print(settle(options.results, same=options.same))


def theory(options: argparse.Namespace) -> None:
    """Measure the error of the random kernel where it has no row yet, and draw it.

    Example: python -m experiments theory
    """
    from experiments.reporting.theory import draw, run

    for row in run(options.results):
        quantile, bound = cast(float, row["quantile"]), cast(float, row["rows"])
        print(f"{row['method']} · {row['n_atoms']} atoms: {quantile:.4f}, bound {bound:.4f}")
    print(draw(options.results).name)


def curves(options: argparse.Namespace) -> None:
    """Fit the paper's methods to the plateaus where no curve is stored yet.

    Example: python -m experiments curves
    """
    from experiments.reporting.curves import run

    for row in run(options.results):
        print(row["method"])


def figures(options: argparse.Namespace) -> None:
    """Draw the figures of the docs from stored rows, and maps, for which it fits again.

    Example: python -m experiments figures
    """
    from experiments.reporting.figures import draw_all, draw_maps

    for path in [*draw_all(options.results), *draw_maps(options.results)]:
        print(path.name)


def docs(options: argparse.Namespace) -> None:
    """Rebuild the generated sections of README and docs from stored rows.

    Example: python -m experiments docs
    """
    from experiments.reporting.docs import rewrite_pages

    for page in rewrite_pages(options.results):
        print(page.name)


def report(options: argparse.Namespace) -> None:
    """Draw figures, rebuild the docs, and write all results as one page, from stored rows alone.

    Example: python -m experiments report
    """
    from experiments.reporting.figures import draw_all
    from experiments.reporting.page import write_page

    draw_all(options.results)
    docs(options)
    print(write_page().name)


if __name__ == "__main__":
    sys.exit(main())
