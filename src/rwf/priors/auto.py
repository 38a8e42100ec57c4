"""Model selection: several priors compete on some of the rows, and held-out rows choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rwf.data.holdout import hold_out
from rwf.data.rows import Block
from rwf.errors import NotPositiveDefiniteError, NotSparseError
from rwf.inference.optimize import Trial
from rwf.models.base import ENOUGH_SCORES, LOW_DIMENSION
from rwf.priors import adaptive
from rwf.priors.adaptive import Adaptive
from rwf.priors.base import (
    FitConfig,
    LearnedPrior,
    LearningTask,
    Prior,
    calibrated_model,
    some_rows,
)
from rwf.priors.field import Field
from rwf.priors.lattice import MANY_ROWS, Lattice, reason_for_multifrontal
from rwf.priors.multiscale import Multiscale
from rwf.priors.nystrom import Nystrom
from rwf.priors.spike_slab import SpikeSlab, can_be_sampled

ROWS = 5000  # on which priors compete
FIELD_ROWS, MOST_FIELD_ROWS = 1000, 2**20  # of two or three columns that a field is used for
HOPELESS = 0.3  # nats per row behind the best at which noise and calibration are not learned


@dataclass(frozen=True)
class Auto(Prior):
    """The prior that predicts held-out rows best; "nystrom" for four or more input columns."""

    # by name, the most expensive first, which is used where there are too few rows to compete
    candidates: Mapping[str, Prior] = field(default_factory=dict)
    name: ClassVar[str] = "auto"
    solvers: ClassVar[tuple[str, ...]] = ("auto", "dense", "multifrontal")

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        if d > LOW_DIMENSION:
            return Nystrom().for_rows(n, d, config)
        if _is_field(d, config) and MANY_ROWS < n <= MOST_FIELD_ROWS:
            return Field().for_rows(n, d, config)
        if reason_for_multifrontal(n, d, config):
            return Multiscale().for_rows(n, d, config)
        return Auto(_candidates(n, d, config))

    @property
    def sample_rows(self) -> int:  # type: ignore[override]
        return min(adaptive.SAMPLE_ROWS, max(p.sample_rows for p in self.candidates.values()))

    def n_components(self, n: int) -> int:
        return max(prior.n_components(n) for prior in self.candidates.values())

    def learn(self, task: LearningTask) -> LearnedPrior:
        known, rng = task.known, task.rng
        able = {
            name: prior
            for name, prior in self.candidates.items()
            if task.complete or prior.sample_rows <= len(known)
        }
        if "field" in able:
            field = _learned(able["field"], task, known, rng)
            if field.conclusive:
                return field
        kept, held = hold_out(some_rows(known, ROWS, rng), rng)
        if len(held) < ENOUGH_SCORES:
            return _learned(next(iter(able.values())), task, known, rng)
        densities = _densities(able, task, kept, held)
        if not densities:
            # The first fails with an error that says why.
            return _learned(next(iter(able.values())), task, known, rng)
        best = max(densities, key=lambda name: densities[name])
        found = _learned(able[best], task, known, rng)
        tried = tuple(
            Trial(np.nan, 0, 0.0, name=f"prior {name!r}", held_out=density)
            for name, density in densities.items()
            if name != best
        )
        chosen = tuple(
            replace(t, name=f"prior {best!r} {t.name}".strip()) if t.chosen else t
            for t in found.trials
        )
        return replace(found, trials=chosen + tried)


def _is_field(d: int, config: FitConfig) -> bool:
    """Whether a field suits: not if the parameters ask for what it has not."""
    return (
        1 < d <= LOW_DIMENSION
        and config.solver == "auto"
        and config.n_components is None
        and config.neighbors is not None
        and config.noise != "heteroscedastic"
        and not config.grouped
    )


def _candidates(n: int, d: int, config: FitConfig) -> dict[str, Prior]:
    found: dict[str, Prior] = {"nystrom": Nystrom()}
    if _is_field(d, config) and n >= FIELD_ROWS:
        return {**found, "field": Field()}
    lattice = config.solver == "auto" and d <= 2 and config.n_components is None
    if d > 1 or not lattice:  # on one column a lattice does as well with more atoms, sooner
        found["multiscale"] = Multiscale()
    found["adaptive"] = Adaptive()
    if d == 1 and can_be_sampled(config):
        found["spike_slab"] = SpikeSlab()
    if lattice:
        found["multiscale, multifrontal"] = Lattice(d, "it predicted held-out rows best")
    return found


def _learned(
    prior: Prior, task: LearningTask, rows: Block, rng: np.random.Generator
) -> LearnedPrior:
    size = task.config.n_components or prior.n_components(len(task.known))
    return prior.learn(replace(task, known=rows, n_components=size, rng=rng))


def _densities(
    able: Mapping[str, Prior], task: LearningTask, kept: Block, held: Block
) -> dict[str, float]:
    """Mean log density of held-out rows by prior; without those that do not suit the data."""
    densities: dict[str, float] = {}
    streams = dict(zip(able, task.rng.spawn(len(able)), strict=True))
    for name in reversed([*able]):
        rng = streams[name]
        try:
            learned = _learned(able[name].cheap(), task, kept, rng)
            best = max(densities.values(), default=None)
            own = replace(task, known=kept, rng=rng)
            densities[name] = _held_out(learned, own, held, best)
        except (NotSparseError, NotPositiveDefiniteError) as reason:
            task.progress(f"prior {name!r} is not considered: {reason}")
            continue
        task.progress(f"prior {name!r}: held-out log density {densities[name]:.4f}")
    return densities


def _held_out(learned: LearnedPrior, task: LearningTask, held: Block, best: float | None) -> float:
    """Mean log density of held-out rows, with noise and calibration if these can matter."""

    def density(task: LearningTask) -> float:
        model = calibrated_model(learned, task, task.known)
        return float(model.predict(held.X).log_density(held.y).mean())

    config = task.config
    if best is not None and config.noise == "auto" and learned.screened:
        mode = "global" if config.calibration == "local" else config.calibration
        plain = replace(config, noise="constant", calibration=mode)
        (other,) = task.rng.spawn(1)  # so that what follows does not depend on this
        found = density(replace(task, config=plain, rng=other))
        if found < best - HOPELESS:
            return found
    return density(task)
