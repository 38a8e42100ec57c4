"""A table.

Friedman's function of five columns, with five more that do not matter: a sine of a product, a
parabola and two lines. From 400 noisy rows the default finds which columns count (total Sobol
indices), how the prediction depends on each of them (partial dependence, with its posterior
deviation), and how far off it is.
"""

import numpy as np
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.metrics import LEVELS, calibration_curve, coverage, rmse
from rwf.diagnostics.plots import (
    calibration,
    importance_bars,
    predicted_and_actual,
    predictive_band,
)
from rwf.diagnostics.sensitivity import feature_importance, partial_dependence

rng = np.random.default_rng(5)
X = rng.uniform(size=(1200, 10))
f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + X[:, 3:5] @ [10, 5]
y = f + rng.normal(size=1200)
train, test = slice(400), slice(400, None)

model = RWFRegressor(max_iter=20, n_restarts=0, random_state=0).fit(X[train], y[train])
p = model.predict_distribution(X[test])
print(f"RMSE {rmse(y[test], p.mean):.2f}, where the noise has 1.00")
print(f"inside the 95 % interval: {coverage(y[test], p):.3f}")

figure = Figure(figsize=(8, 7), layout="constrained")
(importance, dependence), (observed, intervals) = figure.subplots(2, 2)
found = feature_importance(model, X[train], n_draws=1024)
importance_bars(importance, [f"x{j}" for j in range(10)], found.total, found.total_error)
curve = partial_dependence(model, X[train], column=2)
predictive_band(dependence, curve.values, curve.mean, curve.std)
dependence.set(xlabel="x2", ylabel="mean prediction")
predicted_and_actual(observed, y[test], p.mean)
inside = calibration_curve(y[test], p, levels=LEVELS)
calibration(intervals, np.array(LEVELS), inside, len(y[test]))
