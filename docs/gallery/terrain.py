"""Terrain, with a hole.

Hills along the Jacksboro fault in Tennessee: elevations of the United States Geological Survey, in
the public domain, shipped with matplotlib. A tenth of the pixels is for training, none of them in a
rectangle. Between training pixels the map is interpolated. Inside the rectangle the mean reverts to
the trend, and the standard deviation grows.
"""

import numpy as np
from matplotlib.cbook import get_sample_data
from matplotlib.figure import Figure

from rwf import RWFRegressor
from rwf.diagnostics.metrics import coverage

heights = get_sample_data("jacksboro_fault_dem.npz")["elevation"][150:230, 100:210].astype(float)
rows, columns = np.indices(heights.shape)
X = np.column_stack([columns.ravel(), rows.ravel()]).astype(float)
y = heights.ravel()

rng = np.random.default_rng(4)
hole = (np.abs(X[:, 0] - 60) < 12) & (np.abs(X[:, 1] - 40) < 10)
known = (rng.uniform(size=len(y)) < 0.1) & ~hole
model = RWFRegressor(prior="nystrom", max_iter=20, n_restarts=0, random_state=0)
mean, std = model.fit(X[known], y[known]).predict(X, return_std=True)

figure = Figure(figsize=(8, 5.4), layout="constrained")
panels = {
    "elevation, m": y,
    "training pixels": np.where(known, y, np.nan),
    "mean, m": mean,
    "standard deviation, m": std,
}
for ax, (title, values) in zip(figure.subplots(2, 2).flat, panels.items(), strict=True):
    limits = {} if values is std else {"vmin": y.min(), "vmax": y.max()}
    colours = "cividis" if values is std else "viridis"
    image = ax.imshow(values.reshape(heights.shape), cmap=colours, **limits)
    ax.set_title(title)
    ax.set_axis_off()
    figure.colorbar(image, ax=ax, shrink=0.8)

for name, part in {"between training pixels": ~known & ~hole, "in the rectangle": hole}.items():
    size, spread = np.abs(mean - y)[part].mean(), std[part].mean()
    inside = coverage(y[part], mean[part], std[part])
    print(f"{name}: mean |error| {size:.0f} m, mean sd {spread:.0f} m, inside 95 %: {inside:.2f}")
