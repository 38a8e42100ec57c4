"""Empirical Bayes: noise and prior variances from the moments alone; rows are not read again."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rwf._types import Array, IntArray
from rwf.inference.evidence import variance_gradient
from rwf.inference.moments import Statistics
from rwf.inference.optimize import names_at_bounds
from rwf.inference.posterior import Posterior
from rwf.linalg.threads import one_blas_thread

LOG_NOISE_BOUNDS = (float(np.log(1e-12)), 3.0)  # from exact data to noise that hides any signal
LOG_PRIOR_BOUNDS = (-18.0, 18.0)  # beyond, a group is absent, or its prior is as good as flat
MANY_COLUMNS = 1000  # from so many columns on, more threads make a Cholesky factor faster
FINE, ROUGH = 1e-6, 5e-4  # gain of the evidence per row at which Newton stops; many columns: rough
MANY_GROUPS = 12  # from so many prior variances on, the fixed point takes over
SHRINKAGE = 0.1  # κ, weights that a block counts for: more would hide single bursts of a signal


STEEP = 0.1
"""While the slope of the evidence per row by log σ² is steeper, MacKay's fixed point moves the
noise alone: Newton's method would take one step for every factor of e."""

LONGEST = 3.0  # change of a logarithm in one step, at most
SHORTENED = 0.25  # share of a step that may be taken next where the evidence fell
LEAST_CURVATURE = 1e-9  # relative to the largest: in flatter directions steps would be arbitrary


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
    max_iter: int = 20,
) -> EmpiricalBayes:
    """Maximise the evidence of one output over σ² and the tied prior variances.

    A few variances are found by ``max_iter`` steps of Newton's method, many by a fixed point.
    ``groups`` has the group of every column, and ``parents`` the block of every group, if these are
    its parts.
    """
    if learn_priors and parents is not None and len(parents) >= MANY_GROUPS:
        return mackay_fixed_point(statistics, output, groups, parents, start)
    with blas_threads_for(groups):
        return _by_newton(statistics, output, groups, start, learn_priors, max_iter)


def blas_threads_for(groups: IntArray) -> AbstractContextManager[object]:
    """One thread for few columns, and all for many."""
    return nullcontext() if len(groups) >= MANY_COLUMNS else one_blas_thread()


def _by_newton(
    statistics: Statistics,
    output: int,
    groups: IntArray,
    start: Variances,
    learn_priors: bool,
    max_iter: int,
) -> EmpiricalBayes:
    n_groups = len(start.log_priors)
    n_learned = 1 + n_groups * learn_priors
    bounds = np.array([LOG_NOISE_BOUNDS] + [LOG_PRIOR_BOUNDS] * n_groups)
    enough = (FINE if len(groups) < MANY_COLUMNS else ROUGH) * statistics.n
    evaluations = 0

    def posterior_at(v: Array) -> Posterior:
        nonlocal evaluations
        evaluations += 1
        prior_variances = np.exp(v[1:])[groups]
        return statistics.posterior(output, prior_variances, float(np.exp(v[0])))

    v = np.clip(np.append(start.log_noise, start.log_priors), *bounds.T)
    posterior, radius = posterior_at(v), LONGEST
    local = _Quadratic.of(posterior, groups, n_groups, n_learned)
    for _ in range(max_iter):
        step, gain = local.step(v[:n_learned], bounds[:n_learned], radius)
        if gain < enough:
            break
        moved = v.copy()
        moved[:n_learned] = np.clip(v[:n_learned] + step, *bounds[:n_learned].T)
        found = posterior_at(moved)
        if found.log_evidence > posterior.log_evidence:
            v, posterior, radius = moved, found, min(2.0 * radius, LONGEST)
            local = _Quadratic.of(posterior, groups, n_groups, n_learned)
        else:
            radius = SHORTENED * float(np.abs(step).max())
    names = ["noise variance", *(f"prior variance of block {g}" for g in range(n_learned - 1))]
    at_bounds = names_at_bounds(v[:n_learned], bounds[:n_learned], names)
    return EmpiricalBayes(Variances(v[1:], float(v[0])), posterior, evaluations, at_bounds)


@dataclass(frozen=True)
class _Quadratic:
    """The evidence near a posterior, by log σ² and maybe the log prior variances."""

    slope: Array
    information: Array
    fixed_point: float | None  # the step of log σ² towards the noise of MacKay, where it is steep

    @classmethod
    def of(
        cls, posterior: Posterior, groups: IntArray, n_groups: int, n_learned: int
    ) -> _Quadratic:
        gradient = variance_gradient(posterior, groups, n_groups)
        slope = np.append(gradient.log_noise, gradient.log_priors)[:n_learned]
        if abs(slope[0]) > STEEP * posterior.n:
            fitted = max(posterior.rss / posterior.noise_variance, 1e-300)
            left = max(fitted - 2 * slope[0], 1.0)  # n - γ
            return cls(slope, np.zeros((n_learned, n_learned)), float(np.log(fitted / left)))
        information = average_information(posterior, groups, n_groups)
        return cls(slope, information[:n_learned, :n_learned], None)

    def step(self, v: Array, bounds: Array, radius: float) -> tuple[Array, float]:
        """A step uphill of at most ``radius`` in each entry of v, and what it should gain.

        Newton's, with the moduli of the eigenvalues, which grow until the step is short enough.
        """
        step = np.zeros(len(v))
        if self.fixed_point is not None:
            step[0] = np.clip(self.fixed_point, -radius, radius)
            return step, 0.5 * float(self.slope @ step)
        pushed_out = np.where(self.slope > 0, v >= bounds[:, 1], v <= bounds[:, 0])
        free = np.flatnonzero(~pushed_out)
        values, vectors = np.linalg.eigh(self.information[np.ix_(free, free)])
        along, curvature = vectors.T @ self.slope[free], np.abs(values)
        damping = 0.0
        floor = LEAST_CURVATURE * curvature.max(initial=0.0) + 1e-300
        while True:
            step[free] = vectors @ (along / np.maximum(curvature + damping, floor))
            longest = float(np.abs(step).max(initial=0.0))
            if longest <= radius:
                return step, 0.5 * float(self.slope @ step)
            damping = max(2.0 * damping, floor, 0.1 * float(np.abs(along).max()) / radius)


def average_information(posterior: Posterior, groups: IntArray, n_groups: int) -> Array:
    r"""Minus the second derivatives of the evidence by log σ² and all log λ_g, on average.

    The mean of the observed and the expected information has no traces (Gilmour, Thompson and
    Cullis 1995): with K the covariance of y, it is ½qᵢᵀK⁻¹qⱼ for q_g = Z_g m_g and q_0 = r. For
    B = ZΛ^½ and the parts μ_g of the whitened mean μ, BᵀK⁻¹B = I - M⁻¹ and Bᵀr = σ²μ, so that

    .. math:: q_g^\top K^{-1} q_h = \mu_g^\top (I - M^{-1}) \mu_h, \quad
        q_0^\top K^{-1} q_g = \mu^\top M^{-1} \mu_g, \quad
        q_0^\top K^{-1} q_0 = \|r\|^2/\sigma^2 - \mu^\top M^{-1} \mu.
    """
    mu = posterior.whitened_mean
    parts = np.column_stack([-mu, *(mu * (groups == g) for g in range(n_groups))])
    squares = np.bincount(groups, mu**2, n_groups)
    diagonal = np.append(posterior.rss / posterior.noise_variance, squares)
    information: Array = 0.5 * (np.diag(diagonal) - parts.T @ posterior.factor.solve(parts))
    return information


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
