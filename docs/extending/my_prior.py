"""A prior: a cosine series whose coefficients decay at a learned rate, for one input column."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf.features.base import Fills, Stack
from rwf.models.dense import Hyperparameters
from rwf.priors import Prior
from rwf.priors.base import LearnedFeatures
from rwf.priors.random_features import maximize_evidence


@dataclass(frozen=True)
class CosineFeatures(Fills):
    """z_j(x) = j^(-s) cos(πj(x - low)/width) for j = 1, …, p; θ is log s."""

    n_lengths, local = 0, False
    bounds: ClassVar[np.ndarray] = np.log([[0.5, 4.0]])
    n_features: int
    low: float
    width: float
    log_decay: float = 0.0

    @property
    def theta(self):
        return np.array([self.log_decay])

    def with_theta(self, theta):
        return replace(self, log_decay=float(theta[0]))

    def __call__(self, X):
        j = np.arange(1, self.n_features + 1)
        decay = j ** -np.exp(self.log_decay)
        return decay * np.cos(np.pi * j * (X[:, :1] - self.low) / self.width)

    def pull_back(self, X, R):
        j = np.arange(1, self.n_features + 1)
        slopes = -np.exp(self.log_decay) * np.log(j) * self(X)  # ∂Z/∂θ
        return np.array([np.sum(R * slopes)])


class CosineSeries(Prior):
    """Independent weights on a cosine series; decay, amplitude and noise maximise the evidence."""

    name, most_inputs = "cosines", 1

    def n_components(self, n):
        return min(n, 100)

    def learn(self, task):
        low, high = float(task.known.X.min()), float(task.known.X.max())
        stack = Stack((CosineFeatures(task.n_components, low, high - low), *task.draw_trend()))
        noise = np.full(task.known.n_outputs, np.log(0.1))
        start = Hyperparameters(stack, np.zeros(len(stack.maps)), noise)
        found, trial = maximize_evidence(start, task.scored, task.config.max_iter)
        n_learned, trials = len(stack.maps) + len(noise) + 1, (replace(trial, chosen=True),)
        return LearnedFeatures(trials=trials, n_learned=n_learned, hyperparameters=found)
