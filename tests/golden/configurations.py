"""Small fits whose numbers are stored: every prior, solver, correction and way in of rows."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import rwf
from rwf import RandomFeatures, RFFRegressor, RWFRegressor, TableRegressor

Data = tuple[np.ndarray, np.ndarray]
QUICK = {"max_iter": 15, "n_restarts": 1, "random_state": 0}
SEED = 20261118


def steps(n: int = 240) -> Data:
    """Three plateaus on one column."""
    rng = np.random.default_rng(SEED)
    x = rng.uniform(2.0, 5.0, n)
    y = np.select([x < 3.0, x < 4.2], [1.0, 4.0], 2.5) + 0.2 * rng.normal(size=n)
    return x[:, None], y


def waves(n: int = 300) -> Data:
    """A smooth signal whose noise grows along the column."""
    rng = np.random.default_rng(SEED + 1)
    x = rng.uniform(2.0, 5.0, n)
    return x[:, None], 5.0 + np.sin(6 * x) + 0.1 * (x - 1.5) * rng.normal(size=n)


def field(n: int = 600) -> Data:
    """Two columns of different units."""
    rng = np.random.default_rng(SEED + 2)
    X = rng.uniform([2.0, 30.0], [5.0, 90.0], (n, 2))
    return X, 3.0 + np.sin(3 * X[:, 0]) * np.cos(X[:, 1] / 9) + 0.1 * rng.normal(size=n)


def table(n: int = 400) -> Data:
    """Five columns, of which one is skewed."""
    rng = np.random.default_rng(SEED + 3)
    X = rng.normal(3.0, 2.0, (n, 5))
    X[:, 1] = np.exp(X[:, 1])
    return X, 2.0 + np.sin(X[:, 0]) + 0.3 * np.log(X[:, 1]) * X[:, 2] + 0.1 * rng.normal(size=n)


def answers(model: RWFRegressor | RFFRegressor, X: np.ndarray) -> dict[str, list[float]]:
    """Means, standard deviations and evidence at the rows of a fit and a little beyond them."""
    low, high = X.min(axis=0), X.max(axis=0)
    queries = np.random.default_rng(SEED + 4).uniform(
        low, high + 0.05 * (high - low), (12, len(low))
    )
    mean, std = model.predict(queries, return_std=True)
    found = {"mean": np.ravel(mean).tolist(), "std": np.ravel(std).tolist()}
    found["nll"] = [model.fit_report_.nll]
    try:
        found["evidence"] = [model.log_marginal_likelihood()]
    except AttributeError:  # sampled weights have no evidence in closed form
        found["evidence"] = []
    return found


def fitted(data: Data, **parameters: object) -> dict[str, list[float]]:
    return answers(RWFRegressor(**{**QUICK, **parameters}).fit(*data), data[0])


def streamed() -> dict[str, list[float]]:
    X, y = table(1200)

    def blocks():
        return ((X[i : i + 100], y[i : i + 100]) for i in range(0, len(X), 100))

    model = RWFRegressor(60, prior="random_features", **QUICK).fit(blocks)
    return answers(model.partial_fit(*table(300)), X)


def merged() -> dict[str, list[float]]:
    X, y = field()
    model = RWFRegressor(80, prior="multiscale", solver="dense", **QUICK).fit(X, y)
    parts = [model.empty_copy().partial_fit(X[i::3], y[i::3]) for i in range(3)]
    return answers(parts[0].merge(parts[1]).merge(parts[2]), X)


def saved() -> dict[str, list[float]]:
    X, y = table()
    model = RWFRegressor(neighbors=16, **QUICK).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.rwf", include_rows=True)
        return answers(rwf.load(Path(folder) / "model.rwf"), X)


def several_outputs() -> dict[str, list[float]]:
    X, y = field()
    Y = np.column_stack([y, y**2 + X[:, 0]])
    return answers(RWFRegressor(prior="multiscale", solver="multifrontal", **QUICK).fit(X, Y), X)


def categories() -> dict[str, list[float]]:
    X, y = table()
    frame = pd.DataFrame(X, columns=list("abcde")).assign(
        kind=np.array(["red", "green", "blue"])[np.arange(len(X)) % 3], y=y
    )
    frame["y"] += frame["kind"].map({"red": 1.0, "green": -1.0, "blue": 0.0})
    model = TableRegressor(**QUICK).fit(frame, target="y")
    mean, std = model.predict(frame.iloc[::40], return_std=True)
    evidence = model.log_marginal_likelihood()
    return {"mean": mean.tolist(), "std": std.tolist(), "evidence": [evidence]}


def fourier() -> dict[str, list[float]]:
    X, y = table()
    return answers(RFFRegressor(80, kernel="matern32", **QUICK).fit(X, y), X)


def paper() -> dict[str, list[float]]:
    X, y = field()
    model = RWFRegressor.from_paper(80, **QUICK).fit(X, y)
    return answers(model, X)


CONFIGURATIONS: dict[str, Callable[[], dict[str, list[float]]]] = {
    "auto on one column": lambda: fitted(steps()),
    "auto on two columns": lambda: fitted(field(300)),
    "auto on five columns": lambda: fitted(table()),
    "random features": lambda: fitted(table(), prior="random_features", n_components=80),
    "random features of a Morlet wavelet": lambda: fitted(
        field(), prior=RandomFeatures(wavelet="morlet", scales=(0.7, 3.0)), n_components=80
    ),
    "Nyström without neighbours": lambda: fitted(table(), prior="nystrom", neighbors=None),
    "Nyström with fewer atoms than rows": lambda: fitted(
        table(), prior="nystrom", n_components=60, neighbors=None
    ),
    "Nyström with neighbours": lambda: fitted(table(), prior="nystrom", neighbors=16),
    "multiscale, dense": lambda: fitted(waves(), prior="multiscale", solver="dense"),
    "multiscale, multifrontal, one column": lambda: fitted(
        waves(), prior="multiscale", solver="multifrontal"
    ),
    "multiscale, multifrontal, two columns": lambda: fitted(
        field(), prior="multiscale", solver="multifrontal"
    ),
    "multifrontal with neighbours": lambda: fitted(
        field(1200), prior="multiscale", solver="multifrontal", neighbors=16
    ),
    "adaptive": lambda: fitted(steps(), prior="adaptive"),
    "spike and slab": lambda: fitted(steps(), prior="spike_slab"),
    "heteroscedastic noise": lambda: fitted(waves(), prior="nystrom", noise="heteroscedastic"),
    "several outputs": several_outputs,
    "stream": streamed,
    "merge": merged,
    "save and load": saved,
    "table with categories": categories,
    "Fourier features": fourier,
    "the paper's recipe": paper,
}
