"""Every check on every version: ``nox -s tests-3.13``, or ``nox --list``.

``make`` works in one pinned environment; these sessions resolve the versions that the metadata
allow. ``lowest`` needs uv, which can install the oldest of them.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2024.10.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.sessions = ["lint", "tests"]

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
RWF = ".[cli,dask,maps]"
TEST = nox.project.dependency_groups(PROJECT, "test")


def run_tests(session: nox.Session, *arguments: str) -> None:
    """The suite, with as many processes as cores, each of which keeps to one thread."""
    threads = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    parallel = ["-n", "auto", "--dist", "worksteal"]
    session.run("pytest", *(session.posargs or parallel), *arguments, env=threads)


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The tests with the newest releases."""
    session.install("--upgrade", RWF, *TEST)
    run_tests(session)


@nox.session(python=PYTHONS[0], venv_backend="uv")
def lowest(session: nox.Session) -> None:
    """The tests on the oldest Python, with the oldest releases that pyproject.toml allows."""
    session.install("--resolution", "lowest-direct", RWF, *TEST)
    run_tests(session)


@nox.session(python=PYTHONS[-1])
def newest(session: nox.Session) -> None:
    """The tests on the newest Python, with release candidates: what will break, before it does."""
    prereleases = "--prerelease=allow" if session.venv_backend == "uv" else "--pre"
    session.install("--upgrade", prereleases, RWF, *TEST)
    run_tests(session)


@nox.session(python=PYTHONS[0])
def harnesses(session: nox.Session) -> None:
    """The tests beside other libraries that need much room, or other versions than the pinned."""
    session.install(RWF, *TEST, *nox.project.dependency_groups(PROJECT, "harness"))
    run_tests(session, "tests/estimators/test_harnesses.py", "tests/docs/test_examples.py")


@nox.session(python=PYTHONS[0])
def docs(session: nox.Session) -> None:
    """The site; a warning is an error."""
    session.install("-r", "requirements/docs.txt")
    session.install("--no-deps", ".")
    session.run("mkdocs", "build", "--strict", env={"NO_MKDOCS_2_WARNING": "1"})


@nox.session(python=PYTHONS[0])
def lint(session: nox.Session) -> None:
    """Format, lint and types, in the pinned environment."""
    session.install("-r", "requirements/dev.txt")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")


@nox.session(python=PYTHONS[0])
def build(session: nox.Session) -> None:
    """The sdist and the wheel, in ``dist/``, and checks of both."""
    shutil.rmtree("dist", ignore_errors=True)
    session.install("build", "twine", "check-wheel-contents")
    session.run("python", "-m", "build")
    files = sorted(str(path) for path in Path("dist").iterdir())
    session.run("twine", "check", "--strict", *files)
    session.run("check-wheel-contents", "dist")


@nox.session(python=PYTHONS)
def wheel(session: nox.Session) -> None:
    """What the README shows, with the wheel of ``build`` and nothing else in the environment."""
    found = [path.resolve() for path in Path("dist").glob("rwf-*.whl")]
    if len(found) != 1:
        session.error(f"dist/ has {len(found)} wheels: run nox -s build first.")
    script = Path("packaging", "try_wheel.py").resolve()
    readme = Path("README.md").resolve()
    session.install(f"rwf[cli] @ {found[0].as_uri()}")
    session.chdir(session.create_tmp())
    session.run("python", str(script), str(readme))
