"""The architecture, as imports: a folder knows only those below it in this list."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import rwf

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


def test_the_engine_does_not_know_wavelets():
    engine = folders()["inference"]
    assert not [
        path for path, uses in engine.items() if len(path.parts) == 2 and "wavelets" in uses
    ]


def test_four_modules_stand_beside_the_folders():
    assert {path.name for path in HOME.glob("*.py")} <= {
        "__init__.py", "_types.py", "datasets.py", "errors.py",
    }  # fmt: skip


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
