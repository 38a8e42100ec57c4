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
X = rng.normal(size=(1500, 8))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=1500)
quick = {"max_iter": 2, "n_restarts": 0, "random_state": 0}
model = RWFRegressor(neighbors=16, **quick).fit(X, y)
assert model.model_.keeps_rows
new = rng.normal(size=(int(sys.argv[1]), 8))
mean, std = model.predict(new, return_std=True)
assert np.isfinite(mean).all() and (std > 0).all()
print(json.dumps(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
"""


def megabytes(rows: int) -> float:
    """Most memory of a process that predicts so many rows with 1500 features and neighbours."""
    run = [sys.executable, "-c", MEASURED, str(rows)]
    return json.loads(subprocess.run(run, capture_output=True, text=True, check=True).stdout)


def test_the_memory_of_predict_does_not_grow_with_rows_times_features():
    few, many = megabytes(1000), megabytes(61_000)
    # Features of 60 000 more rows would take 720 MB; the rows themselves, with results, take 10.
    assert many < few + 150
