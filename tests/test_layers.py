"""The architecture, as imports: a folder knows only those below it in this list."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import rwf
from trace_fit import trace_table

LAYERS = (
    "cli", "integrations", "estimators", "persistence", "diagnostics", "fit", "theory", "priors",
    "models", "uncertainty", "inference", "kernels", "features", "wavelets", "data", "linalg",
    "datasets", "errors", "_types",
)  # fmt: skip
HOME = Path(rwf.__file__).parent


def imported(path: Path) -> set[str]:
    """Folders of rwf that a file imports when it runs, wherever in it.

    A name that only annotations use is no dependency.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rwf."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("rwf.")}
    return names


def folders() -> dict[str, dict[Path, set[str]]]:
    """What the modules of every folder import, beside their own folder."""
    found: dict[str, dict[Path, set[str]]] = {}
    for path in HOME.rglob("*.py"):
        name = path.relative_to(HOME).parts[0].removesuffix(".py")
        if name != "__init__":
            found.setdefault(name, {})[path.relative_to(HOME)] = imported(path) - {name}
    return found


def test_every_folder_has_its_place():
    assert set(folders()) == set(LAYERS)


def test_imports_point_down():
    wrong = [
        f"{path} imports {other}"
        for name, modules in folders().items()
        for path, uses in modules.items()
        for other in uses
        if LAYERS.index(other) < LAYERS.index(name)
    ]
    assert not wrong, "\n".join(wrong)


def test_inference_does_not_know_wavelets():
    modules = folders()["inference"]
    assert not [
        path for path, uses in modules.items() if len(path.parts) == 2 and "wavelets" in uses
    ]


def test_four_modules_stand_beside_the_folders():
    assert {path.name for path in HOME.glob("*.py")} <= {
        "__init__.py", "_types.py", "datasets.py", "errors.py",
    }  # fmt: skip


MODULES, LINES, BODY, MODULE = 37, 32_300, 40, 300
"""Limits: modules that a fit of a table passes through, lines of all sources, of the body of a
function without its docstring, and of a module."""


def test_a_fit_passes_through_few_modules_and_down_the_layers():
    trace = trace_table(600)  # the way of 2000 rows, sooner
    assert len(trace.modules) <= MODULES
    place = {name: LAYERS.index(name.split(".")[0]) for name in trace.modules}
    upward = [f"{a} -> {b}" for a, b in trace.entries if place[b] < place[a]]
    assert not upward, upward


def test_modules_and_functions_are_short():
    sizes = {path: path.read_text(encoding="utf-8").count("\n") for path in HOME.rglob("*.py")}
    assert sum(sizes.values()) < LINES
    assert not [f"{path}: {size}" for path, size in sizes.items() if size > MODULE]
    long = [
        f"{path.relative_to(HOME)}: {node.name}"
        for path in HOME.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and body_lines(node) > BODY
    ]
    assert not long, long


def body_lines(function: ast.FunctionDef) -> int:
    """Lines of a body, its docstring left out."""
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return 0 if not body else body[-1].end_lineno - body[0].lineno + 1


OURS = r"Model\b|Moments\b|Reader\b|Prior\b|Blend\b|Calibrated\b|LearnedFeatures|LearnedLattice"
ALLOWED = ("persistence", "estimators/validation.py", "cli/checks.py")


def test_no_isinstance_on_our_own_kinds():
    found = [
        f"{path.relative_to(HOME)}: {line.strip()}"
        for path in HOME.rglob("*.py")
        if not str(path.relative_to(HOME)).startswith(ALLOWED)
        for line in path.read_text(encoding="utf-8").splitlines()
        if re.search(rf"isinstance\(.*({OURS})", line)
    ]
    assert not found, found


def loaded_by(code: str) -> set[str]:
    """First-level modules that a new process has loaded after some code."""
    run = [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"]
    names = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
    return {name.split(".")[0] for name in names}


def test_importing_rwf_loads_nothing_heavy():
    heavy = {"numba", "matplotlib", "torch", "dask", "pywt", "pandas", "pyarrow"}
    assert not heavy & loaded_by("import rwf")


def test_importing_the_estimators_loads_no_compiler_and_no_plots():
    heavy = {"numba", "matplotlib", "torch", "dask", "pywt"}
    assert not heavy & loaded_by("import rwf; rwf.RWFRegressor; rwf.RandomWaveletFeatures")
