"""Predictions in blocks: memory is bounded, whatever the number of rows."""

from __future__ import annotations

import json
import subprocess
import sys

MEASURED = """
import json, resource, sys, warnings
import numpy as np
from rwf import RWFRegressor

warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(800, 8))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=800)
quick = {"max_iter": 2, "n_restarts": 0, "random_state": 0}
model = RWFRegressor(neighbors=16, **quick).fit(X, y)
assert model.model_.keeps_rows and model.n_features_out_ > 800
most = []
for rows in map(int, sys.argv[1:]):
    mean, std = model.predict(rng.normal(size=(rows, 8)), return_std=True)
    assert np.isfinite(mean).all() and (std > 0).all()
    most.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
print(json.dumps(most))
"""


def megabytes(*rows: int) -> list[float]:
    """Most memory of a process until it has predicted so many rows with atoms and neighbours."""
    run = [sys.executable, "-c", MEASURED, *map(str, rows)]
    return json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def test_the_memory_of_predict_does_not_grow_with_rows_times_features():
    few, many = megabytes(1000, 61_000)
    # Features of 60 000 more rows would take 384 MB; the rows themselves, with results, take 10.
    assert many < few + 150
