"""Heteroscedastic noise, and a gap.

The noise grows from left to right, and there are no rows between 4 and 5.5. The noise variance is
learned from leave-one-out errors; in the gap the variance of f reverts to that of the prior.
`predict` returns the standard deviation of a new observation, `predict_function` that of f.
"""

import numpy as np
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.plots import BLACK, BLUE, GREEN, predictive_band

rng = np.random.default_rng(3)
x = np.sort(rng.uniform(0.0, 10.0, 500))
x = x[(x < 4.0) | (x > 5.5)]
noise = 0.03 * np.exp(0.25 * x)
y = np.sin(x * x / 4) + noise * rng.standard_normal(len(x))

model = RWFRegressor(prior="multiscale", noise="heteroscedastic", random_state=0).fit(x[:, None], y)
grid = np.linspace(0.0, 10.0, 1000)
mean, std = model.predict(grid[:, None], return_std=True)
_, std_of_f = model.predict_function(grid[:, None])

figure = Figure(figsize=(8, 5), layout="constrained")
above, below = figure.subplots(2, 1, sharex=True)
predictive_band(above, grid, mean, std, data=(x, y), truth=np.sin(grid * grid / 4))
above.legend(frameon=False, ncols=4, loc="upper left")
below.plot(grid, std, color=BLUE, label="sd of an observation")
below.plot(grid, std_of_f, "--", color=GREEN, label="sd of f")
below.plot(x, noise, ".", color=BLACK, markersize=2, label="true noise, at the rows")
below.set_ylim(bottom=0.0)
below.legend(frameon=False, loc="upper left")
