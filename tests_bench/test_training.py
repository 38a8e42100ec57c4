"""Training by gradients: convergence, budgets, and the parameters that are kept."""

import math

import pytest
import torch
from numpy.testing import assert_allclose

from experiments.baselines import training
from experiments.baselines.optimisers import Candidate, Schedule
from experiments.baselines.tensors import seeded
from experiments.baselines.training import train

TARGET = torch.tensor([3.0, -2.0], dtype=torch.float64)


def bowl(noise=0.0, at=(0.0, 0.0), scale=1.0, smooth=False):
    """A candidate whose loss is a noisy paraboloid of depth 5 around TARGET."""
    place = torch.tensor(at, dtype=torch.float64, requires_grad=True)

    def loss():
        return scale * ((place - TARGET) ** 2).sum() - 5 + noise * torch.randn(()).double()

    return Candidate(place, loss, [place], smooth=smooth)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_it_reports_convergence_at_the_minimum(noise):
    with seeded(1):
        place, report = train(lambda _: bowl(noise), 60, Schedule(rate=0.05, window=100))
    assert report.converged
    assert report.setbacks == 0
    assert_allclose(place.detach(), TARGET, atol=0.02)
    # The mean of a window of 100 has noise of a tenth of a step's, and the lowest of some is kept.
    assert abs(report.loss + 5) < 5 * noise / 10 + 1e-3


def test_a_smooth_loss_takes_few_steps():
    place, report = train(lambda _: bowl(smooth=True), 60, Schedule(window=5))
    assert report.converged
    assert report.steps < 20
    assert_allclose(place.detach(), TARGET, atol=1e-6)
    assert report.loss == pytest.approx(-5)


def valley(at=(-1.2, 1.0)):
    """A smooth candidate on the floor of Rosenbrock's valley, which takes some thirty steps."""
    place = torch.tensor(at, dtype=torch.float64, requires_grad=True)

    def loss():
        return 100 * (place[1] - place[0] ** 2) ** 2 + (1 - place[0]) ** 2

    return Candidate(place, loss, [place], smooth=True)


def test_a_smooth_loss_that_still_falls_is_no_convergence():
    _, report = train(lambda _: valley(), 60, Schedule(window=5, max_steps=10))
    assert (report.steps, report.converged) == (10, False)
    place, report = train(lambda _: valley(), 60, Schedule(window=5, tolerance=1e-9))
    assert report.converged
    assert_allclose(place.detach(), 1.0, atol=1e-3)


def test_starts_of_smooth_losses_compete_and_the_best_goes_on():
    places = [(50.0, 50.0), (0.9, 0.9), (-3.0, 9.0)]
    place, report = train(
        lambda k: valley(places[k]), 60, Schedule(window=2, short=1, tolerance=1e-9), n_starts=3
    )
    assert min(report.by_start) == report.by_start[1] >= report.loss
    assert_allclose(place.detach(), 1.0, atol=1e-3)


def test_a_smooth_loss_that_fails_is_left_from_its_lowest_point():
    place = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    wall = lambda: torch.log(place).sum()  # noqa: E731 - it falls towards a wall at 0
    _, report = train(lambda _: Candidate(place, wall, [place], smooth=True), 60)
    assert report.setbacks > 5
    assert not report.converged
    assert float(place.detach()) > 0
    assert report.loss == pytest.approx(math.log(float(place.detach())))


@pytest.mark.parametrize("smooth", [False, True])
def test_without_time_the_report_has_no_convergence(smooth):
    place, report = train(lambda _: bowl(smooth=smooth), budget=0.0)
    assert not report.converged
    assert report.steps == 1
    assert report.facts()["converged"] is False
    if not smooth:  # whose first step is taken, not only its first loss
        assert report.loss == pytest.approx(13 - 5)
        assert place.abs().max() == 0  # and there it stays


