"""The examples of docs/extending.md: each is one short file and one line in a registry."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import rwf
from rwf import RWFRegressor
from rwf.data.readers.formats import FORMATS
from rwf.diagnostics.metrics import coverage, rmse
from rwf.priors import PRIORS
from rwf.uncertainty.noise import NOISE_MODELS

DOCS = Path(__file__).parents[2] / "docs"
FILES = sorted((DOCS / "extending").glob("*.py"))


def load(name):
    return runpy.run_path(str(DOCS / "extending" / f"{name}.py"), run_name=name)


def rows(n=300):
    rng = np.random.default_rng(1)
    X = rng.uniform(3.0, 7.0, (n, 1))
    return X, 2.0 + np.cos(3 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_there_is_a_prior_a_noise_model_and_a_format():
    assert [file.stem for file in FILES] == ["my_format", "my_noise", "my_prior"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_is_short_and_the_page_shows_all_of_it(file):
    source = file.read_text(encoding="utf-8")
    assert source.count("\n") <= 60
    assert f"```python\n{source}```" in (DOCS / "extending.md").read_text(encoding="utf-8")


def test_the_prior_fits_streams_and_merges(monkeypatch):
    monkeypatch.setitem(PRIORS, "cosines", load("my_prior")["CosineSeries"])
    X, y = rows()
    model = RWFRegressor(prior="cosines", random_state=0).fit(X[:200], y[:200])
    mean, std = model.predict(X[200:], return_std=True)
    assert rmse(y[200:], mean) < 0.15
    assert 0.88 < coverage(y[200:], mean, std) <= 1.0
    halves = [model.empty_copy().partial_fit(X[i:200:2], y[i:200:2]) for i in (0, 1)]
    assert np.allclose(halves[0].merge(halves[1]).predict(X), model.predict(X))


def test_the_slopes_of_the_prior_are_those_of_its_values():
    features = load("my_prior")["CosineFeatures"](7, 3.0, 4.0, log_decay=0.3)
    rng, (X, _) = np.random.default_rng(2), rows(20)
    R, step = rng.normal(1.0, 2.0, (20, 7)), 1e-6
    above, below = (features.with_theta(features.theta + h)(X) for h in (step, -step))
    expected = np.sum(R * (above - below)) / (2 * step)
    assert np.isclose(features.pull_back(X, R)[0], expected, rtol=1e-6)


def test_the_prior_says_for_how_many_columns_it_is(monkeypatch):
    monkeypatch.setitem(PRIORS, "cosines", load("my_prior")["CosineSeries"])
    with pytest.raises(ValueError, match=r"up to 1 input column.*use prior='nystrom'"):
        RWFRegressor(prior="cosines").fit(np.zeros((9, 2)), np.arange(9.0))


@pytest.mark.parametrize("prior", ["random_features", "multiscale"])
def test_the_noise_model_finds_noise_that_grows(monkeypatch, tmp_path, prior):
    monkeypatch.setitem(NOISE_MODELS, "log_linear", load("my_noise")["LogLinearNoise"]())
    rng = np.random.default_rng(3)
    X = rng.uniform(3.0, 7.0, (600, 1))
    noise = 0.05 * np.exp(0.6 * (X[:, 0] - 3.0))  # from 0.05 to 0.55
    y = 2.0 + np.cos(3 * X[:, 0]) + noise * rng.normal(size=600)
    model = RWFRegressor(100, prior=prior, noise="log_linear", random_state=0, n_restarts=0)
    model.fit(X, y)
    ends = np.array([[3.2], [6.8]])
    _, std = model.predict(ends, return_std=True)
    assert np.allclose(std, 0.05 * np.exp(0.6 * (ends[:, 0] - 3.0)), rtol=0.35)
    model.save(tmp_path / "model.rwf")  # a variance function of known features can be saved
    assert np.array_equal(rwf.load(tmp_path / "model.rwf").predict(ends, return_std=True)[1], std)


def test_the_format_gives_the_model_of_the_same_rows_in_an_array(monkeypatch, tmp_path):
    monkeypatch.setitem(FORMATS, ".jsonl", load("my_format")["open_jsonl"])
    X, y = rows(200)
    lines = [json.dumps({"x": a, "y": b}) for a, b in zip(X[:, 0], y, strict=True)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines), encoding="utf-8")
    quick = RWFRegressor(60, prior="random_features", max_iter=10, n_restarts=0, random_state=0)
    expected = quick.fit(X, y).predict(X, return_std=True)
    path = str(tmp_path / "rows.jsonl")
    assert np.array_equal(quick.fit(path, "y").predict(path, return_std=True), expected)
