"""How long other libraries take, compared with the fastest RWF that predicts as well.

As well means no greater RMSE and no greater negative log density on the test rows. The fastest is
the run of fewest CPU seconds among the suite's runs of RWF.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

from experiments.reporting.labels import LABELS
from experiments.reporting.tables import missing
from experiments.runner.plan import load_suite
from experiments.runner.store import JSON, Row

SUITES = ("peers", "peers-map")
"""A table, and a map."""


def ratios(results: Path) -> str:
    """For each suite the peers, what they reach, and how much faster RWF reaches it."""
    parts = []
    for name in SUITES:
        suite = load_suite(name)
        rows = [row for row in suite.rows(results) if row["error"] is None]
        ours = [row for row in rows if str(row["method"]).startswith("rwf")]
        theirs = [row for row in rows if row not in ours]
        parts += [f"**{', '.join(suite.tasks)}**", _table(ours, theirs)] if rows else []
    return "\n\n".join(parts) or missing(load_suite(SUITES[0]))


def _table(ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    lines = [
        "| peer | RMSE | NLL | CPU s | RWF that is as good | RMSE | NLL | CPU s | times faster |",
        "|---" * 9 + "|",
    ]
    for row in theirs:
        equal = fastest_as_good(ours, row)
        if equal is None:
            found = "none | – | – | – | –"
        else:
            ratio = _seconds(row) / _seconds(equal)
            found = f"{_name(equal)} | {_scores(equal)} | {ratio:.1f}"
        lines.append(f"| {_name(row)} | {_scores(row)} | {found} |")
    return "\n".join(lines)


def fastest_as_good(ours: Sequence[Row], peer: Row) -> Row | None:
    """The run of fewest CPU seconds that is no worse than a peer's, if there is one."""
    equal = [
        row
        for row in ours
        if all(cast(float, row[field]) <= cast(float, peer[field]) for field in ("rmse", "nll"))
    ]
    return min(equal, key=_seconds, default=None)


def _seconds(row: Row) -> float:
    return cast(float, row["fit_cpu_seconds"])


def _scores(row: Row) -> str:
    numbers = (cast(float, row[name]) for name in ("rmse", "nll", "fit_cpu_seconds"))
    rmse, nll, seconds = numbers
    return f"{rmse:.4g} | {nll:.3f} | {seconds:.1f}"


def _name(row: Row) -> str:
    settings = cast(dict[str, JSON], row["settings"])
    label = LABELS[str(row["method"])].replace("**", "")
    return ", ".join([label, *(f"{value} columns" for value in settings.values())])
