"""A fitted model: units, features, statistics, and the posterior that follows from them.

:func:`fit` learns the shape on a sample of rows, then makes one pass over all of them. What comes after, adding
rows or another model's statistics, is a sum; variances are tuned again from the new total, when first needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from rwf.errors import IncompatibleModelsError
from rwf.factorization import gram_resolves_identity
from rwf.features.base import Family
from rwf.metrics import nll
from rwf.moments import Moments, RootMoments, accumulate, accumulate_root
from rwf.posterior import Prediction
from rwf.rows import Block, block_rows, blocks, sample
from rwf.scaling import Standardizer
from rwf.training import Progress, Shape, Start, climb, draw_stack, learn_shape
from rwf.tuning import Tuned, tune
from rwf.types import Array

SAMPLE_ROWS = 2000
"""Rows on which the shape is learned."""

SAMPLE_FEATURES = 300
"""Columns with which the shape is learned."""

POLISH_ROWS = 3000
"""Up to so many rows the shape is polished with all rows and all columns."""

POLISH_ITERATIONS = 20

FarQuery = 1e100
"""Queries are moved to at most this distance, in standardised units, so that squares stay finite."""


@dataclass(frozen=True)
class Settings:
    """How to fit: columns, starts, iterations, and whether prior variances are learned."""

    n_components: int | None
    n_starts: int
    max_iter: int
    learn_priors: bool = True


@dataclass(frozen=True)
class FitReport:
    """What happened during a fit.

    Args:
        starts: evidence per row, iterations and seconds of every start.
        seconds: wall-clock seconds by stage.
        n_rows: rows that were fitted.
        n_features: columns of the feature matrix.
        statistics: "gram", or "root" where the noise is below what a Gram matrix resolves.
        at_bounds: parameters that ended on their bounds.
        jitter: largest jitter added to a diagonal.
        nll: leave-one-out negative log density per row, in the units of y, on a sample of the training rows.
        constant_nll: the same for a constant predictor.
        linear_nll: the same for a linear predictor; NaN with too few rows for one.
    """

    starts: tuple[Start, ...]
    seconds: dict[str, float]
    n_rows: int
    n_features: int
    statistics: str
    at_bounds: tuple[str, ...]
    jitter: float
    nll: float
    constant_nll: float
    linear_nll: float

    @property
    def beats_trivial(self) -> bool:
        """Whether the model predicts better than a constant and than a straight line."""
        rivals = [v for v in (self.constant_nll, self.linear_nll) if np.isfinite(v)]
        return not rivals or self.nll < min(rivals)


@dataclass(frozen=True)
class FittedModel:
    """Everything that prediction needs.

    Args:
        scaler: units.
        shape: features, and the variances where tuning starts.
        statistics: the moments of all rows seen, in standardised units.
        learn_priors: whether tuning moves the prior variances, or the noise alone.
    """

    scaler: Standardizer
    shape: Shape
    statistics: Moments | RootMoments
    learn_priors: bool = True

    @cached_property
    def tuned(self) -> tuple[Tuned, ...]:
        """Variances and posterior of each output."""
        return tuple(
            tune(
                self.statistics,
                output,
                self.shape.features.groups,
                self.shape.variances(output),
                learn_priors=self.learn_priors,
            )
            for output in range(self.statistics.n_outputs)
        )

    @property
    def resolved(self) -> bool:
        """Whether the statistics resolve the noise that was found."""
        return all(
            self.statistics.resolves(t.posterior.prior_variances, t.posterior.noise_variance)
            for t in self.tuned
        )

    def with_rows(self, rows: Block) -> FittedModel:
        """The model with further rows."""
        if len(rows) == 0:
            return self
        root = isinstance(self.statistics, RootMoments)
        return replace(self, statistics=self.statistics + _pass(self.scaler, self.shape, rows, root))

    def without_rows(self) -> FittedModel:
        """The model before its first row: same units and features, empty statistics."""
        p, k = self.shape.features.n_features, self.statistics.n_outputs
        empty = (
            RootMoments(np.zeros((p + k, p + k)), 0.0, k)
            if isinstance(self.statistics, RootMoments)
            else Moments(np.zeros((p, p)), np.zeros((p, k)), np.zeros(k), 0.0)
        )
        return replace(self, statistics=empty)

    def merged(self, other: FittedModel) -> FittedModel:
        """The model of both models' rows; their features must be the same."""
        probe = np.random.default_rng(0).normal(size=(8, len(self.scaler.X.center)))
        if not (
            type(self.statistics) is type(other.statistics)
            and self.statistics.n_outputs == other.statistics.n_outputs
            and len(self.scaler.X.center) == len(other.scaler.X.center)
            and np.array_equal(self.features(probe), other.features(probe))
            and np.array_equal(self.scaler.y.scale, other.scaler.y.scale)
            and np.array_equal(self.scaler.y.center, other.scaler.y.center)
        ):
            raise IncompatibleModelsError(
                "the two models have different features or units, so their statistics do not add. "
                "Fit one model, give each part of the data a copy of it made by without_rows(), call "
                "partial_fit on each copy, and merge those."
            )
        return replace(self, statistics=self.statistics + other.statistics)  # type: ignore[operator]

    def features(self, X: Array) -> Array:
        """Z of inputs in their own units, shape (n, p)."""
        A = np.clip(self.scaler.inputs(X), -FarQuery, FarQuery)
        return np.asarray(self.shape.features(A), dtype=np.float64)

    def _per_block(self, X: Array, f: Callable[[Array], Array]) -> Array:
        size = block_rows(self.shape.features.n_features)
        parts = [f(self.features(X[i : i + size])) for i in range(0, len(X), size)]
        return np.concatenate(parts)

    def mean(self, X: Array) -> Array:
        """Predictive means, shape (n, k), in the units of y."""
        W = np.column_stack([t.posterior.mean for t in self.tuned])
        return self.scaler.y.inverse(self._per_block(X, lambda Z: Z @ W))

    def predict(self, X: Array) -> Prediction:
        """Predictive means and variances, noise included, shapes (n, k), in the units of y."""

        def both(Z: Array) -> Array:
            parts = [t.posterior.predict(Z) for t in self.tuned]
            return np.stack([np.column_stack([p.mean, p.variance]) for p in parts], axis=-1)

        values = self._per_block(X, both)
        scale = self.scaler.y.scale
        return Prediction(self.scaler.y.inverse(values[:, 0]), values[:, 1] * scale**2)

    def covariance(self, X: Array) -> Array:
        """Covariance of y at the rows, noise included, shape (n, n, k)."""
        Z = self.features(X)
        parts = []
        for t, scale in zip(self.tuned, self.scaler.y.scale, strict=True):
            C = t.posterior.covariance(Z)
            C[np.diag_indices_from(C)] += t.posterior.noise_variance
            parts.append(C * scale**2)
        return np.stack(parts, axis=-1)

    def sample(self, X: Array, count: int, noise: bool, rng: np.random.Generator) -> Array:
        """Draws of functions at the rows, with or without noise, shape (n, k, count)."""
        weights = [t.posterior.sample_weights(count, rng) for t in self.tuned]
        draws = self._per_block(X, lambda Z: np.stack([Z @ W for W in weights], axis=1))
        if noise:
            sd = np.sqrt([t.posterior.noise_variance for t in self.tuned])
            draws = draws + sd[:, None] * rng.normal(size=draws.shape)
        return draws * self.scaler.y.scale[:, None] + self.scaler.y.center[:, None]

    @property
    def log_evidence(self) -> float:
        """log p(y) of all outputs, in the units of y."""
        jacobian = self.statistics.n * float(np.log(self.scaler.y.scale).sum())
        return sum(t.posterior.log_evidence for t in self.tuned) - jacobian


