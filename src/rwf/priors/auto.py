"""Model selection: priors race on some of the rows, and held-out rows choose.

The cheapest prior leads at first. Each of the others gets more rows, and then the noise model and
local calibration, only while its log densities of held-out rows, row by row, leave it a chance to
pass the leader. On a line the first one has as many atoms as rows. What there is to win is then
bounded by what the leader loses by not knowing f: if that is next to nothing, the race is over.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from rwf._types import Array
from rwf.data.holdout import hold_out, standard_error
from rwf.data.progress import Stage, silent
from rwf.data.rows import Block
from rwf.errors import NotPositiveDefiniteError, NotSparseError
from rwf.inference.optimize import Trial
from rwf.linalg.threads import dispatched, has_workers
from rwf.models.base import ENOUGH_SCORES, LOW_DIMENSION, Model, Prediction
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
from rwf.uncertainty.noise import NOISE_OF_ROWS

ROWS = 5000  # on which priors compete
FIELD_ROWS, MOST_FIELD_ROWS = 1000, 2**20  # of two or three columns that a field is used for
FEW = 1000  # rows of the first round, if there are twice as many
PROMISE = 0.03  # nats per row below which there is nothing to win
CHANCE = 1.0  # standard errors that a prior may be behind in a round and still go on
AHEAD = 0.5  # standard errors by which it must be ahead of such a leader, which is cheaper


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
        self._check_noise_of_rows(config)
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
        line = known.X.shape[1] == 1 and task.config.n_components is None
        race = _Race(task, _rounds(kept, task, few="field" not in able), held, line)
        for index, runner in enumerate(race.runners(able, rng)):
            task.progress(Stage("model selection", 0.5 * index / len(able)))
            try:
                race.enter(runner)
            except (NotSparseError, NotPositiveDefiniteError) as reason:
                task.progress(f"prior {runner.name!r} is not considered: {reason}")
            if line and race.promise < PROMISE:
                break
        if race.leader is None:
            # The first fails with an error that says why.
            return _learned(next(iter(able.values())), task, known, rng)
        best = race.leader.name
        task.progress(Stage("learning", 0.5))
        found = _learned(able[best], task, known, rng, race.leader.learned[len(kept)])
        tried = tuple(
            Trial(np.nan, 0, 0.0, name=f"prior {name!r}", held_out=density)
            for name, density in race.densities.items()
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
        and config.noise not in ("heteroscedastic", *NOISE_OF_ROWS)
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
    prior: Prior,
    task: LearningTask,
    rows: Block,
    rng: np.random.Generator,
    start: LearnedPrior | None = None,
) -> LearnedPrior:
    size = task.config.n_components or prior.n_components(len(task.known))
    return prior.learn(replace(task, known=rows, n_components=size, rng=rng, start=start))


def _heavy_tails(z: Array) -> bool:
    """Whether errors have fourth moments beyond those of a Gaussian, as next to a jump."""
    excess = np.mean(z**4, axis=0) / np.mean(z**2, axis=0) ** 2 - 3.0
    return bool((excess > 2.0 * np.sqrt(24.0 / len(z))).any())


Round: TypeAlias = tuple[Block, FitConfig]
"""Rows to learn from, and whether there is a noise model and local calibration."""


def _rounds(kept: Block, task: LearningTask, *, few: bool) -> list[Round]:
    config = task.config
    plain = replace(
        config,
        noise="constant" if config.noise == "auto" else config.noise,
        calibration="global" if config.calibration == "local" else config.calibration,
        iterations=max(1, config.max_iter // 2),
    )
    first = [(some_rows(kept, FEW, task.rng), plain)] if few and len(kept) >= 2 * FEW else []
    return [*first, *([(kept, plain)] if plain != config else []), (kept, config)]


@dataclass
class _Race:
    """Priors that are compared round by round, and the one that leads."""

    task: LearningTask
    rounds: list[Round]
    held: Block  # rows to predict
    line: bool  # whether the first prior has as many atoms as rows
    leader: _Runner | None = None
    densities: dict[str, float] = field(default_factory=dict)  # in the last round of each, by name

    @property
    def promise(self) -> float:
        """Nats per row that the leader loses by not knowing f."""
        if self.leader is None:
            return np.inf
        p = self.leader.prediction(-1)
        return float(0.5 * np.log1p(p.function_variance / p.noise_variance).sum(axis=1).mean())

    def runners(self, able: Mapping[str, Prior], rng: np.random.Generator) -> list[_Runner]:
        """The priors, the cheapest first, each with its own random numbers."""
        streams = zip(reversed([*able]), rng.spawn(len(able)), strict=True)
        runners = [self.runner(name, able[name], own) for name, own in streams]
        return self.started(runners) if has_workers() else runners

    def runner(self, name: str, prior: Prior, rng: np.random.Generator) -> _Runner:
        """A prior before its first round."""
        # Stages within the race are none of the fit.
        own = replace(self.task, rng=rng, progress=lambda message: self.task.progress(str(message)))
        return _Runner(name, prior.cheap(), own, self.rounds, self.held.X)

    def started(self, runners: list[_Runner]) -> list[_Runner]:
        """All priors after their first round, even those that will not be considered."""
        first = [-1, *[0] * (len(runners) - 1)]  # the first one leads at first, by the last round
        found = dispatched(_start, zip(runners, first, strict=True))
        if found[0].failure is not None:
            return runners
        for runner, own in zip(found, runners, strict=True):
            runner.task = replace(runner.task, progress=own.task.progress)
        return found

    def enter(self, runner: _Runner) -> None:
        """Let a prior run as long as it may pass the leader, whose place it then takes."""
        name, rows = runner.name, self.rounds[-1][0]
        if runner.prior.for_edges and self.leader is not None and len(rows) < FEW:
            left_out = self.leader.model.base.leave_one_out(rows)
            if not _heavy_tails((rows.y - left_out.mean) / np.sqrt(left_out.variance)):
                self.task.progress(f"prior {name!r} is not considered: no large errors")
                return
        ahead = self._is_ahead(runner)
        if ahead:
            self.leader = runner
        self.task.progress(
            f"prior {name!r}: held-out log density {self.densities[name]:.4f}"
            + (", leads" if ahead else "")
        )

    def _is_ahead(self, runner: _Runner) -> bool:
        y, last = self.held.y, len(self.rounds) - 1
        for index in range(last + 1) if self.leader else [last]:
            own = runner.prediction(index).log_density(y)
            self.densities[runner.name] = float(own.mean())
            if self.leader is None:
                return True
            gain = own - self.leader.prediction(index).log_density(y)
            slack = -CHANCE if index < last else AHEAD * self.line
            if gain.mean() <= slack * standard_error(gain, self.held.groups):
                return False
        return True


@dataclass
class _Runner:
    """A prior in the race: what it learned and predicts, as far as it came."""

    name: str
    prior: Prior
    task: LearningTask
    rounds: list[Round]
    X: Array  # of the held-out rows
    learned: dict[int, LearnedPrior] = field(default_factory=dict)  # by the number of its rows
    predictions: dict[int, Prediction] = field(default_factory=dict)  # by round
    failure: Exception | None = None  # of its first round
    model: Model = field(init=False)  # of the last one

    def prediction(self, index: int) -> Prediction:
        """Of held-out rows, in a round."""
        index %= len(self.rounds)
        if self.failure is not None:
            raise self.failure
        if index not in self.predictions:
            rows, config = self.rounds[index]
            task = replace(self.task, known=rows, config=config)
            if len(rows) not in self.learned:
                start = next(reversed(self.learned.values()), None)
                self.learned[len(rows)] = _learned(self.prior, task, rows, task.rng, start)
            self.model = calibrated_model(self.learned[len(rows)], task, rows)
            self.predictions[index] = self.model.predict(self.X)
        return self.predictions[index]

    def __getstate__(self) -> dict[str, Any]:
        """With the seeds of further streams, which numpy 1.26 leaves out of a generator's state."""
        task, seeds = replace(self.task, progress=silent), self.task.rng.bit_generator.seed_seq
        return {**vars(self), "task": task, "seeds": seeds}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        bits, seeds = self.task.rng.bit_generator, vars(self).pop("seeds")
        own = type(bits)(seeds)
        own.state = bits.state
        self.task = replace(self.task, rng=np.random.Generator(own))


def _start(job: tuple[_Runner, int]) -> _Runner:
    """A copy of a runner, after a round; it keeps what excludes it."""
    runner, index = copy.deepcopy(job)
    try:
        runner.prediction(index)
    except (NotSparseError, NotPositiveDefiniteError) as reason:
        runner.failure = reason
    return runner
