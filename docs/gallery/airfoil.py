"""A table: noise of an airfoil.

Sound pressure of an airfoil in a wind tunnel, five input columns (Brooks, Pope and Marcolini, UCI
Machine Learning Repository, CC BY 4.0). The table is read from the folder in the environment
variable `RWF_DATA`. The Nyström prior, the default for such tables, is fitted to 600 of the 1503
rows. The other rows are for two checks: predictions against observations, and the coverage of
intervals at every level.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.metrics import LEVELS, calibration_curve, coverage, rmse
from rwf.diagnostics.plots import calibration, predicted_and_actual

table = pd.read_csv(Path(os.environ["RWF_DATA"]) / "airfoil.csv.gz").sample(frac=1, random_state=0)
train, test = table.iloc[:600], table.iloc[600:]
target = table.columns[-1]
model = RWFRegressor(max_iter=20, n_restarts=0, random_state=0).fit(train, target)
mean, std = model.predict(test, return_std=True)
y = test[target].to_numpy()
print(f"RMSE {rmse(y, mean):.2f} dB, inside the 95 % interval {coverage(y, mean, std):.3f}")

figure = Figure(figsize=(8, 3.6), layout="constrained")
left, right = figure.subplots(1, 2)
predicted_and_actual(left, y, mean)
calibration(right, np.array(LEVELS), calibration_curve(y, mean, std, LEVELS))