def _pass(scaler: Standardizer, shape: Shape, rows: Block, root: bool) -> Moments | RootMoments:
    """One pass over the rows."""
    p, k = shape.features.n_features, rows.y.shape[1]
    parts = (scaler.rows(block) for block in blocks(rows, p))
    return (accumulate_root if root else accumulate)(shape.features, parts, k)


@dataclass
class _Stopwatch:
    seconds: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.seconds[stage] = now - self.begun
        self.begun = now


def fit(
    rows: Block,
    families: Callable[[Standardizer], Sequence[Family]],
    settings: Settings,
    rng: np.random.Generator,
    *,
    ard: bool,
    progress: Progress,
) -> tuple[FittedModel, FitReport]:
    """Learn the shape on a sample of rows, then fit all of them in one pass.

    Args:
        rows: the data, in their own units.
        families: the blocks of features, given the units.
        settings: how to fit.
        rng: draws rows and atoms.
        ard: whether every column gets its own unit.
        progress: called with a line of text now and then.
    """
    watch = _Stopwatch()
    n_features = settings.n_components or default_components(len(rows))
    known = sample(rows, max(SAMPLE_ROWS, 2 * n_features), rng)
    scaler = Standardizer.learn(known if len(rows) <= SAMPLE_ROWS else rows, ard=ard)
    known = scaler.rows(known)
    chosen = families(scaler)
    few = min(n_features, SAMPLE_FEATURES)
    shape, starts = learn_shape(
        chosen,
        _first(known, SAMPLE_ROWS, rng),
        rng,
        n_features=few,
        n_starts=settings.n_starts,
        max_iter=settings.max_iter,
        learn_priors=settings.learn_priors,
        progress=progress,
    )
    watch.lap("shape")
    if few < n_features:
        drawn = draw_stack(chosen, n_features, known.X, rng).with_theta(shape.features.theta)
        shape = replace(shape, features=drawn)
    polished: tuple[str, ...] = starts[int(np.argmax([s.chosen for s in starts]))].at_bounds
    if few < n_features and len(rows) <= POLISH_ROWS:
        shape, step = climb(shape, known, POLISH_ITERATIONS, learn_priors=settings.learn_priors)
        polished = step.at_bounds
        progress(f"polished: log evidence {step.log_evidence_per_row:.4f} per row")
    watch.lap("polish")
    root = not _gram_will_do(shape, known, len(rows))
    model = FittedModel(scaler, shape, _pass(scaler, shape, rows, root), settings.learn_priors)
    if not model.resolved:
        progress("the noise is below what a Gram matrix resolves: a second pass in square-root form")
        model = replace(model, statistics=_pass(scaler, shape, rows, True))
    watch.lap("pass and tuning")
    report = _report(model, _first(known, SAMPLE_ROWS, rng), starts, polished, len(rows), watch)
    progress(f"fitted {len(rows)} rows with {report.n_features} features: {report.nll:.4f} nats per row")
    return model, report


