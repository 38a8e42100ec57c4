"""Every example in README and docs runs: Python in one namespace per page, and the rwf command."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from docs.hooks.gallery import Example, run, scripts
from rwf import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "example"}
    text = page.read_text(encoding="utf-8")
    for language, block in re.findall(r"```(python|sh)\n(.*?)```", text, flags=re.DOTALL):
        if language == "python":
            exec(compile(block, str(page), "exec", dont_inherit=True), namespace)
        for line in re.findall(r"^rwf .*$", block, flags=re.MULTILINE):
            monkeypatch.setattr(sys, "argv", shlex.split(line, comments=True))
            with pytest.raises(SystemExit) as stopped:
                cli.main()
            assert not stopped.value.code, line


@pytest.mark.parametrize("script", scripts(), ids=lambda script: script.stem)
def test_scripts_of_the_gallery_run(script):
    example = Example.read(script)
    if not example.possible:
        pytest.skip("RWF_DATA names no directory of data sets")
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
    assert "named no folder" in example.page(None)
    assert ".svg" not in example.page(None) + example.card


def test_what_does_not_run_here_is_marked_as_such():
    unrun = {page.name for page in PAGES if "```py\n" in page.read_text(encoding="utf-8")}
    # Ray and Spark, as the page says; and GPyTorch, which tests_bench/test_gpytorch_kernel.py runs.
    assert unrun == {"large-data.md", "interoperability.md"}


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"