def test_time_that_ends_on_a_slope_is_no_convergence(monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(training.time, "perf_counter", lambda: next(clock))
    _, report = train(lambda _: bowl(), budget=120, schedule=Schedule(rate=1e-3, window=20))
    assert not report.converged
    assert 110 < report.steps <= 120


def test_steps_have_an_end_of_their_own():
    _, report = train(lambda _: bowl(), 60, Schedule(rate=1e-3, window=20, max_steps=50))
    assert report.steps == 50
    assert not report.converged


def test_the_rate_decays_on_plateaus_and_the_last_one_ends_it():
    calls = []
    place = torch.zeros(1, requires_grad=True)

    def flat():
        calls.append(1)
        return 0 * place.sum() + 2.0

    schedule = Schedule(window=10, n_decays=3)
    _, report = train(lambda _: Candidate(place, flat, [place]), 60, schedule)
    assert report.converged
    assert len(calls) == 10 * (1 + 3 + 1)  # one to compare with, three decays, and the end


def test_the_best_start_goes_on():
    places = [(50.0, 50.0), (2.0, -1.0), (-40.0, 9.0)]
    made = []

    def make(k):
        made.append(bowl(at=places[k]))
        return made[-1]

    place, report = train(make, 60, Schedule(window=50, short=1), n_starts=3)
    assert place is made[1].model
    assert len(report.by_start) == 3
    assert min(report.by_start) == report.by_start[1] >= report.loss
    assert_allclose(place.detach(), TARGET, atol=0.01)
    assert report.facts()["loss_by_start"] == list(report.by_start)


def test_starts_share_the_budget(monkeypatch):
    clock = iter(range(10_000))
    monkeypatch.setattr(training.time, "perf_counter", lambda: next(clock))
    steps = []

    def make(k):
        candidate = bowl(at=(9.0 - k, 9.0))
        steps.append(0)

        def loss():
            steps[k] += 1
            return candidate.loss()

        return Candidate(candidate.model, loss, candidate.parameters)

    train(make, 400, Schedule(rate=1e-3, window=1000), n_starts=4)
    assert all(40 < count <= 50 for count in steps[:3])  # half of 400, shared by four
    assert 230 < steps[3] <= 250  # and the best goes on with what is left
    assert sum(steps) <= 400


def test_an_error_on_rows_kept_back_is_what_is_watched():
    place = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    seen = []

    def validation():
        seen.append(abs(place.item() - 1.0))  # the loss goes on to 3: overfitting begins at 1
        return seen[-1]

    candidate = Candidate(place, lambda: ((place - 3) ** 2).sum(), [place], validation)
    place, report = train(lambda _: candidate, 60, Schedule(rate=0.01, window=10, tolerance=0.0))
    assert report.loss == min(seen)
    assert abs(place.item() - 1.0) == report.loss  # the best window's parameters are kept
    assert float(place) < 1.2


def test_a_start_with_the_best_held_out_error_is_kept():
    place = torch.ones(1, dtype=torch.float64, requires_grad=True)
    watch = lambda: abs(place.item() - 1.0)  # noqa: E731 - and every step leads away from 1
    candidate = Candidate(place, lambda: ((place - 3) ** 2).sum(), [place], watch)
    place, report = train(lambda _: candidate, 60, Schedule(rate=0.01, window=10))
    assert float(place) == 1.0
    assert report.loss == 0.0
    assert report.steps == 30  # every window is a plateau: two decays, and the end


def test_a_step_that_fails_is_taken_back_at_a_lower_rate():
    place = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    loss = lambda: torch.log(place).sum()  # noqa: E731 - the slope grows towards a wall at 0
    _, report = train(lambda _: Candidate(place, loss, [place]), 60, Schedule(rate=0.05, window=5))
    assert report.setbacks > 0
    assert not report.converged
    assert float(place) > 0
    assert math.isfinite(report.loss)


@pytest.mark.parametrize("problem", ["nan", "cholesky"])
def test_where_no_start_has_a_loss_the_error_names_a_remedy(problem):
    place = torch.ones(1, requires_grad=True)

    def loss():
        if problem == "cholesky":
            return torch.linalg.cholesky(-place[:, None]).sum()
        return (place * math.nan).sum()

    with pytest.raises(FloatingPointError, match=r"all of 2 starts: .*\. Lower the rate"):
        train(lambda _: Candidate(place, loss, [place]), 60, n_starts=2)


def test_companions_step_along_and_are_kept_too():
    ours, theirs = (torch.zeros(1, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def loss():
        return ((ours - 1) ** 2 + (theirs - 2) ** 2).sum()

    companion = torch.optim.SGD([theirs], lr=0.1)
    candidate = Candidate(None, loss, [ours], companions=[companion])
    train(lambda _: candidate, 60, Schedule(rate=0.05, window=50))
    assert_allclose([float(ours), float(theirs)], [1, 2], atol=0.02)