def _gram_will_do(shape: Shape, known: Block, n: int) -> bool:
    """Whether a Gram matrix of n rows would resolve the noise, even if it proves a hundred times smaller."""
    Z = np.asarray(shape.features(known.X[:SAMPLE_ROWS]), dtype=np.float64)
    prior = np.exp(shape.log_priors)[shape.features.groups]
    trace = n / len(Z) * float(np.einsum("np,np,p->", Z, Z, prior))
    return gram_resolves_identity(100 * trace / float(np.exp(shape.log_noise.min())))


def default_components(n: int) -> int:
    """As many columns as rows, within 100 and 2000."""
    return int(np.clip(n, 100, 2000))


def _first(rows: Block, size: int, rng: np.random.Generator) -> Block:
    """At most ``size`` of the rows, at random."""
    if len(rows) <= size:
        return rows
    keep = np.sort(rng.permutation(len(rows))[:size])
    return Block(rows.X[keep], rows.y[keep], rows.weights[keep])


def _report(
    model: FittedModel,
    known: Block,
    starts: Sequence[Start],
    at_bounds: tuple[str, ...],
    n_rows: int,
    watch: _Stopwatch,
) -> FitReport:
    Z = np.asarray(model.shape.features(known.X), dtype=np.float64)
    predictions = [
        t.posterior.leave_one_out(Z, known.y[:, k], known.weights) for k, t in enumerate(model.tuned)
    ]
    unit = float(np.log(model.scaler.y.scale).sum())
    score = sum(
        nll(known.y[:, k], p.mean, np.sqrt(p.variance)) for k, p in enumerate(predictions)
    )
    constant = _least_squares_nll(np.ones((len(known), 1)), known)
    linear = _least_squares_nll(np.column_stack([np.ones(len(known)), known.X]), known)
    watch.lap("report")
    return FitReport(
        starts=tuple(starts),
        seconds=watch.seconds,
        n_rows=n_rows,
        n_features=model.shape.features.n_features,
        statistics="root" if isinstance(model.statistics, RootMoments) else "gram",
        at_bounds=at_bounds + tuple(name for t in model.tuned for name in t.at_bounds),
        jitter=max(t.posterior.factor.jitter for t in model.tuned),
        nll=score + unit,
        constant_nll=constant + unit,
        linear_nll=linear + unit,
    )


def _least_squares_nll(Z: Array, rows: Block) -> float:
    """Leave-one-out NLL of ordinary least squares, summed over outputs; NaN where it has no residual."""
    n, p = Z.shape
    if n <= p + 1:
        return float("nan")
    Q = np.linalg.qr(Z)[0]
    rest = np.maximum(1.0 - np.einsum("np,np->n", Q, Q), 1e-12)
    residual = rows.y - Q @ (Q.T @ rows.y)
    variance = np.einsum("nk,nk->k", residual, residual) / (n - p)
    if (variance <= 1e-24).any():
        return float("nan")
    return sum(
        nll(residual[:, k] / rest, np.zeros(n), np.sqrt(variance[k] / rest))
        for k in range(rows.y.shape[1])
    )
