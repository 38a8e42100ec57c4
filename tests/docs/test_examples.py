"""Every example in README and docs runs: Python in one namespace per page, and the rwf command.

A block of text right after one of Python is what it prints; numbers may differ in the last digits.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from docs.hooks.examples import (
    BLOCK,
    DOCS,
    MARK,
    RUN,
    Example,
    RunPage,
    output,
    run,
    run_page,
    scripts,
)
from rwf.data.readers.formats import FORMATS
from rwf.priors import PRIORS
from rwf.uncertainty.noise import NOISE_MODELS

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NAVIGATION = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
GUIDES = [
    ROOT / "docs" / page
    for part in NAVIGATION
    for entry in part.get("Guide", ())
    for page in entry.values()
]
WITH_MAPS = {"raster.md", "areas.md"}  # pages whose examples need the extra maps
NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.fixture(autouse=True)
def _registries_stay_as_they_are():
    kept = [(registry, dict(registry)) for registry in (PRIORS, NOISE_MODELS, FORMATS)]
    yield
    for registry, before in kept:
        registry.clear()
        registry.update(before)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, monkeypatch, tmp_path):
    if page.name in WITH_MAPS:
        pytest.importorskip("xarray", reason="the extra maps is not installed")
    monkeypatch.chdir(tmp_path)
    text = page.read_text(encoding="utf-8")
    outcomes = [*run_page(text, page.stem)]
    for block, outcome in zip(BLOCK.finditer(text), outcomes, strict=True):
        if block["expected"]:
            assert_same_text(outcome.printed, block["expected"])
    if page in GUIDES:
        assert any(outcome.printed for outcome in outcomes), "a guide shows what its code prints"
        assert any(outcome.svg for outcome in outcomes), "a guide has a picture"


def test_the_site_runs_every_guide():
    assert {path for pattern in RUN for path in DOCS.glob(pattern)} >= set(GUIDES)
    assert len(GUIDES) == len(set(GUIDES)) >= 10


def assert_same_text(printed, expected):
    """That two texts are equal but for the last digits of their numbers."""
    assert NUMBER.sub("…", printed) == NUMBER.sub("…", expected)
    a, b = (np.array(NUMBER.findall(text), dtype=float) for text in (printed, expected))
    assert np.allclose(a, b, atol=0.03), printed


def test_readme_shows_what_its_first_example_prints():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    first = next(block for block in BLOCK.finditer(text) if block["language"] == "python")
    assert NUMBER.search(first["expected"])


def test_a_page_shows_output_and_figures_after_the_code_that_made_them(tmp_path):
    page = tmp_path / "page.md"
    figure = "from matplotlib.figure import Figure\nfigure = Figure()\n"
    page.write_text(
        "# Sums\n\n```python\na = 3\nprint(2 * a)\n```\n\nAnd then\n\n## A line\n\n"
        f"```python\n{figure}print(a)\n```\n\n```text\n3.001\n```\n\nThe end.\n"
    )
    found = RunPage.of(page)
    assert found.markdown == (
        f"# Sums\n\n```python\na = 3\nprint(2 * a)\n```\n\n{output('6')}\n\nAnd then\n\n"
        f"## A line\n\n```python\n{figure}print(a)\n```\n\n{output('3')}\n\n"
        "![A line](page-1.svg)\n\nThe end.\n"
    )
    assert [*found.figures] == ["page-1.svg"]
    assert found.figures["page-1.svg"].startswith(b"<?xml")


def test_an_example_that_fails_stops_the_build(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Models\n\n```sh\nrwf inspect none.rwf\n```\n")
    with pytest.raises(RuntimeError, match="exit code 2"):
        RunPage.of(page)


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.stem)
def test_scripts_of_the_gallery_run(script):
    example, outcome = Example.read(script), run(script)
    assert outcome.svg.startswith(b"<?xml")
    page = example.page(outcome)
    assert f"![{example.title}]({script.stem}.svg)" in page
    assert outcome.printed.rstrip() in page


def test_scripts_of_the_gallery_need_no_data_of_others():
    sources = [script.read_text(encoding="utf-8") for script in scripts()]
    assert not [source for source in sources if "environ" in source]


def test_overviews_show_scripts_that_exist():
    names = {script.stem for script in scripts()}
    for page in PAGES:
        for mark in MARK.finditer(page.read_text(encoding="utf-8")):
            assert names >= set(mark[1].split()), page.name


FURTHER = re.compile(r"```py\n(.*?)```", flags=re.DOTALL)
IMPORTED = re.compile(r"^(?:import|from) (ray|pyspark|skpro|torch)\b", flags=re.MULTILINE)


OF_OTHERS = "coming-from.md"  # shows the code of other libraries beside ours


def further():
    """Examples by the package that they need beyond the pinned environment, and their page."""
    found = {}
    for page in (page for page in PAGES if page.name != OF_OTHERS):
        package = None
        for block in FURTHER.findall(page.read_text(encoding="utf-8")):
            imported = IMPORTED.search(block)
            package = imported[1] if imported else package  # others go on with the block before
            found.setdefault((package, page), []).append(block)
    return found


@pytest.mark.parametrize("package, page", further(), ids=lambda x: getattr(x, "name", x))
def test_examples_with_further_packages_run(package, page, monkeypatch, tmp_path):
    pytest.importorskip(package, reason=f"needs {package}: nox -s harnesses")
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "example"}
    for block in further()[package, page]:
        exec(compile(block, str(page), "exec", dont_inherit=True), namespace)


def anchors(page):
    """The anchors of the headings of a page, as MkDocs and GitHub make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        links = re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8"))
        for target, anchor in links:
            if "://" in target:
                continue
            home = page.parent / target if target else page
            assert home.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(home), f"{page.name}: {target}#{anchor}"
