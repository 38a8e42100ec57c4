"""A chirp, and its scalogram.

The frequency of the Doppler function falls from left to right. The multiscale prior, with variances
learned over scale and place, follows it: fine atoms at the left, coarse ones at the right. The
scalogram shows which scales f has, and where; colours are amplitudes in the units of y.
"""

import numpy as np
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.datasets import DONOHO_JOHNSTONE, donoho_johnstone
from rwf.diagnostics.plots import predictive_band, scalogram

sample = donoho_johnstone("doppler", np.random.default_rng(2), n=500, regular=False)
model = RWFRegressor(prior="multiscale", random_state=0).fit(sample.X, sample.y)

x = np.linspace(0.002, 0.998, 1000)
mean, std = model.predict(x[:, None], return_std=True)
doppler = DONOHO_JOHNSTONE["doppler"]
truth = doppler(x) * sample.f.std() / doppler(sample.X[:, 0]).std()

figure = Figure(figsize=(8, 5), layout="constrained")
above, below = figure.subplots(2, 1, sharex=True)
predictive_band(above, x, mean, std, data=(sample.X[:, 0], sample.y), truth=truth)
above.legend(frameon=False, ncols=4, loc="upper right")
scalogram(model, x, ax=below)
