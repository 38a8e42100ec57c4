"""The architecture, as imports: each module knows only what stands above it in this list."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import rwf

ORDER = [
    # vocabulary
    "types", "errors", "atomic", "random_state", "threads", "blas", "factorization", "metrics", "signals",
    "wavelets", "measures", "features", "kernels",
    # engine: Z only, never wavelets
    "rows", "sources", "tables", "streams", "clusters", "posterior", "moments",
    "evidence", "exact",
    # learning
    "scaling", "ascent", "_neighbours", "neighbours", "tuning", "tree", "sparse", "starts",
    "variance", "background", "calibration",
    "models", "shapes", "forms", "corrections", "error_scale", "local_layer", "second_opinion", "model",
    "sparse_model", "tree_model", "fit_report", "varying", "training", "projection", "cells", "tree_learning", "adaptation",
    "lesson", "recipes", "building", "choice", "fitting", "anatomy",
    "theory",
    # interfaces
    "scoring", "validation", "saving", "checkpoints", "fitted_regressor", "regression",
    "estimators", "fourier", "transformers", "gpytorch", "plots", "demo", "writing", "table_model",
    "inspection", "report", "commands", "cli",
]  # fmt: skip
ENGINE = {
    "rows", "sources", "streams", "clusters", "posterior", "moments", "evidence", "exact",
}  # fmt: skip
HOME = Path(rwf.__file__).parent


def imported(path: Path) -> set[str]:
    """First-level modules of rwf that a file imports, wherever in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("rwf."):
            names.add(node.module.split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {a.name.split(".")[1] for a in node.names if a.name.startswith("rwf.")}
    return names


def modules() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in HOME.rglob("*.py"):
        name = path.relative_to(HOME).parts[0].removesuffix(".py")
        if name != "__init__":
            found[name] = found.get(name, set()) | imported(path)
    return found


def test_every_module_has_its_place():
    assert set(modules()) == set(ORDER)


def test_imports_point_upward_only():
    for name, uses in modules().items():
        for other in uses - {name}:
            assert ORDER.index(other) < ORDER.index(name), f"{name} imports {other}"


def test_the_engine_does_not_know_features_or_wavelets():
    for name in ENGINE:
        assert not modules()[name] & {"wavelets", "measures", "features"}


def test_importing_rwf_loads_nothing_heavy():
    code = "import rwf, sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numba", "matplotlib", "torch", "dask", "pywt", "pandas", "pyarrow"}
    assert not heavy & {name.split(".")[0] for name in loaded}


def test_importing_the_estimators_loads_no_compiler_and_no_plots():
    code = "import rwf, sys; rwf.RWFRegressor; rwf.RandomWaveletFeatures; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    heavy = {"numba", "matplotlib", "torch", "dask", "pywt"}
    assert not heavy & {name.split(".")[0] for name in loaded}
