"""A fitted model of sparse weights: windows with their draws, and moments that add."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows
from rwf.data.scaling import Standardizer
from rwf.errors import IncompatibleModelsError
from rwf.features.base import FeatureMap
from rwf.inference.posterior import Marginals
from rwf.inference.spike_slab import WindowedFit, WindowedMixture, WindowMoments
from rwf.inference.spike_slab.extrapolation import GapReversion
from rwf.models.base import scores
from rwf.uncertainty.calibration import Calibration


@dataclass(frozen=True)
class SpikeSlabHyperparameters:
    """What was sampled: atoms and states of every output.

    Args:
        fits: of each output.
        gaps: where rows are missing, if variance is filled up there.
    """

    fits: tuple[WindowedFit, ...]
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
class SpikeSlabModel:
    """Atoms and states that were sampled, and the moments of all rows over them.

    Further rows change the weights of the atoms, and not which atoms there are.

    Args:
        scaler: units.
        shape: atoms and states.
        moments: of each output, in standardised units.
        n_rows: rows seen, by their weights.
        calibration: leave-one-out errors of some training rows. Where they are too large, all
            variances are enlarged.
    """

    scaler: Standardizer
    shape: SpikeSlabHyperparameters
    moments: tuple[WindowMoments, ...]
    n_rows: float
    calibration: Calibration | None = None

    @classmethod
    def of(
        cls, scaler: Standardizer, shape: SpikeSlabHyperparameters, rows: Block
    ) -> SpikeSlabModel:
        """The model of rows in standardised units."""
        return cls(scaler, shape, shape.collect(rows), float(rows.weights.sum()))

    def calibrated(self, known: Block) -> SpikeSlabModel:
        """The model with leave-one-out errors of these rows, in standardised units."""
        return replace(self, calibration=Calibration(scores(self, known)))

    def calibration_rows(self, known: Block) -> Block:
        """Those of some training rows whose leave-one-out errors are honest: here, all."""
        return known

    @property
    def inflation(self) -> Array:
        """The factor of all variances, shape (k,)."""
        if self.calibration is None:
            return np.ones(self.n_outputs)
        return self.calibration.inflation

    @cached_property
    def _posteriors(self) -> tuple[WindowedMixture, ...]:
        parts = zip(self.shape.fits, self.moments, strict=True)
        return tuple(fit.posterior(moments) for fit, moments in parts)

    @cached_property
    def _signal_variances(self) -> Array:
        """The variance of f over the rows, in standardised units, shape (k,)."""
        totals = [_mean_square(moments) for moments in self.moments]
        noise = [posterior.noise_variance for posterior in self._posteriors]
        return np.maximum(np.array(totals) - noise, 0.0)

    @property
    def n_outputs(self) -> int:
        return len(self.shape.fits)

    @property
    def n_features(self) -> int:
        return sum(w.fit.features.n_features for fit in self.shape.fits for w in fit.windows)

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        return tuple(
            part for fit in self.shape.fits for w in fit.windows for part in w.fit.features.maps
        )

    @property
    def form(self) -> str:
        return "windows"

    @property
    def at_bounds(self) -> tuple[str, ...]:
        return ()

    @property
    def jitter(self) -> float:
        return max(
            component.factor.jitter
            for posterior in self._posteriors
            for mixture in posterior.mixtures
            for component in mixture.components
        )

    @property
    def filled(self) -> bool:
        return self.shape.gaps is not None

    @property
    def noise_variances(self) -> Array:
        noise = np.array([posterior.noise_variance for posterior in self._posteriors])
        return noise * self.inflation * self.scaler.y.scale**2

    @property
    def prior_variances(self) -> Array:
        """Of every column, in the mean over states; an output has none in another's columns."""
        parts = [[m.prior_variances for m in posterior.mixtures] for posterior in self._posteriors]
        columns = [np.concatenate(part) for part in parts]
        table = np.zeros((self.n_features, self.n_outputs))
        first = 0
        for output, column in enumerate(columns):
            table[first : first + len(column), output] = column
            first += len(column)
        return table * self.inflation * self.scaler.y.scale**2

    @property
    def log_evidence(self) -> float:
        raise AttributeError(
            "sparse weights are sampled, and their evidence is not known: compare models by "
            "held-out rows, or by fit_report_.nll, which is a leave-one-out score."
        )

    def with_rows(self, rows: Rows) -> SpikeSlabModel:
        """The model with further rows, which must be in memory."""
        assert isinstance(rows, Block)
        more = self.shape.collect(self.scaler.rows(rows))
        total = tuple(a + b for a, b in zip(self.moments, more, strict=True))
        return replace(self, moments=total, n_rows=self.n_rows + float(rows.weights.sum()))

    def without_rows(self) -> SpikeSlabModel:
        """The model before its first row."""
        nothing = Block(np.empty((0, 1)), np.empty((0, self.n_outputs)), np.empty(0))
        return replace(self, moments=self.shape.collect(nothing), n_rows=0.0)

    def merged(self, other: SpikeSlabModel) -> SpikeSlabModel:
        """The model of both models' rows; their atoms must be the same."""
        if not self.shape.same_as(other.shape):
            raise IncompatibleModelsError(
                "the two models have different atoms, so their statistics do not add. Fit one "
                "model, give each part of the data a copy of it made by without_rows(), call "
                "partial_fit on each copy, and merge those."
            )
        total = tuple(a + b for a, b in zip(self.moments, other.moments, strict=True))
        return replace(self, moments=total, n_rows=self.n_rows + other.n_rows)

    def _open(self, unit: Array) -> Array:
        """The share of the signal's variance that comes back at rows, shape (n,)."""
        gaps = self.shape.gaps
        return np.zeros(len(unit)) if gaps is None else gaps.prior_share(unit[:, 0])

    def coverage(self, X: Array) -> Array:
        """One among the rows, falling to zero in gaps and beyond the ends, shape (n,)."""
        share: Array = 1.0 - self._open(self.scaler.inputs(X))
        return share

    def mean(self, X: Array) -> Array:
        unit = self.scaler.inputs(X)
        return self.scaler.y.inverse(np.column_stack([p.mean(unit) for p in self._posteriors]))

    def predict(self, X: Array, *, noise: bool = True) -> tuple[Array, Array]:
        unit = self.scaler.inputs(X)
        found = [self._predict(unit, output, noise) for output in range(self.n_outputs)]
        means = np.column_stack([p.mean for p in found])
        deviations = np.sqrt(np.column_stack([p.variance for p in found]))
        return self.scaler.y.inverse(means), deviations * self.scaler.y.scale

    def _predict(self, unit: Array, output: int, noise: bool = True) -> Marginals:
        """Prediction of one output in standardised units."""
        posterior = self._posteriors[output]
        p = posterior.predict(unit)
        variance = p.variance if noise else np.maximum(p.variance - posterior.noise(unit), 0.0)
        return Marginals(p.mean, variance * self.inflation[output] + self._missing(unit, output))

    def _missing(self, unit: Array, output: int) -> Array:
        missing: Array = self._signal_variances[output] * self._open(unit)
        return missing

    def standardized(self, X: Array, output: int) -> Marginals:
        return self._predict(X, output)

    def leave_one_out(self, rows: Block, output: int) -> Marginals:
        p = self._posteriors[output].leave_one_out(_output(rows, output))
        return Marginals(p.mean, p.variance * self.inflation[output])

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        unit = self.scaler.inputs(X)
        parts = []
        for output, posterior in enumerate(self._posteriors):
            own = posterior.noise(unit) if noise else np.zeros(len(X))
            C = (posterior.covariance(unit) + np.diag(own)) * self.inflation[output]
            parts.append(C + np.diag(self._missing(unit, output)))
        return np.stack(parts, axis=-1) * self.scaler.y.scale**2

    def sample(self, X: Array, count: int, noise: bool, rng: np.random.Generator) -> Array:
        unit, draws = self.scaler.inputs(X), []
        for output, posterior in enumerate(self._posteriors):
            factor = self.inflation[output]
            mean = posterior.mean(unit)[:, None]
            f = mean + np.sqrt(factor) * (posterior.sample(unit, count, rng) - mean)
            own = factor * posterior.noise(unit) if noise else np.zeros(len(X))
            root = np.sqrt(own + self._missing(unit, output))[:, None]
            draws.append(f + root * rng.normal(size=f.shape))
        unit_y = self.scaler.y
        return np.stack(draws, axis=1) * unit_y.scale[:, None] + unit_y.center[:, None]


def _mean_square(moments: WindowMoments) -> float:
    """Of y, which is centred, over the rows of all windows."""
    return sum(float(part.yty[0]) for part in moments.parts) / sum(p.n for p in moments.parts)


def _output(rows: Block, output: int) -> Block:
    """The rows with one of their outputs."""
    return Block(rows.X, rows.y[:, output : output + 1], rows.weights)


def _outputs(rows: Block) -> list[Block]:
    return [_output(rows, output) for output in range(rows.y.shape[1])]
