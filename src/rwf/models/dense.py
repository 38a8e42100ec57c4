"""A model with one Gram matrix over all feature columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, ClassVar, TypeAlias

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block, Mapped, Rows, RowSum, block_rows, slices
from rwf.features.base import Features, Stack
from rwf.features.inducing import NystromFeatures, NystromResidual
from rwf.inference.empirical_bayes import EmpiricalBayes, Variances, empirical_bayes
from rwf.inference.moments import CHUNK_BYTES, Moments, RootMoments, accumulate, accumulate_root
from rwf.linalg.threads import cores, in_parallel
from rwf.models.base import ENOUGH_SCORES, Prediction
from rwf.models.gaussian import GaussianModel, NoiseFunction
from rwf.uncertainty.extrapolation import block_energies


@dataclass(frozen=True)
class Hyperparameters:
    """Features with their shape parameters, and the variances that go with them."""

    features: Stack  # the blocks
    log_priors: Annotated[Array, "g"]  # log prior variance of each block, shape (B,)
    log_noise: Annotated[Array, "k"]  # log noise variance of each output, shape (k,)

    def variances(self, output: int) -> Variances:
        return Variances(self.log_priors, float(self.log_noise[output]))


MANY_COLUMNS = 1000  # from which on moments are rounded, as their files would be large
FORMS = ("gram", "root")
DenseMoments: TypeAlias = Moments | RootMoments
Accumulate: TypeAlias = Callable[[Features, Iterable[Block], int], DenseMoments]
ACCUMULATE: dict[str, Accumulate] = {"gram": accumulate, "root": accumulate_root}
FROM_ARRAYS: dict[str, Callable[[Mapping[str, Array]], DenseMoments]] = {
    "gram": Moments.from_arrays,
    "root": RootMoments.from_arrays,
}


def collect(
    hyperparameters: Hyperparameters, rows: Rows, form: str, noise: NoiseFunction | None = None
) -> DenseMoments:
    """The moments of rows in standardised units, in one pass; of many columns they are rounded."""
    features, k = hyperparameters.features, rows.n_outputs
    p, name = features.n_features, f"{form} of {features.n_features} columns and {k} outputs"
    seen = rows if noise is None else Mapped(rows, noise.on)
    total: DenseMoments = seen.total(
        RowSum(
            name if noise is None else f"{name}, {noise.name}",
            block_rows(p),
            lambda parts: ACCUMULATE[form](features, parts, k),
            operator.add,
            lambda total: total.to_arrays(),
            FROM_ARRAYS[form],
            cores(),
        )
    )
    ratios = hyperparameters.log_priors[features.groups] - hyperparameters.log_noise.min()
    return total if p < MANY_COLUMNS else total.rounded(np.exp(ratios))


@dataclass(frozen=True, kw_only=True)
class DenseModel(GaussianModel):
    """Features, the moments of all rows, and the Gaussian over weights that follows."""

    # features, and the variances from which empirical Bayes starts
    hyperparameters: Hyperparameters
    statistics: DenseMoments
    learn_variances: bool = True  # whether it moves the prior variances, or the noise alone
    solver: ClassVar[str] = "dense"

    @property
    def features(self) -> Stack:
        return self.hyperparameters.features

    @property
    def nystrom(self) -> NystromFeatures | None:
        """The inducing features, if the prior is the Nyström one."""
        first = self.features.maps[0]
        return first if isinstance(first, NystromFeatures) else None

    @property
    def metric(self) -> Array:
        return super().metric if self.nystrom is None else self.nystrom.kernel.metric

    @cached_property
    def fits(self) -> tuple[EmpiricalBayes, ...]:
        return tuple(
            empirical_bayes(
                self.statistics,
                output,
                self.features.groups,
                self.hyperparameters.variances(output),
                parents=self.features.parents,
                learn_priors=self.learn_variances,
            )
            for output in range(self.n_outputs)
        )

    def unbiased_rows(self, known: Block) -> Block:
        """Rows that are no inducing inputs, which stay in the model; all, if too few are left.

        All of the rows in groups, which are left out as a whole.
        """
        if self.nystrom is None or known.groups is not None:
            return known
        inducing = {center.tobytes() for center in self.nystrom.centers}
        others = np.array([row.tobytes() not in inducing for row in known.X])
        return known.part(others) if others.sum() >= ENOUGH_SCORES else known

    def collect(self, rows: Rows, noise: NoiseFunction | None) -> DenseMoments:
        return collect(self.hyperparameters, rows, self.statistics.form, noise)

    def no_statistics(self) -> DenseMoments:
        return ACCUMULATE[self.statistics.form](self.features, (), self.n_outputs)

    def times(self, X: Array, W: Array) -> Array:
        values = np.empty((len(X), W.shape[1]))

        def visit(rows: slice, Z: Array, _room: Array) -> None:
            values[rows] = Z @ W

        self._visit(X, visit)
        return values

    def predict(self, X: Array) -> Prediction:
        mean, function, noise = np.empty((3, len(X), self.n_outputs))
        support = np.empty(len(X))
        posteriors, levels = [t.posterior for t in self.fits], self._plain_noise

        def visit(rows: slice, Z: Array, room: Array) -> None:
            lacking, support[rows] = self._lacking(Z)
            noise[rows] = self.relative_noise(X[rows])[:, None] * levels
            for output, posterior in enumerate(posteriors):
                p = posterior.predict(Z, 0.0, room)
                mean[rows, output] = p.mean
                function[rows, output] = p.variance + lacking[:, output]

        self._visit(X, visit)
        return Prediction(mean, function, noise, support)

    def leave_one_out(self, rows: Block) -> Prediction:
        return Prediction.in_parts(rows, block_rows(self.features.n_features), self._leave_one_out)

    def _leave_one_out(self, rows: Block) -> Prediction:
        """Of rows whose features fit into memory, or of one group of any size."""
        if len(rows) > block_rows(self.features.n_features):
            return self._leave_large_group_out(rows)
        Z, v = self._features(rows.X), self.noise_of(rows)
        lacking, support = self._lacking(Z)
        mean, function = np.empty((2, len(rows), self.n_outputs))
        for output, t in enumerate(self.fits):
            p = t.posterior.leave_out(Z, rows.y[:, output], rows.weights, v, rows.groups)
            own = p.variance - t.posterior.noise_variance * v
            mean[:, output] = p.mean
            function[:, output] = np.maximum(own, 0.0) + lacking[:, output]
        noise = self.relative_noise(rows.X)[:, None] * self._plain_noise
        return Prediction(mean, function, noise, support)

    def _leave_large_group_out(self, rows: Block) -> Prediction:
        """A group of more rows than there are columns, in parts."""
        size = block_rows(self.features.n_features)

        def parts(output: int) -> Iterator[tuple[Array, Array, Array, Array]]:
            for part in rows.parts(size):
                Z, v = self._features(part.X), self.noise_of(part)
                yield Z, part.y[:, output], part.weights, v

        rest = [t.posterior.without(parts(output)) for output, t in enumerate(self.fits)]

        def predict(part: Block) -> Prediction:
            Z = self._features(part.X)
            lacking, support = self._lacking(Z)
            found = [posterior.predict(Z, 0.0) for posterior in rest]
            mean = np.column_stack([p.mean for p in found])
            function = np.column_stack([p.variance for p in found]) + lacking
            noise = self.relative_noise(part.X)[:, None] * self._plain_noise
            return Prediction(mean, function, noise, support)

        return Prediction.in_parts(replace(rows, groups=None), size, predict)

    def covariance(self, X: Array, *, noise: bool = True) -> Array:
        Z, v = self._features(X), self.relative_noise(X)
        missing = self._lacking_covariance(X, Z)
        parts = zip(self.fits, missing, strict=True)
        C = np.stack([t.posterior.covariance_of(Z) + own for t, own in parts], axis=-1)
        if noise:
            C[np.diag_indices(len(X))] += v[:, None] * self._plain_noise
        return C

    def features_at(self, X: Array) -> Array:
        return self._features(X)

    def lacking_of(self, X: Array, A: Array) -> Array:
        inducing = self.nystrom
        if inducing is None:
            return super().lacking_of(X, A)
        missing = inducing.missing_covariance(X, np.asarray(inducing(X), dtype=np.float64))
        shares = np.array([residual.share for residual in self._residuals])[:, None, None]
        return shares * (A @ missing @ A.swapaxes(1, 2))

    def lacking_at(self, X: Array) -> Array:
        parts = slices(len(X), self.features.n_features)
        return np.concatenate([self._lacking(self._features(X[its]))[0] for its in parts])

    def sample(
        self, X: Array, count: int, rng: np.random.Generator, *, noise: bool = True
    ) -> Array:
        draws = [self.times(X, t.posterior.sample_weights(count, rng)) for t in self.fits]
        for draw, root in zip(draws, self._lacking_roots(X), strict=True):
            extra = rng.normal(size=draw.shape)
            draw += root @ extra if root.ndim == 2 else root[:, None] * extra
        if noise:
            root = np.sqrt(self.relative_noise(X))[:, None]
            for draw, level in zip(draws, self._plain_noise, strict=True):
                draw += np.sqrt(level) * root * rng.normal(size=draw.shape)
        return np.stack(draws, axis=1)

    def _features(self, X: Array) -> Array:
        return np.asarray(self.features(X), dtype=np.float64)

    def _visit(self, X: Array, visit: Callable[[slice, Array, Array], None]) -> None:
        """Call a function of the rows, Z and room for as much again, block by block, on all cores.

        A core reuses the same memory for all of its blocks, so little that it stays in cache.
        """
        size = block_rows(self.features.n_features, CHUNK_BYTES)
        starts = range(0, len(X), size)
        workers = max(1, min(cores(), len(starts)))

        def share(worker: int) -> None:
            Z, room = np.empty((2, min(size, len(X)), self.features.n_features))
            for start in starts[worker::workers]:
                part = X[start : start + size]
                self.features.into(part, Z[: len(part)])
                visit(slice(start, start + len(part)), Z[: len(part)], room[: len(part)])

        if workers == 1:
            share(0)
        else:
            in_parallel(share, range(workers))

    @cached_property
    def _residuals(self) -> Sequence[NystromResidual]:
        """Of each output, the variance that inducing features miss."""
        inducing = self.nystrom
        if inducing is None:
            return tuple(NystromResidual() for _ in self.fits)
        reached = float(self.statistics.column_energies[: inducing.n_features].sum())
        return tuple(
            NystromResidual.learn(
                variance=float(t.posterior.prior_variances[0]),
                # The jitter hides as much at every inducing row: these miss nothing.
                missing=inducing.kernel.diagonal - inducing.jitter - reached / self.statistics.n,
                noise=t.posterior.noise_variance,
            )
            for t in self.fits
        )

    @cached_property
    def _plain_noise(self) -> Array:
        """σ² without the part of it that stands for what the features miss, shape (k,)."""
        return self.noise_levels - [residual.in_noise for residual in self._residuals]

    def _lacking(self, Z: Array) -> tuple[Array, Array]:
        """Variance of f that the features lack at rows, shape (n, k), and the support, (n,)."""
        if self.nystrom is not None:
            missing = self.nystrom.missing(Z)
            shares = np.array([residual.share for residual in self._residuals])
            return missing[:, None] * shares, 1.0 - missing / self.nystrom.kernel.diagonal
        if self.levels is None:
            return np.zeros((len(Z), self.n_outputs)), np.ones(len(Z))
        energies = block_energies(Z, self.features.blocks)
        lacking = np.column_stack([r.missing(energies) for r in self.reversions])
        return lacking, self.reversions[0].support(energies)

    def _lacking_covariance(self, X: Array, Z: Array) -> list[Array]:
        """Covariance of the part of f that the features lack, of each output, shape (n, n)."""
        if self.nystrom is None:
            return [np.diag(column) for column in self._lacking(Z)[0].T]
        missing = self.nystrom.missing_covariance(X, Z)
        return [residual.share * missing for residual in self._residuals]

    def _lacking_roots(self, X: Array) -> list[Array]:
        """Square roots of these: matrices, or vectors where rows are independent."""
        if self.nystrom is None:
            return [*np.sqrt(self.lacking_at(X).T)]
        values, vectors = np.linalg.eigh(self.nystrom.missing_covariance(X, self._features(X)))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        return [np.sqrt(residual.share) * root for residual in self._residuals]
