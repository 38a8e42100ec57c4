"""What every reader would try first: scikit-learn's kernel approximations and ``BayesianRidge``.

The RBF kernel exp(−γ‖x − x′‖²) of standardised columns, approximated by random Fourier features
(``RBFSampler``) or by the Nyström method (``Nystroem``). γ is the one of five values around 1/d
with the highest evidence of the ridge, on at most 5000 rows; the fit then takes all rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias

import numpy as np
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import BayesianRidge

from rwf._types import Array

Kind: TypeAlias = Literal["rbfsampler", "nystroem"]

GAMMAS = (0.0625, 0.25, 1.0, 4.0, 16.0)
"""The values of γ that are compared, times 1/d: length-scales in steps of two."""

MAX_ROWS_FOR_GAMMA = 5000


@dataclass(eq=False)
class KernelMapRidge:
    """Bayesian ridge regression on an approximate RBF kernel, in standardised units.

    Args:
        kind: "rbfsampler" or "nystroem".
        random_state: seed of the features and of the rows that choose γ.
        n_components: columns, at most as many as rows for Nyström.
    """

    kind: Kind
    random_state: int
    n_components: int = 1000

    def fit(self, X: Array, y: Array) -> Self:
        rng = np.random.default_rng(self.random_state)
        rows = rng.permutation(len(y))[:MAX_ROWS_FOR_GAMMA]
        candidates = [c / X.shape[1] for c in GAMMAS]
        self._evidence = [self._fitted(X[rows], y[rows], gamma)[2] for gamma in candidates]
        self._chosen = int(np.argmax(self._evidence))
        self._gamma = candidates[self._chosen]
        self._map, self._ridge, _ = self._fitted(X, y, self._gamma)
        return self

    def _fitted(
        self, X: Array, y: Array, gamma: float
    ) -> tuple[RBFSampler | Nystroem, BayesianRidge, float]:
        columns = min(self.n_components, len(y))
        features = (
            RBFSampler(gamma=gamma, n_components=columns, random_state=self.random_state)
            if self.kind == "rbfsampler"
            else Nystroem(gamma=gamma, n_components=columns, random_state=self.random_state)
        )
        ridge = BayesianRidge(compute_score=True).fit(features.fit_transform(X), y)
        return features, ridge, float(ridge.scores_[-1])

    def predict(self, X: Array) -> tuple[Array, Array]:
        mean, std = self._ridge.predict(self._map.transform(X), return_std=True)
        return mean, std

    def predict_function(self, X: Array) -> tuple[Array, Array]:
        mean, std = self.predict(X)
        return mean, np.sqrt(np.maximum(std**2 - 1 / self._ridge.alpha_, 0))

    def facts(self) -> Mapping[str, object]:
        return {
            "noise_variance": float(1 / self._ridge.alpha_),
            "n_features": len(self._ridge.coef_),
            "gamma": self._gamma,
            "gamma_on_edge": self._chosen in (0, len(GAMMAS) - 1),
            "evidence_by_gamma": self._evidence,
        }
