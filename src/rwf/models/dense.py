"""A fitted model: units, features, statistics, and the posterior that follows from them.

Adding rows, or another model's rows, is a sum of statistics; variances are tuned again from the
new total, when they are first needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Rows, block_rows
from rwf.data.scaling import Standardizer
from rwf.errors import IncompatibleModelsError
from rwf.features.base import FeatureMap
from rwf.features.inducing import NystromFeatures
from rwf.inference.empirical_bayes import EmpiricalBayes, empirical_bayes
from rwf.inference.moments import CHUNK_BYTES
from rwf.inference.posterior import Marginals
from rwf.linalg.threads import cores, in_parallel
from rwf.models.base import EmpiricalBayesModel, scores
from rwf.models.hyperparameters import Hyperparameters
from rwf.models.statistics import DenseMoments, add, collect, form_of, no_rows
from rwf.uncertainty.calibration import ENOUGH_SCORES, Calibration
from rwf.uncertainty.extrapolation import NystromResidual, PriorReversion, block_energies
from rwf.uncertainty.variance_function import VarianceFunction


@dataclass(frozen=True)
class DenseModel(EmpiricalBayesModel):
    """Features, their moments, and the Gaussian over weights that follows.

    Args:
        scaler: units.
        shape: features, and the variances where tuning starts.
        statistics: the moments of all rows seen, in standardised units.
        learn_priors: whether tuning moves the prior variances, or the noise alone.
        calibration: leave-one-out errors of some training rows. Where they are too large, all
            variances are enlarged.
        noise: how the noise varies with x, if it does.
        cover: Σz² of every block of columns that counts as full cover, shape (B,); where there is
            less, the variance of f is filled up to that of the prior. ``None`` leaves it.
    """

    scaler: Standardizer
    shape: Hyperparameters
    statistics: DenseMoments
    learn_priors: bool = True
    calibration: Calibration | None = None
    noise: VarianceFunction | None = None
    levels: Array | None = None

    @property
    def n_features(self) -> int:
        return self.shape.features.n_features

    @property
    def maps(self) -> tuple[FeatureMap, ...]:
        return self.shape.features.maps

    @property
    def form(self) -> str:
        return form_of(self.statistics)

    @property
    def filled(self) -> bool:
        return self.levels is not None

    def calibration_rows(self, known: Block) -> Block:
        """Those of some training rows whose leave-one-out errors are honest.

        Rows that are atoms are not, as their atom would remain when they are left out; but they
        must do where there are no others.
        """
        if self.projected is None:
            return known
        atoms = {center.tobytes() for center in self.projected.centers}
        others = np.array([row.tobytes() not in atoms for row in known.X])
        return known.part(others) if others.sum() >= ENOUGH_SCORES else known

    def calibrated(self, known: Block) -> DenseModel:
        """The model with scores of these rows, in standardised units."""
        model = replace(self, calibration=Calibration(scores(self, self.calibration_rows(known))))
        return self.keep_fits(model)

    def refitted(
        self, scaler: Standardizer | None, rows: Rows, noise: VarianceFunction | None
    ) -> DenseModel:
        """The model of the same shape, for these rows alone, with noise that varies so.

        Rows are in standardised units, or in their own together with a scaler.
        """
        statistics = collect(scaler, self.shape, rows, form_of(self.statistics), noise)
        return replace(self, noise=noise, statistics=statistics, calibration=None)

    @property
    def projected(self) -> NystromFeatures | None:
        """The atoms of projected weights, or ``None`` if weights are independent."""
        first = self.shape.features.maps[0]
        return first if isinstance(first, NystromFeatures) else None

    @cached_property
    def fits(self) -> tuple[EmpiricalBayes, ...]:
        """Variances and posterior of each output."""
        return tuple(
            empirical_bayes(
                self.statistics,
                output,
                self.shape.features.groups,
                self.shape.variances(output),
                parents=self.shape.features.parents,
                learn_priors=self.learn_priors,
            ).rescaled(factor)
            for output, factor in enumerate(self.inflation)
        )

    @property
    def resolved(self) -> bool:
        """Whether the statistics resolve the noise that was found."""
        return all(
            self.statistics.resolves(t.posterior.prior_variances, t.posterior.noise_variance)
            for t in self.fits
        )

    @cached_property
    def nystrom_residuals(self) -> tuple[NystromResidual, ...]:
        """Of each output, the variance that projected atoms miss."""
        atoms = self.projected
        if atoms is None:
            return tuple(NystromResidual() for _ in self.fits)
        reached = float(self.statistics.column_energies[: atoms.n_features].sum())
        return tuple(
            NystromResidual.learn(
                variance=float(t.posterior.prior_variances[0]),
                missing=atoms.kernel.diagonal - reached / self.statistics.n,
                noise=t.posterior.noise_variance,
            )
            for t in self.fits
        )

    @cached_property
    def reversions(self) -> tuple[PriorReversion, ...]:
        """Of each output, the variance that local atoms lack where they are few."""
        stack = self.shape.features
        levels = np.zeros(len(stack.maps)) if self.levels is None else self.levels
        means = self.statistics.column_energies / max(self.statistics.n, 1e-300)
        return tuple(
            PriorReversion.learn(stack.blocks, levels, means, t.posterior.prior_variances)
            for t in self.fits
        )

    def coverage(self, X: Array) -> Array:
        """The share of the prior variance of f that atoms carry at rows, shape (n,).

        One among the data, zero where there are no atoms.
        """
        shares = []
        for part in self._blocks(X):
            Z = self._features(part)
            if self.projected is not None:
                shares.append(1.0 - self.projected.missing(Z) / self.projected.kernel.diagonal)
            else:
                shares.append(self.reversions[0].coverage(self._energies(Z)))
        return np.concatenate(shares)

    def with_rows(self, rows: Rows) -> DenseModel:
        """The model with further rows."""
        if isinstance(rows, Block) and len(rows) == 0:
            return self
        more = collect(self.scaler, self.shape, rows, form_of(self.statistics), self.noise)
        return replace(self, statistics=add(self.statistics, more))

    def without_rows(self) -> DenseModel:
        """The model before its first row: same units and features, empty statistics."""
        form, outputs = form_of(self.statistics), self.statistics.n_outputs
        return replace(self, statistics=no_rows(form, self.shape.features, outputs))

    def merged(self, other: DenseModel) -> DenseModel:
        """The model of both models' rows; their features must be the same."""
        probe = np.random.default_rng(0).normal(size=(8, len(self.scaler.X.center)))
        if not (
            type(self.statistics) is type(other.statistics)
            and self.statistics.n_outputs == other.statistics.n_outputs
            and len(self.scaler.X.center) == len(other.scaler.X.center)
            and np.array_equal(self.features(probe), other.features(probe))
            and np.array_equal(self.relative_noise(probe), other.relative_noise(probe))
            and np.array_equal(self.scaler.y.scale, other.scaler.y.scale)
            and np.array_equal(self.scaler.y.center, other.scaler.y.center)
        ):
            raise IncompatibleModelsError(
                "the two models have different features or units, so their statistics do not add. "
                "Fit one model, give each part of the data a copy of it made by without_rows(), "
                "call partial_fit on each copy, and merge those."
            )
        return replace(self, statistics=add(self.statistics, other.statistics))

    def features(self, X: Array) -> Array:
        """Z of inputs in their own units, shape (n, p)."""
        return self._features(self.scaler.inputs(X))

    def times(self, X: Array, W: Array) -> Array:
        """ZW of inputs in their own units, shape (n, q)."""
        return self.features(X) @ W

    def _features(self, unit: Array) -> Array:
        return np.asarray(self.shape.features(unit), dtype=np.float64)

    def relative_noise(self, X: Array) -> Array:
        """v of inputs in their own units, shape (n,): ones where the noise does not vary."""
        return self._noise_at(self.scaler.inputs(X))

    def _noise_at(self, unit: Array) -> Array:
        """v at rows in standardised units, shape (n,)."""
        return np.ones(len(unit)) if self.noise is None else self.noise(unit)

    def _blocks(self, X: Array) -> Iterator[Array]:
        """Rows in standardised units, a block at a time."""
        size = block_rows(self.shape.features.n_features)
        return (self.scaler.inputs(X[i : i + size]) for i in range(0, len(X), size))

    def _extra(self, unit: Array, Z: Array, v: Array, output: int) -> Array | float:
        """Variance of f that the atoms lack at rows with relative noise v."""
        if self.projected is not None:
            return self.nystrom_residuals[output].extra(self.projected.missing(Z), v)
        return self._open(unit, Z, output)

    def _open(self, unit: Array, Z: Array, output: int) -> Array | float:
        """Variance of f, independent at every row, that few atoms lack."""
        if self.levels is None:
            return 0.0
        return self.reversions[output].missing(self._energies(Z))

    def _energies(self, Z: Array) -> Array:
        return block_energies(Z, self.shape.features.blocks)

    def _visit(self, X: Array, visit: Callable[[slice, Array, Array, Array], None]) -> None:
        """Call a function for blocks of rows, on all cores.

        It is given which rows they are, their inputs in standardised units, Z, and room for as much
        again. A core has the same memory for all of its blocks, so little that it stays in cache.
        """
        features, size = self.shape.features, block_rows(self.n_features, CHUNK_BYTES)
        starts = range(0, len(X), size)
        workers = max(1, min(cores(), len(starts)))

        def share(worker: int) -> None:
            Z, room = np.empty((2, min(size, len(X)), features.n_features))
            for start in starts[worker::workers]:
                unit = self.scaler.inputs(X[start : start + size])
                features.into(unit, Z[: len(unit)])
                visit(slice(start, start + size), unit, Z[: len(unit)], room[: len(unit)])

        if workers == 1:
            share(0)
        else:
            in_parallel(share, range(workers))

    def mean(self, X: Array) -> Array:
        """Predictive means, shape (n, k), in the units of y."""
        W = np.column_stack([t.posterior.mean for t in self.fits])
        values = np.empty((len(X), W.shape[1]))

        def visit(rows: slice, _unit: Array, Z: Array, _room: Array) -> None:
            values[rows] = Z @ W

        self._visit(X, visit)
        return self.scaler.y.inverse(values)

    def predict(self, X: Array, *, noise: bool = True) -> tuple[Array, Array]:
        """Predictive means and standard deviations of y, or of f without noise, shapes (n, k)."""
        means, variances = np.empty((2, len(X), len(self.fits)))

        def visit(rows: slice, unit: Array, Z: Array, room: Array) -> None:
            v = self._noise_at(unit)
            for output in range(len(self.fits)):
                p = self._predict(unit, Z, v, output, noise, room)
                means[rows, output], variances[rows, output] = p.mean, p.variance

        self._visit(X, visit)
        return self.scaler.y.inverse(means), np.sqrt(variances) * self.scaler.y.scale

    def _predict(
        self,
        unit: Array,
        Z: Array,
        v: Array,
        output: int,
        noise: bool,
        room: Array | None = None,
    ) -> Marginals:
        """Prediction of one output in standardised units, from features and relative noise."""
        p = self.fits[output].posterior.predict(Z, v, room)
        variance = p.variance + self._extra(unit, Z, v, output)
        if not noise:
            variance = np.maximum(variance - self._plain_noise(output) * v, 0.0)
        return Marginals(p.mean, variance)

    def standardized(self, X: Array, output: int) -> Marginals:
        """Prediction of one output of y, inputs and results in standardised units."""
        return self._predict(X, self._features(X), self._noise_at(X), output, noise=True)

    def leave_one_out(self, rows: Block, output: int) -> Marginals:
        """Predictions of training rows, in standardised units, as if each had not been seen."""
        Z, v = self._features(rows.X), self._noise_at(rows.X)
        p = self.fits[output].posterior.leave_one_out(Z, rows.y[:, output], rows.weights, v)
        return Marginals(p.mean, p.variance + self._extra(rows.X, Z, v, output))

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        """Covariance of y, or of f without noise, at the rows, shape (n, n, k)."""
        Z, outputs = self.features(X), range(len(self.fits))
        parts = [self._function_covariance(X, Z, output) for output in outputs]
        if noise:
            for output in outputs:
                own = self._plain_noise(output) * self.relative_noise(X)
                parts[output][np.diag_indices(len(X))] += own
        return np.stack(parts, axis=-1) * self.scaler.y.scale**2

    def _plain_noise(self, output: int) -> float:
        """σ² without the part of it that stands for what the atoms miss."""
        noise = self.fits[output].posterior.noise_variance
        return noise - self.nystrom_residuals[output].in_noise

    def _function_covariance(self, X: Array, Z: Array, output: int) -> Array:
        C = self.fits[output].posterior.covariance(Z)
        if self.projected is not None:
            missing = self.projected.missing_covariance(self.scaler.inputs(X), Z)
            C += self.nystrom_residuals[output].share * missing
        else:
            C[np.diag_indices(len(X))] += self._open(self.scaler.inputs(X), Z, output)
        return C

    def sample(self, X: Array, count: int, noise: bool, rng: np.random.Generator) -> Array:
        """Draws of functions at the rows, with or without noise, shape (n, k, count)."""
        Z = self.features(X)
        draws = [Z @ t.posterior.sample_weights(count, rng) for t in self.fits]
        if self.projected is not None:
            missing = self.projected.missing_covariance(self.scaler.inputs(X), Z)
            values, vectors = np.linalg.eigh(missing)
            root = vectors * np.sqrt(np.maximum(values, 0.0))
            for output, remainder in enumerate(self.nystrom_residuals):
                extra = root @ rng.normal(size=(len(X), count))
                draws[output] += np.sqrt(remainder.share) * extra
        else:
            for output, draw in enumerate(draws):
                extra = self._open(self.scaler.inputs(X), Z, output)
                root = np.sqrt(np.broadcast_to(extra, len(X)))[:, None]
                draw += root * rng.normal(size=draw.shape)
        if noise:
            root = np.sqrt(self.relative_noise(X))[:, None]
            for output, draw in enumerate(draws):
                draw += np.sqrt(self._plain_noise(output)) * root * rng.normal(size=draw.shape)
        unit = self.scaler.y
        return np.stack(draws, axis=1) * unit.scale[:, None] + unit.center[:, None]
