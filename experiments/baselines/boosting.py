"""Gradient boosting as scikit-learn ships it, with one error bar for all rows.

The mean is that of ``HistGradientBoostingRegressor`` with its defaults. It gives no variance: the
standard deviation is that of the residuals of a 5-fold cross-validation on the training rows, the
same everywhere, so its intervals are calibrated on average, but not locally.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import KFold, cross_val_predict

from rwf._types import Array


class Boosting:
    """The boosted mean with the constant deviation of cross-validated residuals.

    Args:
        random_state: seed of the folds and of the booster.
        settings: parameters of the booster that differ from its defaults.
    """

    def __init__(self, random_state: int, **settings: object) -> None:
        self.random_state = random_state
        self.settings = settings

    def fit(self, X: Array, y: Array) -> Self:
        booster = HistGradientBoostingRegressor(random_state=self.random_state, **self.settings)
        folds = KFold(5, shuffle=True, random_state=self.random_state)
        residuals = y - cross_val_predict(booster, X, y, cv=folds)
        self._std = float(np.sqrt(np.mean(residuals**2)))
        self._booster = booster.fit(X, y)
        return self

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._booster.predict(X), np.full(len(X), self._std)

    def facts(self) -> Mapping[str, object]:
        return {"noise_variance": self._std**2, "std": "5-fold residuals, the same for all rows"}
