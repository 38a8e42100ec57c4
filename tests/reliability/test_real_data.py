"""Real tables: a default fit fails on no split, and near-noise-free data keep their digits."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from rwf import RWFRegressor


def load(directory, name):
    with gzip.open(directory / f"{name}.csv.gz", "rt") as lines:
        table = np.loadtxt(lines, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def split(X, y, index):
    order = np.random.RandomState(index).permutation(len(y))  # the agreed splits
    n = int(0.9 * len(y))
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]


def errors(directory, name, splits, most):
    """RMSE of default fits to at most so many rows of some splits."""
    X, y = load(directory, name)
    found = []
    for index in splits:
        X_train, y_train, X_test, y_test = split(X, y, index)
        model = RWFRegressor(random_state=index).fit(X_train[:most], y_train[:most])
        found.append(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)))
    return np.array(found)


@pytest.mark.parametrize("name", ["energy", "concrete", "airfoil"])
def test_no_split_fails(data_dir, name):
    rmse = errors(data_dir, name, range(3), most=500)
    assert rmse.max() < 2 * np.median(rmse)


def test_near_noise_free_data_keep_their_digits(data_dir):
    """naval: the noise is about 1e-6 of the variance; fewer atoms than the default, to be quick."""
    X, y = load(data_dir, "naval")
    X_train, y_train, X_test, y_test = split(X, y, 0)
    model = RWFRegressor(600, random_state=0, n_restarts=0).fit(X_train, y_train)
    mean, std = model.predict(X_test, return_std=True)
    assert np.sqrt(np.mean((mean - y_test) ** 2)) < 1e-4
    assert 0.85 < (np.abs(mean - y_test) < 1.96 * std).mean() < 1.0
