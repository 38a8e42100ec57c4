"""Carbon dioxide.

Weekly means of carbon dioxide at Mauna Loa, 1958 to 2001 (Keeling and Whorf; public domain). The
model is told of no season. Two thirds of the weeks and two gaps of half a year are held out. Weeks
in between are interpolated; in the gaps the band widens.
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.metrics import coverage, rmse
from rwf.diagnostics.plots import VERMILION, predictive_band

file = Path(__file__).with_name("co2.csv.gz")
year, co2 = np.loadtxt(file, delimiter=",", skiprows=1, unpack=True)
gap = ((year > 1985.3) & (year < 1985.8)) | ((year > 1988.6) & (year < 1989.1))
known = (np.random.default_rng(6).uniform(size=len(year)) < 1 / 3) & ~gap

model = RWFRegressor(prior="multiscale", random_state=0).fit(year[known, None], co2[known])
for name, part in {"weeks between": ~known & ~gap, "weeks in gaps": gap}.items():
    mean, std = model.predict(year[part, None], return_std=True)
    error, inside = rmse(co2[part], mean), coverage(co2[part], mean, std)
    print(f"{part.sum()} {name}: RMSE {error:.2f} ppm, inside the 95 % interval {inside:.2f}")

figure = Figure(figsize=(8, 5), layout="constrained")
for ax, (low, high) in zip(figure.subplots(2, 1), [(1958.2, 2002), (1984, 1990)], strict=True):
    x = np.linspace(low, high, 1500)
    mean, std = model.predict(x[:, None], return_std=True)
    seen = known & (year > low) & (year < high)
    predictive_band(ax, x, mean, std, data=(year[seen], co2[seen]))
    hidden = gap & (year > low) & (year < high)
    ax.plot(year[hidden], co2[hidden], ".", color=VERMILION, markersize=3, label="held out, gaps")
    ax.set(xlim=(low, high), ylabel="CO₂, ppm")
ax.set_xlabel("year")
ax.legend(frameon=False, ncols=2, loc="upper left")
