"""Which default of this library a row was made with, and whether that is still the default.

The fingerprint of the sources is a hash of what fits and predictions run through: comments,
docstrings and layout do not change it, and default parameters do. Rows of our methods store it.
``results/defaults.txt`` lists the fingerprints whose rows are fresh, the newest first; rows with
another, or with none, are stale, and tables mark them.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from experiments import ROOT
from experiments.runner.store import RESULTS, Row

FOLDERS = (
    "data",
    "estimators",
    "features",
    "fit",
    "inference",
    "kernels",
    "linalg",
    "models",
    "priors",
    "uncertainty",
    "wavelets",
)
"""The parts of the package on which predictions depend."""

OURS = ("rwf", "rff")
"""How the names of our methods begin."""

MIXTURES = ("dgp", "idd-gp", "a-rkhs")
"""Baselines that predict mixtures of normals, and say so in the facts of their rows."""


@cache
def fingerprint(package: Path = ROOT / "src" / "rwf") -> str:
    """A hash of the sources that fits and predictions run through."""
    total = hashlib.sha256()
    for folder in FOLDERS:
        for path in sorted((package / folder).rglob("*.py")):
            code = ast.parse(path.read_text(encoding="utf-8"))
            for node in _with_docstring(code):
                node.body = node.body[1:]
            total.update(f"{path.relative_to(package)}\n{ast.dump(code)}\n".encode())
    return total.hexdigest()[:12]


def _with_docstring(
    code: ast.Module,
) -> Iterator[ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(code):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (ast.get_docstring(node, clean=False) is not None):
            yield node


def commit(root: Path = ROOT) -> str | None:
    """The commit of the sources, with + if they differ from it; ``None`` without git."""
    sources = ("src", "experiments", ":!experiments/results")
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        return head + "+" * bool(_git(root, "diff", "--name-only", "HEAD", "--", *sources))
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def fresh(directory: Path = RESULTS) -> tuple[str, ...] | None:
    """The fingerprints whose rows are fresh; ``None`` where no default is settled."""
    path = directory / "defaults.txt"
    if not path.exists():
        return None
    lines = path.read_text(encoding="utf-8").splitlines()
    return tuple(line.strip() for line in lines if line.strip() and line[0] != "#")


def is_stale(row: Row, accepted: tuple[str, ...] | None) -> bool:
    """Whether a row is of one of our methods, with a default that is not among the accepted.

    So is a row of :data:`MIXTURES` from before these were scored by their mixture.
    """
    facts = row.get("facts")
    if row["method"] in MIXTURES and isinstance(facts, dict):
        return facts.get("density") != "mixture of normals"
    ours = str(row["method"]).split("-")[0] in OURS
    return ours and accepted is not None and row.get("default") not in accepted


def settle(directory: Path = RESULTS, *, same: bool = False) -> str:
    """Make the sources' fingerprint the default of the results; returns it.

    Args:
        directory: where rows are.
        same: whether they predict as before, so that rows of older fingerprints stay fresh.
    """
    now = fingerprint()
    older = [name for name in fresh(directory) or () if same and name != now]
    text = "# Fingerprints of the sources whose rows are fresh (experiments/runner/default.py).\n"
    text += "".join(f"{name}\n" for name in (now, *older))
    (directory / "defaults.txt").write_text(text, encoding="utf-8")
    return now
