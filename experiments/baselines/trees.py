"""Boosted and bagged trees at their best: 2000 rounds, early stopping, and error bars of their own.

A tenth of the training rows is held out: it stops the boosting, and scales the standard deviations
so that its mean squared score is one. They are the same for all rows where the trees give no more
than a mean.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from rwf._types import Array
from rwf.linalg.threads import cores

ROUNDS, PATIENCE = 2000, 100
"""Trees at most, and how many may pass without an improvement on the held-out rows."""

RATE = 0.05
"""The learning rate of XGBoost; CatBoost finds its own from the number of rows and rounds."""

TREES = 500
"""Trees of a forest."""

ONE_DEVIATION = (0.15865525393145707, 0.8413447460685429)
"""Levels of the quantiles one standard deviation below and above the mean of a normal."""

LEAST_SHARE = 0.3
"""Least half distance of two quantiles, which may cross, as a share of the median one."""


@dataclass(eq=False)
class HeldOutTenth(ABC):
    """Trees that are stopped on a tenth of the training rows.

    Args:
        random_state: seed of the held-out rows and of the trees.
        rounds: trees at most.
    """

    random_state: int
    rounds: int = ROUNDS

    def fit(self, X: Array, y: Array) -> Self:
        order = np.random.default_rng(self.random_state).permutation(len(y))
        held, kept = np.split(order, [max(1, len(y) // 10)])
        self._grow(X[kept], y[kept], X[held], y[held])
        scores = (y[held] - self._mean(X[held])) / self._spread(X[held])
        self._factor = float(np.sqrt(np.mean(scores**2)))
        return self

    @abstractmethod
    def _grow(self, X: Array, y: Array, X_held: Array, y_held: Array) -> None:
        """Fit the trees, stopped on the held-out rows."""

    @abstractmethod
    def _mean(self, X: Array) -> Array:
        """Predicted means."""

    def _spread(self, X: Array) -> Array:
        """Standard deviations, but for a factor."""
        return np.ones(len(X))

    def predict(self, X: Array) -> tuple[Array, Array]:
        return self._mean(X), self._factor * self._spread(X)

    def facts(self) -> Mapping[str, object]:
        return {"factor": self._factor, "rounds": self._n_rounds()}

    def _n_rounds(self) -> int:
        return self.rounds


@dataclass(eq=False)
class CatBoost(HeldOutTenth):
    """CatBoost; with ``uncertainty`` it fits mean and variance of a normal, else the mean alone."""

    uncertainty: bool = False

    def _grow(self, X: Array, y: Array, X_held: Array, y_held: Array) -> None:
        from catboost import CatBoostRegressor

        self._trees = CatBoostRegressor(
            iterations=self.rounds,
            loss_function="RMSEWithUncertainty" if self.uncertainty else "RMSE",
            early_stopping_rounds=PATIENCE,
            random_seed=self.random_state,
            thread_count=_threads(),
            allow_writing_files=False,
            verbose=False,
        )
        self._trees.fit(X, y, eval_set=(X_held, y_held))

    def _mean(self, X: Array) -> Array:
        found: Array = np.asarray(self._trees.predict(X))
        return found[:, 0] if self.uncertainty else found

    def _spread(self, X: Array) -> Array:
        if not self.uncertainty:
            return super()._spread(X)
        found: Array = np.asarray(self._trees.predict(X))
        return np.sqrt(found[:, 1])

    def _n_rounds(self) -> int:
        return int(self._trees.tree_count_)


@dataclass(eq=False)
class XGBoost(HeldOutTenth):
    """XGBoost, its mean alone."""

    def _grow(self, X: Array, y: Array, X_held: Array, y_held: Array) -> None:
        from xgboost import XGBRegressor

        self._trees = XGBRegressor(
            n_estimators=self.rounds,
            early_stopping_rounds=PATIENCE,
            learning_rate=RATE,
            random_state=self.random_state,
            n_jobs=_threads(),
        )
        self._trees.fit(X, y, eval_set=[(X_held, y_held)], verbose=False)

    def _mean(self, X: Array) -> Array:
        return np.asarray(self._trees.predict(X), dtype=np.float64)

    def _n_rounds(self) -> int:
        return int(self._trees.best_iteration) + 1


def _half_distance(quantiles: Array) -> Array:
    """Half the distance of two quantiles of every row."""
    half: Array = (quantiles[:, 1] - quantiles[:, 0]) / 2
    return np.maximum(half, LEAST_SHARE * float(np.median(np.abs(half))))


@dataclass(eq=False)
class QuantileForest(HeldOutTenth):
    """A quantile regression forest; its deviation is half the distance of two quantiles."""

    rounds: int = TREES

    def _grow(self, X: Array, y: Array, X_held: Array, y_held: Array) -> None:
        from quantile_forest import RandomForestQuantileRegressor

        # Nothing is stopped: the held-out rows only scale the deviations.
        self._trees = RandomForestQuantileRegressor(
            self.rounds, min_samples_leaf=2, random_state=self.random_state, n_jobs=_threads()
        )
        self._trees.fit(X, y)

    def _mean(self, X: Array) -> Array:
        return np.asarray(self._trees.predict(X, quantiles="mean"))

    def _spread(self, X: Array) -> Array:
        return _half_distance(np.asarray(self._trees.predict(X, quantiles=list(ONE_DEVIATION))))


def _threads() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", cores()))
