"""A stream.

Features are learned from the first 500 rows. Every later part of 200 rows is added by
`partial_fit`, in time proportional to its rows, and not kept. The figure compares the error of f on
test rows after each part with the standard deviation that the model predicts.
"""

import numpy as np
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.metrics import rmse

rng = np.random.default_rng(5)


def part(n):
    X = rng.uniform(size=(n, 2))
    hill = np.exp(-100 * ((X - [0.5, 0.6]) ** 2).sum(axis=1))
    f = np.sin(9 * X[:, 0]) + 2 * hill
    return X, f + 0.3 * rng.standard_normal(n), f


X_test, _, f_test = part(1000)
X, y, _ = part(500)
model = RWFRegressor(300, prior="nystrom", max_iter=20, n_restarts=0, random_state=0).fit(X, y)

rows, errors, deviations = [], [], []
for _ in range(16):
    mean, std = model.predict_function(X_test)
    rows.append(model.model_.n_rows)
    errors.append(rmse(f_test, mean))
    deviations.append(np.sqrt(np.mean(std**2)))
    X, y, _ = part(200)
    model.partial_fit(X, y)

figure = Figure(figsize=(8, 3.2), layout="constrained")
ax = figure.subplots()
ax.plot(rows, errors, "o-", label="root mean square error of f")
ax.plot(rows, deviations, "--", label="root mean square of its predicted standard deviation")
ax.set_xlabel("rows seen")
ax.set_ylim(bottom=0.0)
ax.legend(frameon=False)
print(f"after {rows[0]:.0f} rows: {errors[0]:.3f}; after {rows[-1]:.0f} rows: {errors[-1]:.3f}")
