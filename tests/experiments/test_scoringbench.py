"""The entry for ScoringBench: histograms of a dataframe whose scores are those of the model."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid

from experiments.data.tasks import problem
from experiments.scoringbench import LEVELS, ScoringBenchRWF, main

FOLDS = """
import json

def run_benchmark(tables, models, folder, n_folds=5):
    (name, model), = models.items()
    folder.write_text(json.dumps([tables, name, type(model()).__name__, n_folds]))
"""
TABLES = """
def get_DATASETS_CONFIG():
    return [{"name": "stock"}, {"name": "gone"}]

def validate_datasets(tables):
    return tables[:1]
"""


@pytest.fixture(scope="module")
def predicted(data_dir):
    pd = pytest.importorskip("pandas", reason="the harness passes dataframes")
    table, split = problem("energy", 0)
    X = pd.DataFrame(table.X, columns=[f"x{i}" for i in range(table.X.shape[1])])
    y = pd.Series(table.y)
    train, test = split.train[:250], split.test
    entry = ScoringBenchRWF(max_iter=4).fit(X.iloc[train], y.iloc[train])
    return entry, X.iloc[test], table.y[test]


def test_histograms_have_the_shapes_and_masses_of_the_harness(predicted):
    entry, X, y = predicted
    found = entry.predict_distribution(X)
    bins = found.probas.shape[1]
    assert found.bin_edges.shape == (len(y), bins + 1)
    assert_allclose(found.probas.sum(axis=1), 1.0, rtol=1e-12)
    assert (np.diff(found.bin_edges, axis=1) > 0).all()
    assert_allclose(found.bin_midpoints, (found.bin_edges[:, 1:] + found.bin_edges[:, :-1]) / 2)
    assert_array_equal(found.mean, entry.predict(X))


def test_scores_of_histograms_are_those_of_the_distributions(predicted):
    entry, X, y = predicted
    found, exact = entry.predict_distribution(X), entry._model.predict_distribution(X)
    edges, width = found.bin_edges, np.diff(found.bin_edges, axis=1)

    # CRPS as an integral of squared differences of distribution functions, bin by bin.
    cdf = np.hstack([np.zeros((len(y), 1)), np.cumsum(found.probas, axis=1)])
    grid = np.linspace(0.0, 1.0, 41)
    at = edges[:, :-1, None] + width[..., None] * grid
    F = cdf[:, :-1, None] + np.diff(cdf, axis=1)[..., None] * grid
    crps = (trapezoid((F - (at >= y[:, None, None])) ** 2, grid, axis=2) * width).sum(axis=1)
    assert_allclose(crps, exact.crps(y), rtol=0.02, atol=0.005 * exact.std.max())

    # Within a bin the density is its mean, which lies between those at the edges, or the mode.
    place = np.clip((y[:, None] >= edges).sum(axis=1) - 1, 0, width.shape[1] - 1)
    rows = np.arange(len(y))
    density = found.probas[rows, place] / width[rows, place]
    low, high = edges[rows, place], edges[rows, place + 1]
    at_edges = exact.pdf(low), exact.pdf(high)
    mode = exact.pdf(np.clip(exact.mean, low, high))
    slack = 3 * (1 - np.ptp(LEVELS))  # the mass beyond the outermost edges, spread over all bins
    assert (density >= np.minimum(*at_edges) * (1 - slack)).all()
    assert (density <= np.maximum(np.maximum(*at_edges), mode) * (1 + slack)).all()
    assert np.median(np.abs(np.log(density) - exact.logpdf(y))) < 0.02


def test_the_command_hands_the_entry_to_the_harness(tmp_path, monkeypatch):
    package = tmp_path / "checkout" / "scoringbench"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "runner.py").write_text(FOLDS)
    (package / "datasets.py").write_text(TABLES)
    monkeypatch.setattr(sys, "path", [*sys.path])
    out = tmp_path / "out"
    main([str(tmp_path / "checkout"), "--out", str(out), "--lite"])
    for name in ("scoringbench", "scoringbench.runner", "scoringbench.datasets"):
        monkeypatch.delitem(sys.modules, name)
    assert out.read_text() == '[[{"name": "stock"}], "rwf", "ScoringBenchRWF", 2]'


def test_a_folder_without_the_harness_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "is no checkout of ScoringBench" in capsys.readouterr().err
