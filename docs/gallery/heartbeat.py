"""Heartbeats.

Three seconds of an electrocardiogram: a slow baseline and sharp beats. It is record 208 of the
MIT-BIH Arrhythmia Database (Moody and Mark 2001, PhysioNet, ODC-By 1.0), read from the folder in
the environment variable `RWF_DATA`. A random half of the values is for training; the other half is
predicted.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.metrics import coverage, rmse
from rwf.diagnostics.plots import VERMILION, predictive_band

record = pd.read_csv(Path(os.environ["RWF_DATA"]) / "ecg_mitbih208.csv.gz").iloc[3600:4680]
time, voltage = record.to_numpy().T
known = np.random.default_rng(6).uniform(size=len(time)) < 0.5

model = RWFRegressor(prior="nystrom", max_iter=20, n_restarts=0, random_state=0)
model.fit(time[known, None], voltage[known])
mean, std = model.predict(time[~known, None], return_std=True)
print(f"of {known.sum()} rows, predicting {(~known).sum()}:")
print(f"RMSE {rmse(voltage[~known], mean):.3f} mV, of a signal with sd {voltage.std():.3f} mV")
print(f"inside the 95 % interval: {coverage(voltage[~known], mean, std):.2f}")

x = np.linspace(time[0], time[-1], 1500)
figure = Figure(figsize=(8, 3.4), layout="constrained")
ax = figure.subplots()
predictive_band(ax, x, *model.predict(x[:, None], return_std=True))
ax.plot(time[~known], voltage[~known], ".", color=VERMILION, markersize=3, label="held out")
ax.set_xlabel("seconds")
ax.set_ylabel("mV")
ax.set_ylim(top=1.3)
ax.legend(frameon=False, ncols=3, loc="upper left")
