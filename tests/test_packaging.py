"""What stands in several files about versions and commands is the same in all of them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import rwf

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def pythons():
    """The versions of the classifiers."""
    listed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert listed == sorted(listed, key=lambda version: int(version[2:]))
    return listed


def recipe():
    return yaml.safe_load(text("packaging/conda/recipe.yaml"))


def test_the_version_is_the_same_everywhere():
    citation = yaml.safe_load(text("CITATION.cff"))
    assert {PROJECT["version"], citation["version"], recipe()["context"]["version"]} == {
        rwf.__version__
    }


def test_the_conda_recipe_needs_what_the_wheel_needs():
    extra = PROJECT["optional-dependencies"]["cli"]
    wanted = sorted(
        re.sub(r"(?=>=)", " ", line.lower()) for line in PROJECT["dependencies"] + extra
    )
    run = [
        line.replace("matplotlib-base", "matplotlib") for line in recipe()["requirements"]["run"]
    ]
    assert sorted(run) == sorted([*wanted, "python >=${{ python_min }}"])
    assert recipe()["context"]["python_min"] == pythons()[0]


def test_the_oldest_python_is_the_first_of_the_classifiers():
    assert PROJECT["requires-python"] == f">={pythons()[0]}"


def test_workflows_call_sessions_that_exist():
    noxfile = text("noxfile.py")
    sessions = set(re.findall(r"^def (\w+)\(session", noxfile, flags=re.MULTILINE))
    tests = yaml.safe_load(text(".github/workflows/tests.yml"))["jobs"]
    matrix = tests["tests"]["strategy"]["matrix"]
    called = [*matrix["session"], *(entry["session"] for entry in matrix["include"])]
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        for line in re.findall(r"uvx nox -s ([\w .-]+)$", path.read_text(), flags=re.MULTILINE):
            called += line.split()
    assert {name.split("-")[0] for name in called} <= sessions
    assert {f"tests-{version}" for version in pythons()} <= set(called)
    assert {name.split("-")[1] for name in called if "-" in name} <= set(pythons())


def test_hooks_run_targets_of_make():
    (local,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    commands = [hook["entry"] for hook in local["hooks"]]
    assert commands == ["make lint", "make check"]


@pytest.mark.parametrize("name", ["dev.txt", "bench.txt", "docs.txt"])
def test_pins_are_exact(name):
    lines = [line for line in text(f"requirements/{name}").splitlines() if not line.startswith("#")]
    assert all("==" in line for line in lines if line != "-r dev.txt")


def test_the_paper_cites_what_its_bibliography_has_and_its_figure_exists():
    paper = text("paper/paper.md")
    head, body = re.fullmatch(r"---\n(.*?)\n---\n(.*)", paper, flags=re.DOTALL).groups()
    listed = re.findall(
        r"^@\w+\{(\w+),", text(f"paper/{yaml.safe_load(head)['bibliography']}"), re.M
    )
    assert len(listed) == len(set(listed))
    assert set(re.findall(r"@(\w+)", body)) == set(listed)
    (figure,) = re.findall(r"!\[[^]]*\]\((.*?)\)", body)
    assert (ROOT / "paper" / figure).is_file()
    for section in ("Summary", "Statement of need", "State of the field"):
        assert f"\n# {section}\n" in body
