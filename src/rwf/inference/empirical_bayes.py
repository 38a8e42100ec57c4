"""Empirical Bayes: noise and prior variances from the moments alone; rows are not read again."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rwf._types import Array, IntArray
from rwf.inference.evidence import variance_gradient
from rwf.inference.moments import Statistics
from rwf.inference.optimize import maximize, names_at_bounds
from rwf.inference.posterior import Posterior
from rwf.linalg.threads import one_blas_thread

LOG_NOISE_BOUNDS = (float(np.log(1e-12)), 3.0)  # from exact data to noise that hides any signal
LOG_PRIOR_BOUNDS = (-18.0, 18.0)  # beyond, a group is absent, or its prior is as good as flat
MANY_COLUMNS = 1000  # from so many columns on, more threads make a Cholesky factor faster
FINE, ROUGH = 1e-6, 1e-5  # relative gain of the evidence at which L-BFGS stops; many columns: rough
MANY_GROUPS = 12  # from so many prior variances on, the fixed point takes over from L-BFGS
SHRINKAGE = 1.0  # κ, weights that a block counts for: one atom alone cannot leave its octave

STEEP, FIRST_STEPS = 0.1, 3
"""While the slope of the evidence per row by log σ² is steeper, the first step of L-BFGS would
overshoot: MacKay's fixed point moves the noise first, so often at most."""


@dataclass(frozen=True)
class Variances:
    """Logarithms of the prior variance of each group of columns, and of the noise variance."""

    log_priors: Annotated[Array, "g"]
    log_noise: float

    def prior_variances(self, groups: IntArray) -> Array:
        """The diagonal of Λ, shape (p,)."""
        return np.exp(self.log_priors)[groups]

    @property
    def noise_variance(self) -> float:
        return float(np.exp(self.log_noise))


@dataclass(frozen=True)
class EmpiricalBayes:
    """The variances of highest evidence, the posterior they give, and how they were found."""

    variances: Variances
    posterior: Posterior
    evaluations: int
    at_bounds: tuple[str, ...]


def empirical_bayes(
    statistics: Statistics,
    output: int,
    groups: IntArray,
    start: Variances,
    *,
    parents: IntArray | None = None,
    learn_priors: bool = True,
    max_iter: int = 12,
) -> EmpiricalBayes:
    """Maximise the evidence of one output over σ² and the tied prior variances.

    A few variances are found by ``max_iter`` steps of L-BFGS, many by a fixed point. ``groups`` has
    the group of every column, and ``parents`` the block of every group, if these are its parts.
    """
    if learn_priors and parents is not None and len(parents) >= MANY_GROUPS:
        return mackay_fixed_point(statistics, output, groups, parents, start)
    with blas_threads_for(groups):
        return _by_lbfgs(statistics, output, groups, start, learn_priors, max_iter)


def blas_threads_for(groups: IntArray) -> AbstractContextManager[object]:
    """One thread for few columns, and all for many."""
    return nullcontext() if len(groups) >= MANY_COLUMNS else one_blas_thread()


