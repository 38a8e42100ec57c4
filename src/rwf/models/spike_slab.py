"""A model with a spike-and-slab prior: windows with their draws, and moments that add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.features.base import FeatureMap
from rwf.inference.posterior import Marginals
from rwf.inference.spike_slab import WindowedFit, WindowedMixture, WindowMoments
from rwf.inference.spike_slab.extrapolation import GapReversion
from rwf.models.base import Model, ModelSummary, Prediction, incompatible, require_seen


@dataclass(frozen=True)
class SpikeSlabHyperparameters:
    """What was sampled: atoms and states of every output."""

    fits: tuple[WindowedFit, ...]  # of each output
    # where rows are missing, if the variance reverts to that of the prior there
    gaps: GapReversion | None

    def same_as(self, other: SpikeSlabHyperparameters) -> bool:
        """Whether both have the same atoms and states, be it in a copy from another process."""
        mine, theirs = ([w for fit in s.fits for w in fit.windows] for s in (self, other))
        return (
            [len(fit.windows) for fit in self.fits] == [len(fit.windows) for fit in other.fits]
            and [(w.low, w.high) for w in mine] == [(w.low, w.high) for w in theirs]
            and all(a.fit.same_as(b.fit) for a, b in zip(mine, theirs, strict=True))
        )

    def collect(self, rows: Block) -> tuple[WindowMoments, ...]:
        """Moments of rows in standardised units, of each output. They add."""
        return tuple(fit.collect(part) for fit, part in zip(self.fits, _outputs(rows), strict=True))


@dataclass(frozen=True)
class SpikeSlabModel(Model):
    """Atoms and states that were sampled, and the moments of all rows over them."""

    units: Standardizer  # of inputs and targets
    hyperparameters: SpikeSlabHyperparameters  # atoms and states
    moments: tuple[WindowMoments, ...]  # of each output, in standardised units
    total_weight: float  # of all rows seen

    @classmethod
    def of(
        cls, units: Standardizer, hyperparameters: SpikeSlabHyperparameters, rows: Block
    ) -> SpikeSlabModel:
        """The model of rows in standardised units."""
        moments = hyperparameters.collect(rows)
        return cls(units, hyperparameters, moments, float(rows.weights.sum()))

    @property
    def needs_all_rows(self) -> bool:
        return True

    @property
    def n_rows(self) -> float:
        return self.total_weight

    @property
    def n_outputs(self) -> int:
        return len(self.hyperparameters.fits)

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        windows = [w for fit in self.hyperparameters.fits for w in fit.windows]
        return tuple(part for w in windows for part in w.fit.features.maps)

    @property
    def summary(self) -> ModelSummary:
        unit = self.units.y.scale**2
        mixtures = [m for posterior in self._posteriors for m in posterior.mixtures]
        return ModelSummary(
            n_rows=self.n_rows,
            n_outputs=self.n_outputs,
            n_features=sum(part.n_features for part in self.maps),
            solver="Gibbs sampler in windows",
            statistics="windows",
            noise_variances=np.array([p.noise_variance for p in self._posteriors]) * unit,
            prior_variances=self._prior_variances * unit,
            log_evidence=None,
            at_bounds=(),
            jitter=max(c.factor.jitter for m in mixtures for c in m.components),
            reverts=self.hyperparameters.gaps is not None,
        )

    @property
    def _prior_variances(self) -> Array:
        """Of every column, in the mean over states; an output has none in another's columns."""
        columns = [
            np.concatenate([m.prior_variances for m in posterior.mixtures])
            for posterior in self._posteriors
        ]
        table = np.zeros((sum(map(len, columns)), self.n_outputs))
        first = 0
        for output, column in enumerate(columns):
            table[first : first + len(column), output] = column
            first += len(column)
        return table

    @cached_property
    def _posteriors(self) -> tuple[WindowedMixture, ...]:
        parts = zip(self.hyperparameters.fits, self.moments, strict=True)
        return tuple(fit.posterior(moments) for fit, moments in parts)

    @cached_property
    def _signal_variances(self) -> Array:
        """The variance of f over the rows, shape (k,)."""
        parts = [moments.parts for moments in self.moments]  # of all windows; y is centred
        totals = [sum(float(m.yty[0]) for m in p) / sum(m.n for m in p) for p in parts]
        noise = [posterior.noise_variance for posterior in self._posteriors]
        return np.maximum(np.array(totals) - noise, 0.0)

    def _openness(self, X: Array) -> Array:
        """The share of the signal's variance that is unknown at inputs, shape (n,)."""
        gaps = self.hyperparameters.gaps
        return np.zeros(len(X)) if gaps is None else gaps.prior_share(X[:, 0])

    def mean(self, X: Array) -> Array:
        return np.column_stack([p.mean(X) for p in self._posteriors])

    def predict(self, X: Array) -> Prediction:
        p = self._prediction(X, [posterior.predict(X) for posterior in self._posteriors])
        lacking = self._openness(X)[:, None] * self._signal_variances
        return replace(p, function_variance=p.function_variance + lacking)

    def leave_one_out(self, rows: Block) -> Prediction:
        pairs = zip(self._posteriors, _outputs(rows), strict=True)
        return self._prediction(rows.X, [p.leave_one_out(part) for p, part in pairs])

    def _prediction(self, X: Array, parts: Sequence[Marginals]) -> Prediction:
        mean = np.column_stack([part.mean for part in parts])
        total = np.column_stack([part.variance for part in parts])
        noise = np.minimum(np.column_stack([p.noise(X) for p in self._posteriors]), total)
        return Prediction(mean, total - noise, noise, 1.0 - self._openness(X))

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        own = self._openness(X)[:, None] * self._signal_variances
        parts = []
        for output, posterior in enumerate(self._posteriors):
            more = posterior.noise(X) if noise else 0.0
            parts.append(posterior.covariance(X) + np.diag(own[:, output] + more))
        return np.stack(parts, axis=-1)

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        own = self._openness(X)[:, None] * self._signal_variances
        draws = []
        for output, posterior in enumerate(self._posteriors):
            f = posterior.sample(X, count, rng)
            root = np.sqrt(own[:, output] + (posterior.noise(X) if noise else 0.0))
            draws.append(f + root[:, None] * rng.normal(size=f.shape))
        return np.stack(draws, axis=1)

    def update(self, rows: Rows) -> SpikeSlabModel:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        more = self.hyperparameters.collect(self.units.rows(rows))
        total = tuple(a + b for a, b in zip(self.moments, more, strict=True))
        return replace(self, moments=total, total_weight=self.n_rows + float(rows.weights.sum()))

    def forget(self, rows: Rows) -> SpikeSlabModel:
        assert isinstance(rows, Block)  # the estimator reads them into memory
        left = self.n_rows - float(rows.weights.sum())
        if not require_seen(left, self.n_rows):
            return self.empty()
        gone = self.hyperparameters.collect(self.units.rows(rows))
        total = tuple(a + b.scaled(-1.0) for a, b in zip(self.moments, gone, strict=True))
        return replace(self, moments=total, total_weight=left)

    def decayed(self, share: float) -> SpikeSlabModel:
        total = tuple(moments.scaled(share) for moments in self.moments)
        return replace(self, moments=total, total_weight=share * self.n_rows)

    def empty(self) -> SpikeSlabModel:
        nothing = Block(np.empty((0, 1)), np.empty((0, self.n_outputs)), np.empty(0))
        return replace(self, moments=self.hyperparameters.collect(nothing), total_weight=0.0)

    def merge(self, other: SpikeSlabModel) -> SpikeSlabModel:
        if type(self) is not type(other) or not self.hyperparameters.same_as(other.hyperparameters):
            raise incompatible("atoms")
        total = tuple(a + b for a, b in zip(self.moments, other.moments, strict=True))
        return replace(self, moments=total, total_weight=self.n_rows + other.n_rows)


def _outputs(rows: Block) -> list[Block]:
    """The rows with each of their outputs."""
    return [replace(rows, y=y[:, None]) for y in rows.y.T]
