r"""The posterior over functions: a mixture of Gaussians, one for every kept draw of the sampler.

A draw says which atoms are active and how large the variances are; the weights then have the
Gaussian posterior of Bayesian linear regression, from moments over the columns of all draws. So
predictions average exact conditional means and variances (Rao and Blackwell), not drawn weights,
and further rows are a sum of moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
from scipy.special import logsumexp, softmax

from rwf._types import Array, IntArray
from rwf.inference.moments import Moments
from rwf.inference.posterior import LeftOut, Marginals, Posterior


@dataclass(frozen=True)
class Draw:
    """A state of the sampler."""

    atoms: Annotated[IntArray, "a"]  # columns of the active atoms among all draws', shape (k,)
    variances: Annotated[Array, "a"]  # their slab variances, shape (k,)
    noise_variance: float  # σ²
    ratios: Annotated[Array, "p"]  # prior variances of the dense columns over σ², shape (p,)


@dataclass(frozen=True)
class Mixture:
    """p(f | y) for one output."""

    draws: tuple[Draw, ...]  # equally likely states
    moments: Moments  # over the atoms of all draws, followed by the dense columns
    output: int = 0  # the column of y

    def columns(self, draw: Draw) -> IntArray:
        """The columns that a draw uses: its atoms, and the dense ones, which come last."""
        p, u = len(draw.ratios), len(self.moments.ZtZ)
        return np.append(draw.atoms, np.arange(u - p, u))

    @cached_property
    def components(self) -> tuple[Posterior, ...]:
        """The Gaussian posterior of every draw."""
        return tuple(self._component(draw) for draw in self.draws)

    def _component(self, draw: Draw) -> Posterior:
        used, m = self.columns(draw), self.moments
        part = Moments(m.ZtZ[np.ix_(used, used)], m.Zty[used], m.yty, m.n)
        variances = np.append(draw.variances, draw.noise_variance * draw.ratios)
        return part.posterior(self.output, variances, draw.noise_variance)

    @property
    def noise_variance(self) -> float:
        """The posterior mean of σ²."""
        return float(np.mean([draw.noise_variance for draw in self.draws]))

    @property
    def prior_variances(self) -> Array:
        """The prior variance of every column, in the mean over draws, shape (u,)."""
        return self._average(lambda component: component.prior_variances)

    @cached_property
    def mean(self) -> Array:
        """The mean weight of every column, shape (u,)."""
        return self._average(lambda component: component.mean)

    def _average(self, values: Callable[[Posterior], Array]) -> Array:
        total = np.zeros(len(self.moments.ZtZ))
        for columns, component in self._parts():
            total[columns] += values(component) / len(self.draws)
        return total

    def predict(self, Z: Array) -> Marginals:
        """Mean and variance of y: the mean of the draws' variances plus the variance of means."""
        return _mixed([p.predict(Z[:, c]) for c, p in self._parts()])

    def covariance(self, Z: Array) -> Array:
        """Covariance of f at the rows of Z, without noise, shape (n, n)."""
        means = np.stack([Z[:, c] @ p.mean for c, p in self._parts()])
        C: Array = np.mean([p.covariance_of(Z[:, c]) for c, p in self._parts()], axis=0)
        return C + np.cov(means, rowvar=False, bias=True).reshape(C.shape)

    def leave_one_out(self, Z: Array, y: Array, weights: Array) -> Marginals:
        """Leave-one-out predictions: a draw's share at row i is ∝ 1/p(y_i | other rows, draw)."""
        left = [p.leave_one_out(Z[:, c], y, weights) for c, p in self._parts()]
        noise = np.array([draw.noise_variance for draw in self.draws])[:, None]
        means, variances = (np.stack([getattr(q, name) for q in left]) for name in _FIELDS)
        # A row of weight v is v equal rows, left out together.
        spread = variances - noise + noise / weights
        log_density = -0.5 * (
            (y - means) ** 2 / spread + np.log(spread) + (weights - 1.0) * np.log(noise)
        )
        shares = np.exp(log_density.min(axis=0) - log_density)
        return _mixed(left, shares / shares.sum(axis=0))

    def leave_group_out(self, Z: Array, y: Array, weights: Array) -> LeftOut:
        """All rows of a group as if unseen: a draw's share is ∝ 1/p(y | other rows, draw)."""
        left = [p.leave_group_out(Z[:, c], y, weights) for c, p in self._parts()]
        surprise = -np.array([part.log_density for part in left])
        shares = softmax(surprise)
        both = _mixed([part.y for part in left], np.tile(shares[:, None], len(y)))
        return LeftOut(both, np.log(len(left)) - float(logsumexp(surprise)))

    def sample_weights(self, count: int, rng: np.random.Generator) -> Array:
        """Draws of w, shape (u, count): a draw of the sampler, then its Gaussian."""
        W = np.zeros((len(self.moments.ZtZ), count))
        chosen = rng.integers(len(self.draws), size=count)
        for index, (columns, component) in enumerate(self._parts()):
            mine = np.flatnonzero(chosen == index)
            W[np.ix_(columns, mine)] = component.sample_weights(len(mine), rng)
        return W

    def _parts(self) -> list[tuple[IntArray, Posterior]]:
        return [(self.columns(d), p) for d, p in zip(self.draws, self.components, strict=True)]


_FIELDS = ("mean", "variance")


def _mixed(parts: list[Marginals], shares: Array | None = None) -> Marginals:
    """Mean and variance of a mixture; shares have shape (draws, n), or are equal."""
    means, variances = (np.stack([getattr(part, name) for part in parts]) for name in _FIELDS)
    weights = np.full(means.shape, 1.0 / len(parts)) if shares is None else shares
    mean = np.einsum("sn,sn->n", weights, means)
    within = np.einsum("sn,sn->n", weights, variances)
    return Marginals(mean, within + np.einsum("sn,sn->n", weights, (means - mean) ** 2))
