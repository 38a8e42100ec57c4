"""The site: its navigation has all pages, its reference all names, and its claims have rows."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import rwf
from experiments.runner.store import read, results_file

DOCS = Path(__file__).parents[2] / "docs"
SITE = yaml.safe_load((DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8"))


def addresses(entry):
    """The pages of a part of the navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in addresses(part)]


def test_the_navigation_has_every_page_and_every_script_once():
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    pages += [f"gallery/{script.stem}.md" for script in (DOCS / "gallery").glob("*.py")]
    assert sorted(addresses(SITE["nav"])) == sorted(pages)


def test_the_gallery_shows_every_script():
    overview = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    shown = re.search(r"<!-- examples: ([\w ]+) -->", overview)[1].split()
    assert sorted(shown) == sorted(script.stem for script in (DOCS / "gallery").glob("*.py"))


def test_the_reference_has_every_public_name():
    text = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "api").glob("*.md"))
    described = set(re.findall(r"^::: rwf\.(?:errors\.)?(\w+)$", text, flags=re.MULTILINE))
    assert described >= set(rwf.__all__)


def test_the_site_loads_nothing_from_other_hosts():
    assert SITE["theme"]["font"] is False
    files = [DOCS.parent / "mkdocs.yml", *(DOCS / "stylesheets").glob("*"), *DOCS.rglob("*.md")]
    for file in files:
        loaded = re.findall(r"(?:!\[[^]]*\]\(|src=.|url\(|@import .)https?:", file.read_text())
        assert not loaded, f"{file.name} loads from another host"


# ----------------------------------------------------------------- what docs/choosing.md claims


def means(suite, field):
    """The mean of a field over splits, by task and method."""
    found = {}
    for row in read(results_file(suite)):
        if row.get(field) is not None:
            found.setdefault((row["task"], row["method"]), []).append(row[field])
    return {key: float(np.mean(values)) for key, values in found.items()}


def test_on_the_six_tables_the_default_has_lower_errors_than_boosting():
    error = means("tables", "rmse")
    tasks = {task for task, _ in error}
    assert len(tasks) == 6
    assert all(error[task, "rwf"] < error[task, "boosting"] for task in tasks)


def test_thresholding_takes_a_small_fraction_of_the_time_of_spike_and_slab():
    seconds = means("donoho", "fit_cpu_seconds")
    for task in ("blocks", "bumps", "heavisine", "doppler"):
        assert seconds[task, "ti-sym8"] < 0.05 * seconds[task, "rwf-sparse"]


@pytest.mark.parametrize("task", ["mcycle", "lidar"])
def test_on_a_few_hundred_rows_exact_processes_are_as_good(task):
    error = means("series", "rmse")
    exact = min(error[task, f"exact5k-matern{order}2"] for order in (1, 3))
    assert abs(exact / error[task, "rwf"] - 1) < 0.05


@pytest.mark.parametrize("task", ["ecg-tenth", "seismogram_tohoku"])
def test_on_long_series_with_little_noise_celerite_is_better_and_faster(task):
    for field in ("rmse", "fit_cpu_seconds"):
        score = means("long", field)
        assert score[task, "celerite-matern32"] < score[task, "rwf-tree"]
