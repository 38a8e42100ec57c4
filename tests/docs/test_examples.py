"""Every example in README and docs runs: Python in one namespace per page, and the rwf command.

A block of text right after one of Python is what it prints; numbers may differ in the last digits.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from docs.hooks.gallery import Example, run, scripts
from rwf import cli
from rwf.data.readers.formats import FORMATS
from rwf.priors import PRIORS
from rwf.uncertainty.noise import NOISE_MODELS

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


BLOCK = re.compile(r"```(python|sh)\n(.*?)```(?:\n\n```text\n(.*?)```)?", flags=re.DOTALL)
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
    namespace = {"__name__": "example"}
    text = page.read_text(encoding="utf-8")
    for language, block, expected in BLOCK.findall(text):
        if language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block, str(page), "exec", dont_inherit=True), namespace)
            if expected:
                assert_same_text(printed.getvalue(), expected)
            continue
        for line in re.findall(r"^rwf .*$", block, flags=re.MULTILINE):
            monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
            with pytest.raises(SystemExit) as stopped:
                cli.main()
            assert not stopped.value.code, line


def assert_same_text(printed, expected):
    """That two texts are equal but for the last digits of their numbers."""
    assert NUMBER.sub("…", printed) == NUMBER.sub("…", expected)
    a, b = (np.array(NUMBER.findall(text), dtype=float) for text in (printed, expected))
    assert np.allclose(a, b, atol=0.03), printed


def test_readme_shows_what_its_first_example_prints():
    blocks = BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    first = next(block for block in blocks if block[0] == "python")
    assert NUMBER.search(first[2])


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.stem)
def test_scripts_of_the_gallery_run(script):
    example = Example.read(script)
    if not example.possible:
        pytest.skip("RWF_DATA is not set to a folder of data sets")
    outcome = run(script)
    assert outcome.svg.startswith(b"<?xml")
    page = example.page(outcome)
    assert f"![{example.title}]({script.stem}.svg)" in page
    assert outcome.printed in page


@pytest.mark.parametrize("folder", ["", "not-there"])
def test_a_page_of_the_gallery_without_its_data_says_so(folder, monkeypatch):
    monkeypatch.setenv("RWF_DATA", folder)
    example = Example("name", "A title", "A text.", "os.environ['RWF_DATA']")
    assert not example.possible
    assert "was not set to a folder" in example.page(None)
    assert ".svg" not in example.page(None) + example.card


FURTHER = re.compile(r"```py\n(.*?)```", flags=re.DOTALL)
IMPORTED = re.compile(r"^(?:import|from) (ray|pyspark|skpro|torch)\b", flags=re.MULTILINE)


def further():
    """Examples by the package that they need beyond the pinned environment, and their page."""
    found = {}
    for page in PAGES:
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
