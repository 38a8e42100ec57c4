"""The whole fit: learn the shape on a sample of rows, then make one pass over all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from rwf.factorization import gram_resolves_identity
from rwf.features.base import Family
from rwf.fit_report import FitReport, report_on
from rwf.model import FittedModel, collect
from rwf.rows import Block, sample
from rwf.scaling import Standardizer
from rwf.training import Progress, Shape, climb, draw_stack, learn_shape

SAMPLE_ROWS = 2000
"""Rows on which the shape is learned."""

SAMPLE_FEATURES = 300
"""Columns with which the shape is learned."""

POLISH_ROWS = 3000
"""Up to so many rows the shape is polished with all rows and all columns."""

POLISH_ITERATIONS = 20


@dataclass(frozen=True)
class Settings:
    """How to fit: columns, starts, iterations, and whether prior variances are learned."""

    n_components: int | None
    n_starts: int
    max_iter: int
    learn_priors: bool = True


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
    model = FittedModel(scaler, shape, collect(scaler, shape, rows, root), settings.learn_priors)
    if not model.resolved:
        progress(
            "the noise is below what a Gram matrix resolves: a second pass in square-root form"
        )
        model = replace(model, statistics=collect(scaler, shape, rows, True))
    watch.lap("pass and tuning")
    report = report_on(
        model, _first(known, SAMPLE_ROWS, rng), starts, polished, len(rows), watch.seconds
    )
    progress(
        f"fitted {len(rows)} rows with {report.n_features} features: {report.nll:.4f} nats per row"
    )
    return model, report


def _gram_will_do(shape: Shape, known: Block, n: int) -> bool:
    """Whether a Gram matrix of n rows would resolve a noise of a hundredth of that found so far."""
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
