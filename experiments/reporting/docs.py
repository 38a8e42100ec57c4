"""Generated sections of the docs: the text between two markers is rebuilt from stored rows.

The markers of a page are ``<!-- begin generated: NAME -->`` and ``<!-- end generated -->``.
Figures are linked where their file exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

from experiments import ROOT
from experiments.reporting import counting, paper, peers, theory
from experiments.reporting.cells import MEASURES, cell_of
from experiments.reporting.figures import FIGURES
from experiments.reporting.labels import plain_label
from experiments.reporting.tables import (
    column_of_cells,
    explained,
    markdown,
    missing,
    of_task,
    suite_tables,
    task_title,
)
from experiments.runner.plan import load_suite
from experiments.runner.store import RESULTS

SECTION = re.compile(
    r"(<!-- begin generated: (?P<name>[\w-]+) -->\n).*?(<!-- end generated -->)", flags=re.DOTALL
)


def tables_section(suite_name: str, *fields: str) -> Callable[[Path], str]:
    """The tables of some measures, failed runs, and the conditions of the runs."""

    def build(results: Path) -> str:
        suite = load_suite(suite_name)
        rows = suite.rows(results)
        if not rows:
            return suite_tables(suite, rows, fields[0])
        parts = [suite_tables(suite, rows, field) for field in fields]
        return explained(parts, rows)

    return build


def figure_section(name: str, caption: str, folder: str = "figures") -> Callable[[Path], str]:
    """A figure, in a folder as the page sees it."""

    def build(results: Path) -> str:
        path = FIGURES / f"{name}.png"
        return f"![{caption}]({folder}/{name}.png)" if path.exists() else "No figure is drawn yet."

    return build


IN_README = ("rwf", "rwf-alone", "kriging-logs", "exact10k-matern32-logs", "catboost")
"""Ours, with and without neighbours, and the strongest of the others."""


def readme_table(results: Path) -> str:
    """RMSE on the four largest tables, without footnotes."""
    suite, measure = load_suite("tables"), MEASURES["rmse"]
    rows = suite.rows(results)
    if not rows:
        return missing(suite)
    columns = []
    for task in ("airfoil", "kin8nm", "naval", "protein"):
        cells = {
            plain_label(method): cell_of(
                [row for row in of_task(rows, task) if row["method"] == method], measure.field
            )
            for method in IN_README
        }
        splits = {plain_label(m): len(suite.splits_of(m, task)) for m in IN_README}
        title = task_title(task, measure)
        columns.append(column_of_cells(cells, measure, title, splits.__getitem__))
    return markdown([plain_label(method) for method in IN_README], columns)


SECTIONS: Mapping[str, Callable[[Path], str]] = {
    "readme": readme_table,
    "tables-accuracy": tables_section("tables", "rmse", "crps", "nll", "rmse_skill_linear"),
    "tables-calibration": tables_section("tables", "coverage95", "width95", "calibration_error"),
    "tables-cost": tables_section("tables", "fit_cpu_seconds", "predict_seconds", "peak_memory_mb"),
    "tables-count": counting.section("tables", *paper.SCORES),
    "official-accuracy": tables_section("official", "rmse", "nll", "coverage95"),
    "official-cost": tables_section("official", "fit_cpu_seconds", "predict_seconds"),
    "official-count": counting.section("official", "rmse", "nll"),
    "large-accuracy": tables_section("large", "rmse_sd", "nll_sd", "coverage95"),
    "large-cost": tables_section("large", "fit_cpu_seconds", "predict_seconds"),
    "large-count": counting.section("large", "rmse_sd", "nll_sd"),
    "shuffled": tables_section("shuffled", "rmse", "coverage95"),
    "choice": tables_section("tables-choice", "rmse", "nll"),
    "shifted": tables_section("shifted", "rmse", "nll", "coverage95"),
    "atoms": tables_section("atoms", "rmse"),
    "plateaus": tables_section("plateaus", "rmse_f", "coverage95_f", "rmse", "coverage95", "crps"),
    "donoho": tables_section("donoho", "rmse_f", "coverage95_f"),
    "series": tables_section("series", "rmse", "crps", "nll", "coverage95"),
    "fields": tables_section("fields", "rmse", "crps", "nll", "coverage95"),
    "terrain": tables_section("terrain", "rmse", "nll", "crps", "coverage95"),
    "terrain-cost": tables_section(
        "terrain", "fit_cpu_seconds", "predict_seconds", "peak_memory_mb"
    ),
    "scattered": tables_section("scattered", "rmse", "crps", "coverage95", "fit_cpu_seconds"),
    "heaton": tables_section("heaton", "rmse", "crps", "coverage95", "fit_cpu_seconds"),
    "heaton-simulated": tables_section("heaton-simulated", "rmse", "crps", "coverage95"),
    "groups": tables_section("groups", "rmse", "nll", "coverage95"),
    "figure-terrain": figure_section(
        "terrain", "A withheld block of dem_jacksboro: truth, mean, standard deviation and error"
    ),
    "long": tables_section("long", "rmse", "rmse_f", "nll", "crps", "coverage95"),
    "long-cost": tables_section("long", "fit_cpu_seconds", "predict_seconds", "peak_memory_mb"),
    "gaps": tables_section("gaps", "coverage95", "width95", "rmse", "nll"),
    "figure-atoms": figure_section("atoms", "RMSE against the number of atoms on three tables"),
    "theory": theory.table,
    "figure-theory": figure_section(
        "theory", "Largest error of the kernel against the number of atoms, under its bounds"
    ),
    "figure-calibration": figure_section("calibration", "Observed against nominal coverage"),
    "paper-count": paper.count,
    "paper-paired": counting.section("paper", *paper.SCORES, rivals=paper.COUNTED[1:]),
    "paper-anchors": paper.anchors,
    "paper-line": paper.behind_a_line,
    "paper-multi-step": paper.experiment("multi-step", "five-plateaus", "five-plateaus-quiet"),
    "paper-speech": paper.experiment("speech", *paper.SPEECH),
    "speech": tables_section("speech", "rmse", "nll"),
    "paper-speech-printed": paper.printed_alone("speech"),
    "paper-tables": paper.experiment("tables", *paper.TABLES),
    "paper-protein": paper.experiment("protein", "protein"),
    "peers": tables_section("peers", "rmse", "nll", "fit_cpu_seconds", "peak_memory_mb"),
    "peers-map": tables_section("peers-map", "rmse", "nll", "fit_cpu_seconds", "peak_memory_mb"),
    "peers-ratios": peers.ratios,
    "growth": tables_section("growth", "fit_cpu_seconds", "peak_memory_mb", "rmse"),
    "figure-curves": figure_section(
        "curves", "Five plateaus: mean and two standard deviations of every method", "../figures"
    ),
    "figure-columns": figure_section(
        "columns", "RMSE on plateaus against the number of columns", "../figures"
    ),
    "figure-growth": figure_section(
        "growth", "Time and memory against the number of training rows", "../figures"
    ),
    **{
        f"ablation-{name}": tables_section(f"ablation-{name}", "rmse", "nll")
        for name in ("wavelets", "shifts", "normalization", "starts", "frequencies")
    },
}
"""What can be generated, by the name in the marker."""


def regenerated(text: str, results: Path = RESULTS) -> str:
    """A page with its generated sections rebuilt; the rest as it was."""

    def replace(match: re.Match[str]) -> str:
        name = match["name"]
        if name not in SECTIONS:
            raise ValueError(f"no generated section {name!r}: use one of {', '.join(SECTIONS)}.")
        return f"{match[1]}\n{SECTIONS[name](results)}\n\n{match[3]}"

    return SECTION.sub(replace, text)


def pages(root: Path = ROOT) -> list[Path]:
    """The pages that have generated sections."""
    candidates = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    return [page for page in candidates if SECTION.search(page.read_text(encoding="utf-8"))]


def rewrite_pages(results: Path = RESULTS, root: Path = ROOT) -> list[Path]:
    """Rebuild every page; returns those that changed."""
    changed = []
    for page in pages(root):
        old = page.read_text(encoding="utf-8")
        new = regenerated(old, results)
        if new != old:
            page.write_text(new, encoding="utf-8")
            changed.append(page)
    return changed
