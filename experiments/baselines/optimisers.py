r"""Optimisers that can stop and go on: Adam and L-BFGS, with plateaus of the loss.

Adam follows a loss, in nats per training row, that may be noisy: a mini-batch, a sampled bound.
What is watched is its mean over windows of steps, or an error on rows kept back where a method
names one. A window that is not better than the one before by more than a tolerance,

.. math::
    \bar\ell_k > \bar\ell_{k-1} - \text{tolerance},

is a plateau: the rate decays there, and on a plateau of the last rate training has converged. The
parameters of the best window are the ones that are kept. Where the budget of wall-clock time is
over before, the report has ``converged: false``: such a row measures the budget, not the
method.

A loss of all rows is without noise, and L-BFGS follows it in far fewer steps. It has no rate, so
that the first plateau is where it has arrived.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
import torch
from linear_operator.utils.errors import NanError, NotPSDError
from scipy.optimize import minimize

from experiments.baselines.tensors import double
from rwf._types import Array

NUMERICAL = (torch.linalg.LinAlgError, NanError, NotPSDError)
"""What is raised where a kernel matrix has no Cholesky factor, by torch and by gpytorch."""

MOST_SETBACKS = 5
"""After so many steps without a finite loss, L-BFGS stays where it is."""

M = TypeVar("M")


@dataclass(frozen=True)
class Schedule:
    """Steps of Adam, and the test of convergence; of L-BFGS only the latter.

    Args:
        rate: the first learning rate.
        window: steps whose losses are averaged.
        tolerance: nats per row that a window must gain on the one before, or it is a plateau.
        decay: what a plateau multiplies the rate by.
        n_decays: how often; the plateau after the last one ends the training.
        short: windows that each of several starts takes before the best goes on.
        max_steps: an end that does not depend on the machine, as the budget does.
    """

    rate: float = 0.01
    window: int = 200
    tolerance: float = 1e-3
    decay: float = 0.3
    n_decays: int = 2
    short: int = 2
    max_steps: int | None = None


@dataclass(frozen=True)
class Candidate(Generic[M]):
    """A model at its start, and how it is trained.

    Args:
        model: whatever the caller wants back.
        loss: the loss per row, each call on a batch and a sample of its own.
        parameters: what Adam moves: tensors, or groups with rates of their own, as torch has them.
        validation: an error on rows kept back; where there is one, it is watched, not the loss,
            and from the start on, which may be the best that there is.
        companions: optimisers of further parameters, such as natural gradients. They step along.
        smooth: whether the loss is without noise, so that L-BFGS moves the parameters.
    """

    model: M
    loss: Callable[[], torch.Tensor]
    parameters: Sequence[torch.Tensor] | Sequence[Mapping[str, object]]
    validation: Callable[[], float] | None = None
    companions: Sequence[torch.optim.Optimizer] = ()
    smooth: bool = False


@dataclass
class _Optimisation(Generic[M]):
    """A candidate, and the state of its optimisation."""

    candidate: Candidate[M]
    schedule: Schedule
    steps: int = 0
    setbacks: int = 0
    converged: bool = False
    stuck: str = ""  # why no step is possible any more
    lowest: float = math.inf


@dataclass
class AdamRun(_Optimisation[M]):
    """A candidate that Adam moves, so that it can stop and go on."""

    _windows: int = 0
    _decays: int = 0
    _before: float = math.inf  # what was watched at the end of the last window
    _losses: list[float] = field(default_factory=list)  # of the window under way

    def __post_init__(self) -> None:
        adam = torch.optim.Adam(self.candidate.parameters, lr=self.schedule.rate)
        self._optimisers = (adam, *self.candidate.companions)
        self._kept = self._copy()
        if self.candidate.validation is not None:
            self.lowest = self._before = self.candidate.validation()

    def go(self, deadline: float, windows: int | None = None) -> None:
        """Take steps until it has converged, for so many windows, or up to the deadline.

        The first loss is found in any case.
        """
        last = math.inf if windows is None else self._windows + windows
        while self._windows < last and self._may_step(deadline):
            self._step()
        if 2 * len(self._losses) >= self.schedule.window or (
            self._losses and math.isinf(self.lowest)
        ):
            self._watch()  # time is over within a window: what there is of it

    def restore(self) -> None:
        """Go back to the parameters of the best window."""
        with torch.no_grad():
            for parameter, kept in zip(self._moved(), self._kept, strict=True):
                parameter.copy_(kept)

    def _may_step(self, deadline: float) -> bool:
        last = self.schedule.max_steps
        if self.converged or self.stuck or (last is not None and self.steps >= last):
            return False
        return self.steps == 0 or time.perf_counter() < deadline

    def _step(self) -> None:
        """Move by the last gradient, then find the loss and the gradient where that has led.

        In this order the loss at the parameters is always known.
        """
        for optimiser in self._optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.steps += 1
        try:
            loss = self.candidate.loss()
            loss.backward()
            value, problem = loss.item(), "the loss or its gradient is not finite"
        except NUMERICAL as error:
            value, problem = math.nan, str(error)
        if not math.isfinite(value) or not self._has_finite_gradient():
            self._set_back(problem)
            return
        self._losses.append(value)
        if len(self._losses) == self.schedule.window:
            self._end_window()

    def _has_finite_gradient(self) -> bool:
        gradients = [p.grad for p in self._moved() if p.grad is not None]
        return all(bool(torch.isfinite(gradient).all()) for gradient in gradients)

    def _set_back(self, problem: str) -> None:
        """After a step that failed: the parameters of the best window again, and a lower rate."""
        self.setbacks += 1
        self.restore()
        self._losses = []
        for optimiser in self._optimisers:
            optimiser.zero_grad()
            optimiser.state.clear()  # its momentum points to where there is no loss
        if self._decays == self.schedule.n_decays:
            self.stuck = problem
        else:
            self._decay()

    def _decay(self) -> None:
        self._decays += 1
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                group["lr"] *= self.schedule.decay

    def _end_window(self) -> None:
        watched = self._watch()
        if watched > self._before - self.schedule.tolerance:
            if self._decays == self.schedule.n_decays:
                self.converged = True
            else:
                self._decay()
        self._before = watched
        self._windows += 1

    def _watch(self) -> float:
        """What is watched of the window, whose parameters are kept if it is the best."""
        own = self.candidate.validation
        watched = sum(self._losses) / len(self._losses) if own is None else own()
        if watched < self.lowest:
            self.lowest, self._kept = watched, self._copy()
        self._losses = []
        return watched

    def _moved(self) -> Iterator[torch.Tensor]:
        for optimiser in self._optimisers:
            for group in optimiser.param_groups:
                yield from group["params"]

    def _copy(self) -> list[torch.Tensor]:
        return [parameter.detach().clone() for parameter in self._moved()]


@dataclass
class LBFGSRun(_Optimisation[M]):
    """A candidate that L-BFGS moves, with the interface of :class:`AdamRun`."""

    _before: float = math.inf  # the lowest loss at the end of the last window

    def __post_init__(self) -> None:
        parameters = self.candidate.parameters
        self._parameters = [p for p in parameters if isinstance(p, torch.Tensor)]
        assert len(self._parameters) == len(parameters), "groups of parameters have rates"
        self._kept = _flat(self._parameters)

    def go(self, deadline: float, windows: int | None = None) -> None:
        """Take steps until it has converged, for so many windows, or up to the deadline.

        Where a loss is not finite it begins again, from the lowest point and with a short step.
        """
        window, most = self.schedule.window, self.schedule.max_steps
        last = min(
            math.inf if most is None else most,
            math.inf if windows is None else self.steps + windows * window,
        )

        def after_step(xk: Array) -> None:  # the name that scipy expects
            self.steps += 1
            if self.steps % window == 0:
                self.converged = self.lowest > self._before - self.schedule.tolerance
                self._before = self.lowest
            if self.converged or self.steps >= last or time.perf_counter() >= deadline:
                raise StopIteration

        while not (self.converged or self.stuck or self.steps >= last):
            begun = self.lowest
            try:
                minimize(
                    self._loss,
                    self._kept,
                    jac=True,
                    method="L-BFGS-B",
                    callback=after_step,
                    options={"maxiter": 10**6, "maxfun": 10**7, "maxcor": 30, "ftol": 0, "gtol": 0},
                )
            except (*NUMERICAL, FloatingPointError) as error:
                self.setbacks += 1
                self.stuck = str(error) if self.setbacks > MOST_SETBACKS else ""
                continue
            if time.perf_counter() >= deadline:
                break
            # No step from here lowers the loss: a fresh start must confirm it.
            self.converged |= self.lowest > begun - self.schedule.tolerance

    def restore(self) -> None:
        """Go to the lowest point."""
        self._move(self._kept)

    def _loss(self, place: Array) -> tuple[float, Array]:
        self._move(place)
        for parameter in self._parameters:
            parameter.grad = None
        loss = self.candidate.loss()
        loss.backward()
        value = loss.item()
        slopes = [p.grad if p.grad is not None else torch.zeros_like(p) for p in self._parameters]
        gradient = _flat(slopes)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            raise FloatingPointError("the loss or its gradient is not finite")
        if value < self.lowest:
            self.lowest, self._kept = value, place.copy()
        return value, gradient

    def _move(self, place: Array) -> None:
        sizes = np.cumsum([parameter.numel() for parameter in self._parameters])[:-1]
        with torch.no_grad():
            for parameter, part in zip(self._parameters, np.split(place, sizes), strict=True):
                parameter.copy_(double(part).view_as(parameter))


def _flat(tensors: Sequence[torch.Tensor]) -> Array:
    """All numbers of some tensors in one array."""
    return np.concatenate([tensor.detach().double().numpy().ravel() for tensor in tensors])