def _by_lbfgs(
    statistics: Statistics,
    output: int,
    groups: IntArray,
    start: Variances,
    learn_priors: bool,
    max_iter: int,
) -> EmpiricalBayes:
    n_groups = len(start.log_priors)
    last: dict[bytes, Posterior] = {}  # one at most, which has the factor that predictions need

    def unpack(v: Array) -> Variances:
        return Variances(v[1:] if learn_priors else start.log_priors, float(v[0]))

    def posterior_at(v: Array) -> Posterior:
        if v.tobytes() not in last:
            last.clear()
            variances = unpack(v)
            last[v.tobytes()] = statistics.posterior(
                output, variances.prior_variances(groups), variances.noise_variance
            )
        return last[v.tobytes()]

    def objective(v: Array) -> tuple[float, Array]:
        posterior = posterior_at(v)
        gradient = variance_gradient(posterior, groups, n_groups)
        slope = np.append(gradient.log_noise, gradient.log_priors if learn_priors else [])
        return posterior.log_evidence / statistics.n, slope / statistics.n

    v = np.append(start.log_noise, start.log_priors if learn_priors else [])
    for _ in range(FIRST_STEPS):
        slope = float(objective(v)[1][0])
        if abs(slope) <= STEEP:
            break
        v = np.append(_fixed_point(posterior_at(v), slope * statistics.n), v[1:])
    bounds = np.array([LOG_NOISE_BOUNDS] + [LOG_PRIOR_BOUNDS] * (len(v) - 1))
    ftol = FINE if len(groups) < MANY_COLUMNS else ROUGH
    top = maximize(objective, v, bounds, max_iter=max_iter, ftol=ftol, gtol=1e-6, corrections=10)
    posterior = posterior_at(top.x)
    names = ["noise variance"] + [f"prior variance of block {g}" for g in range(len(v) - 1)]
    return EmpiricalBayes(
        unpack(top.x), posterior, top.evaluations, names_at_bounds(top.x, bounds, names)
    )


def mackay_fixed_point(
    statistics: Statistics,
    output: int,
    groups: IntArray,
    parents: IntArray,
    start: Variances,
    *,
    max_iter: int = 40,
    tol: float = 2e-2,
) -> EmpiricalBayes:
    r"""Prior variances of many groups by MacKay's fixed point: no step size, no line search.

    .. math:: \lambda_g = \frac{\sum_g m_j^2 + \kappa\lambda_b}{\sum_g \gamma_j + \kappa}, \qquad
        \gamma_j = 1 - S_{jj}/\lambda_j, \qquad \sigma^2 = \frac{\|r\|^2}{n - \sum\gamma_j}

    with the mean :math:`\lambda_b` of the group's block as a weak prior, κ = :data:`SHRINKAGE`, so
    that a group without rows has the variance of its block.
    """
    low, high = np.exp(LOG_PRIOR_BOUNDS)
    priors, noise = np.exp(start.log_priors), start.noise_variance
    evaluations = 0
    with blas_threads_for(groups):
        for _ in range(max_iter):
            posterior = statistics.posterior(output, priors[groups], noise)
            evaluations += 1
            determined = np.clip(1.0 - posterior.factor.inverse_diagonal(), 0.0, 1.0)
            energy = np.bincount(groups, posterior.mean**2, len(parents))
            weight = np.bincount(groups, determined, len(parents))
            block = np.bincount(parents, energy) / np.maximum(np.bincount(parents, weight), 1e-12)
            before = priors
            priors = (energy + SHRINKAGE * block[parents]) / (weight + SHRINKAGE)
            priors = np.clip(priors, low, high)
            free = max(statistics.n - float(determined.sum()), 1.0)
            floor = max(statistics.resolvable_noise(priors[groups]), np.exp(LOG_NOISE_BOUNDS[0]))
            noise = float(np.clip(posterior.rss / free, floor, np.exp(LOG_NOISE_BOUNDS[1])))
            if np.average(np.abs(np.log(priors / before)), weights=weight + 1e-12) < tol:
                break
        posterior = statistics.posterior(output, priors[groups], noise)
    variances = Variances(np.log(priors), float(np.log(noise)))
    bounds = np.array([LOG_NOISE_BOUNDS])
    at_bounds = names_at_bounds(np.array([np.log(noise)]), bounds, ["noise variance"])
    return EmpiricalBayes(variances, posterior, evaluations, at_bounds)


def _fixed_point(posterior: Posterior, slope: float) -> float:
    """log σ² by MacKay's fixed point σ² = ‖r‖²/(n - γ), from the evidence's slope by log σ²."""
    free = posterior.rss / posterior.noise_variance - 2 * slope  # n - γ
    log_noise = np.log(max(posterior.rss, 1e-300) / max(free, 1.0))
    return float(np.clip(log_noise, *LOG_NOISE_BOUNDS))
