"""Model selection: which priors compete, and how held-out rows choose between them."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace

import numpy as np
import pytest
from joblib import parallel_config
from numpy.testing import assert_array_equal

from rwf import RWFRegressor
from rwf.data.progress import silent
from rwf.data.rows import Block
from rwf.errors import NotSparseError
from rwf.linalg.threads import jobs_at_once
from rwf.models.base import Prediction
from rwf.priors import PRIORS, auto
from rwf.priors.base import LearnedPrior, LearningTask, Prior
from rwf.priors.spike_slab import LearnedSpikeSlab, SpikeSlab


@pytest.fixture
def task(rng):
    config = replace(RWFRegressor()._config(), target_transform=None)
    known = Block(rng.normal(size=(40, 1)), rng.normal(size=(40, 1)), np.ones(40))
    return LearningTask(config.units(known), known, True, 5, config, rng, silent)


@dataclass(frozen=True, kw_only=True)
class Learned(LearnedPrior):
    """Predicts zero; rows with a positive first input have another variance than the others."""

    name: str
    deviations: tuple[float, float]

    def condition(self, task, rows):
        raise NotImplementedError


@dataclass(frozen=True)
class Runner(Prior):
    """What it learned is given; what it was conditioned on is noted."""

    name: str
    deviations: tuple[float, float]

    def n_components(self, n):
        return 1

    def learn(self, task):
        return Learned(trials=(), n_learned=0, name=self.name, deviations=self.deviations)


@pytest.fixture
def run(task, monkeypatch):
    """Run a race of priors, and return the leader and the rounds of each."""

    def race(n_kept, runners, line=True, **config):
        task_ = replace(task, config=replace(task.config, **config))
        rounds = []

        class Model:
            def __init__(self, deviations):
                self.deviations = np.array(deviations)

            def predict(self, X):
                variance = self.deviations[(X > 0).astype(int)] ** 2
                return Prediction(0 * X, 0.5 * variance, 0.5 * variance, np.ones(len(X)))

        def calibrated_model(learned, task, rows):
            rounds.append((learned.name, len(rows), task.config.noise))
            return Model(learned.deviations)

        monkeypatch.setattr(auto, "calibrated_model", calibrated_model)
        block = Block(np.zeros((n_kept, 1)), np.zeros((n_kept, 1)), np.ones(n_kept))
        X = np.repeat([[1.0], [-1.0]], 100, axis=0)
        held = Block(X, np.ones((200, 1)), np.ones(200))
        found = auto._Race(task_, auto._rounds(block, task_, few=True), held, line)
        for runner in runners:
            found.enter(found.runner(runner.name, runner, task.rng))
        return found.leader.name, rounds

    return race


GOOD, BETTER = Runner("good", (1.3, 1.3)), Runner("better", (1.0, 1.0))
EQUAL, NEAR = Runner("equal", (1.3, 1.3)), Runner("near", (1.0, 1.46))


def test_a_better_prior_runs_all_rounds_and_leads(run):
    leader, rounds = run(5000, [GOOD, BETTER])
    assert leader == "better"
    every = [(1000, "constant"), (5000, "constant"), (5000, "auto")]
    assert [(n, noise) for name, n, noise in rounds if name == "better"] == every
    assert run(500, [GOOD, BETTER])[1] == [
        ("good", 500, "auto"),
        ("better", 500, "constant"),
        ("good", 500, "constant"),
        ("better", 500, "auto"),
    ]


@dataclass(frozen=True)
class Excluded(Runner):
    """Cannot be used."""

    def learn(self, task):
        raise NotSparseError("too dense")


@pytest.mark.parametrize("first", [True, False])
def test_a_prior_that_fails_beside_others_is_excluded_as_it_would_be_alone(first, task, run):
    run(500, [GOOD])
    rounds = auto._rounds(task.known, task, few=True)
    race = auto._Race(task, rounds, task.known, True)
    excluded = Excluded("excluded", (1.0, 1.0))
    priors = [excluded, GOOD] if first else [GOOD, excluded]
    runners = [race.runner(prior.name, prior, task.rng) for prior in priors]
    with parallel_config(backend="threading"), jobs_at_once(2):
        found = race.started(runners)
    if first:  # the other one will lead at first, which begins with another round
        assert found == runners
        assert not found[1].predictions
    else:
        assert list(found[0].predictions) == [len(rounds) - 1]
    with pytest.raises(NotSparseError, match="too dense"):
        race.enter(found[not first])


def test_a_copy_draws_and_spawns_what_the_original_does(task):
    runner = auto._Runner("copied", GOOD, task, [], task.known.X)
    task.rng.normal(size=3)
    task.rng.spawn(2)
    twin = pickle.loads(pickle.dumps(runner))
    for rng, other in (
        (task.rng, twin.task.rng),
        (task.rng.spawn(1)[0], twin.task.rng.spawn(1)[0]),
    ):
        assert_array_equal(rng.normal(size=4), other.normal(size=4))


def test_a_worse_prior_runs_one_round(run):
    leader, rounds = run(5000, [BETTER, GOOD])
    assert leader == "better"
    assert [r for r in rounds if r[0] == "good"] == [("good", 1000, "constant")]


def test_a_tie_goes_on_to_the_end_and_does_not_change_the_leader(run):
    """Half of the rows are predicted better, half worse: the gain is below its standard error."""
    leader, rounds = run(500, [GOOD, NEAR])
    near = np.array(NEAR.deviations)
    gain = np.log(1.3 / near) + 0.5 * (1.3**-2 - near**-2)
    assert 0.0 < gain.mean() < auto.AHEAD * gain.std() / 200**0.5
    assert leader == "good"
    assert run(500, [GOOD, NEAR], line=False)[0] == "near"
    assert [r for r in rounds if r[0] == "near"] == [
        ("near", 500, "constant"),
        ("near", 500, "auto"),
    ]


def test_what_there_is_to_win_is_what_the_leader_loses_by_not_knowing_f(task):
    p = Prediction(*np.full((3, 4, 1), 0.3), np.ones(4))
    runner = auto._Runner("leader", GOOD, task, [(task.known, task.config)], task.known.X)
    runner.predictions[0] = p
    race = auto._Race(task, runner.rounds, task.known, True)
    assert race.promise == np.inf
    race.leader = runner
    assert race.promise == pytest.approx(0.5 * np.log(2.0))


def test_other_priors_run_only_if_there_is_something_to_win(rng):
    x = rng.uniform(3.0, 5.0, 1500)
    y = 2.0 + np.sin(x) + 0.3 * rng.normal(size=1500)
    model = RWFRegressor(random_state=0).fit(x[:, None], y)
    assert not [t for t in model.fit_report_.trials if not t.chosen and t.name.startswith("prior")]


@pytest.mark.parametrize("height", [0.0, 2.0])
def test_with_few_rows_spike_and_slab_runs_only_if_there_are_large_errors(height, rng):
    x = rng.uniform(3.0, 5.0, 200)
    y = np.sin(3 * x) + height * (x > 3.7) + 0.2 * rng.normal(size=200)
    model = RWFRegressor(random_state=0).fit(x[:, None], y)
    assert any("spike_slab" in t.name for t in model.fit_report_.trials) == (height > 0)


def test_heavy_tails_are_more_than_chance(rng):
    z = rng.normal(size=(400, 1)) * 3.0
    assert not auto._heavy_tails(z)
    z[:4] = 15.0
    assert auto._heavy_tails(z)
    assert auto._heavy_tails(np.hstack([rng.normal(size=(400, 1)), z]))


def test_the_winner_goes_on_from_what_it_learned_in_the_race(rng, monkeypatch):
    starts = []
    learn = SpikeSlab.learn

    def noted(self, task):
        starts.append(task.start)
        return learn(self, task)

    monkeypatch.setattr(SpikeSlab, "learn", noted)
    x = rng.uniform(3.0, 5.0, 400)
    y = np.where(x > 3.7, 2.0, -1.0) + 0.05 * rng.normal(size=400)
    model = RWFRegressor(random_state=0).fit(x[:, None], y)
    assert type(model.model_.base).__name__ == "SpikeSlabModel"
    assert starts[0] is None
    assert isinstance(starts[1], LearnedSpikeSlab)


@pytest.mark.parametrize(
    ("d", "options", "competing"),
    [
        (1, {}, {"adaptive", "spike_slab", "multiscale, multifrontal", "nystrom"}),
        (1, {"n_components": 40}, {"adaptive", "multiscale", "nystrom"}),
        (1, {"noise": "heteroscedastic"}, {"adaptive", "multiscale, multifrontal", "nystrom"}),
        (2, {}, {"adaptive", "multiscale", "multiscale, multifrontal", "nystrom"}),
        (2, {"solver": "dense"}, {"adaptive", "multiscale", "nystrom"}),
        (3, {}, {"adaptive", "multiscale", "nystrom"}),
    ],
)
def test_which_priors_compete(d, options, competing):
    config = RWFRegressor(**options)._config()
    assert set(PRIORS["auto"]().for_rows(500, d, config).candidates) == competing


@pytest.mark.parametrize(
    ("n", "d", "options", "name"),
    [
        (500, 4, {}, "Nystrom"),
        (30_000, 1, {}, "Lattice"),
        (30_000, 2, {}, "Field"),
        (30_000, 3, {}, "Field"),
        (2**20 + 1, 2, {}, "Lattice"),
        (30_000, 2, {"neighbors": None}, "Lattice"),
        (500, 2, {"solver": "multifrontal"}, "Lattice"),
        (500, 2, {"n_components": 9000}, "Lattice"),
        (30_000, 2, {"solver": "dense"}, "Auto"),
    ],
)
def test_where_nothing_competes(n, d, options, name):
    config = RWFRegressor(**options)._config()
    assert type(PRIORS["auto"]().for_rows(n, d, config)).__name__ == name


@pytest.mark.parametrize("prior", ["nystrom", "adaptive", "spike_slab", "random_features"])
def test_the_multifrontal_solver_is_for_the_multiscale_prior(prior, rng):
    with pytest.raises(ValueError, match="solver='multifrontal' is for prior='auto' or 'multi"):
        RWFRegressor(prior=prior, solver="multifrontal").fit(rng.normal(size=(9, 1)), np.ones(9))
