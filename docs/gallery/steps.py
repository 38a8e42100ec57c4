"""Steps.

Plateaus with jumps, from 200 noisy rows. Fourier features are equally smooth everywhere, so that
they ring on the plateaus. The spike-and-slab prior places steps at the jumps. The band is two
standard deviations of a new observation.
"""

import numpy as np
from matplotlib.figure import Figure

from rwf import RFFRegressor, RWFRegressor
from rwf.datasets import multi_step, step_function
from rwf.diagnostics.metrics import rmse
from rwf.diagnostics.plots import predictive_band

sample = multi_step(200, np.random.default_rng(1), noise=0.1)
x = np.linspace(0.0, 1.0, 1000)
truth = step_function(x)

models = {
    "Fourier features": RFFRegressor(random_state=0),
    "wavelets, spike and slab": RWFRegressor(prior="spike_slab", random_state=0),
}
figure = Figure(figsize=(8, 3), layout="constrained")
for ax, (name, model) in zip(figure.subplots(1, 2, sharey=True), models.items(), strict=True):
    mean, std = model.fit(sample.X, sample.y).predict(x[:, None], return_std=True)
    predictive_band(ax, x, mean, std, data=(sample.X[:, 0], sample.y), truth=truth)
    ax.set_title(name)
    ax.legend(frameon=False, fontsize="small", loc="lower right")
    print(f"{name}: RMSE against the true function {rmse(truth, mean):.3f}")
