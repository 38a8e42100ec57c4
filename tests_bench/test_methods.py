"""Methods on torch by name: torch is imported where one of them is made, and nowhere else."""

import subprocess
import sys

import numpy as np
import pytest

from experiments import ROOT
from experiments.baselines.standardized import FunctionMethod
from experiments.reporting.labels import LABELS
from experiments.runner import methods
from experiments.runner.methods import make

NAMES = ("svgp", "sm", "dgp")


@pytest.mark.parametrize("name", NAMES)
def test_they_are_methods_that_know_the_function(name):
    assert isinstance(make(name, {"budget": 5.0}, 0), FunctionMethod)
    assert name in LABELS


@pytest.mark.parametrize("name", NAMES)
def test_without_torch_the_error_names_the_extra(name, monkeypatch):
    def absent(module):
        raise ImportError(module)

    monkeypatch.setattr(methods, "import_module", absent)
    with pytest.raises(ImportError, match="install the extra bench"):
        make(name, {}, 0)


def test_the_list_of_methods_needs_no_torch():
    code = (
        "import sys, experiments.runner.methods\nassert not {'torch', 'gpytorch'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize("name", NAMES)
def test_units_do_not_matter(name, surface):
    X, y, _ = surface
    settings = {"budget": 1e4, "max_steps": 5, "n_starts": 1}
    new, bend = X[100:130], np.array([1e3, 1e-2])
    mean, std = make(name, settings, 1).fit(X[:100], y[:100]).predict(new)
    bent = make(name, settings, 1).fit(X[:100] * bend + 7, 40 * y[:100] - 3)
    other = bent.predict(new * bend + 7)
    np.testing.assert_allclose(other[0], 40 * mean - 3, rtol=1e-5)
    np.testing.assert_allclose(other[1], 40 * std, rtol=1e-5)
