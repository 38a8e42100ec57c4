r"""One chain of spike and slab on a fixed dictionary, from effective moments alone.

.. math::
    w_j \sim (1 - \pi_g)\,\delta_0 + \pi_g\, N(0, \tau_g), \quad
    \pi_g \sim \text{Beta}(\tfrac12, \tfrac12 + c D_g), \quad
    \tau_g \sim \text{InvGamma}(1, v), \quad \sigma^2 \sim \text{InvGamma}(1, u)

for an atom j of block g, which has D_g of them. Which atoms are active is sampled with their
weights integrated out, by the moves of :mod:`rwf.inference.spike_slab._moves`; then weights are
drawn, and σ², τ and π given the weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array, IntArray
from rwf.inference.spike_slab.reduction import EffectiveMoments
from rwf.linalg.dense import EPSILON, cholesky_inverse, factor_matrix, whiten_rows

if TYPE_CHECKING:
    from rwf.inference.spike_slab._moves import Terms

CAPACITY = 1000  # most active atoms: a sweep costs their number cubed
RELOCATIONS = 30  # most relocations of a sweep: they cost as much as births

SCARCITY = 0.2
"""c: atoms that neither gain nor cost anything become active now and then. With c = 0 their number
in a block would drift to anything up to D_g, because the odds grow with it."""

SMALLEST = 1e-290  # prior odds are no smaller, so that they have a logarithm and an inverse


@dataclass(frozen=True)
class VariancePrior:
    """Scales of the inverse-gamma priors, of shape one: v of slab variances, u of the noise."""

    slab: float
    noise: float


@dataclass(frozen=True)
class Levels:
    """Hyperparameters of one draw."""

    noise_variance: float  # σ²
    slabs: Array  # τ of every block, shape (g,)
    odds: Array  # π/(1 - π) of every block, shape (g,)


class Sampler:
    """The state of a chain on one dictionary, with the blocks and moments of its atoms."""

    def __init__(
        self,
        moments: EffectiveMoments,
        blocks: IntArray,
        prior: VariancePrior,
        levels: Levels,
        active: IntArray,
        rng: np.random.Generator,
    ) -> None:
        from rwf.inference.spike_slab._moves import State, fill_row

        m = len(moments.b)
        capacity = min(m, CAPACITY)
        self.moments, self.blocks, self.prior, self.rng = moments, blocks, prior, rng
        self.state = State(
            size=np.array([len(active)]),
            active=np.zeros(capacity, dtype=np.intp),
            rows=np.empty((capacity, m)),
            place=np.full(m, -1),
            Sigma=np.zeros((capacity, capacity)),
            mean=np.zeros(capacity),
            S=np.zeros(m),
            Q=np.zeros(m),
        )
        self.state.active[: len(active)] = active
        self.state.place[active] = np.arange(len(active))
        self.diagonal = moments.diagonal
        self.terms = self._terms(levels)
        for a, j in enumerate(active):
            fill_row(self.terms, j, self.state.rows[a])
        self.set_levels(levels)

    @property
    def active(self) -> IntArray:
        """Indices of the active atoms."""
        return self.state.active[: self.state.size[0]]

    def set_levels(self, levels: Levels) -> None:
        """Go on with other hyperparameters."""
        self.levels, self.terms = levels, self._terms(levels)
        self.rebuild()

    def _terms(self, levels: Levels) -> Terms:
        from rwf.inference.spike_slab._moves import Terms

        return Terms(
            columns=self.moments.columns.runs,
            H=self.moments.H,
            noise_precision=1.0 / levels.noise_variance,
            precisions=1.0 / levels.slabs[self.blocks],
            odds=levels.odds[self.blocks],
        )

    @property
    def active_gram(self) -> Array:
        """G_AA."""
        gram: Array = self.state.rows[: len(self.active)][:, self.active]
        return gram

    def _factor(self) -> Array:
        """L of Σ⁻¹ = βG_AA + diag α = LLᵀ."""
        A = self.active
        M = self.terms.noise_precision * self.active_gram
        M[np.diag_indices_from(M)] += self.terms.precisions[A]
        return factor_matrix(M).L

    def rebuild(self) -> None:
        """Σ, m, S and Q from the active set, free of the rounding that updates gather."""
        A, k, beta, state = self.active, len(self.active), self.terms.noise_precision, self.state
        L = self._factor()
        rows = state.rows[:k]
        state.Sigma[:k, :k] = cholesky_inverse(L)
        state.mean[:k] = beta * (state.Sigma[:k, :k] @ self.moments.b[A])
        V = np.array(rows.T, order="C")
        whiten_rows(L, V)
        state.S[:] = beta * (self.diagonal - beta * np.einsum("mk,mk->m", V, V))
        state.Q[:] = beta * (self.moments.b - state.mean[:k] @ rows)

    def grow(self) -> None:
        """Births, the more likely ones first, while any gains."""
        from rwf.inference.spike_slab._moves import grow

        grow(self.state, self.terms, self.rng)
        self.rebuild()

    def sweep(self, duration: float) -> int:
        """Births and deaths for a time, the number of which is returned, relocations, levels."""
        from rwf.inference.spike_slab._moves import birth_death, relocate

        events: int = birth_death(self.state, self.terms, duration, self.rng)
        relocate(self.state, self.terms, min(len(self.active), RELOCATIONS), self.rng)
        self.set_levels(self.draw_levels())
        return events

    def draw_weights(self) -> Array:
        """w of the active atoms, from N(m, Σ)."""
        L, beta = self._factor(), self.terms.noise_precision
        half = solve_triangular(L, beta * self.moments.b[self.active], lower=True)
        half += self.rng.normal(size=len(half))
        w: Array = solve_triangular(L, half, lower=True, trans="T")
        return w

    def draw_levels(self) -> Levels:
        """σ², τ and π from their conditionals, given drawn weights."""
        A, w, n_blocks = self.active, self.draw_weights(), len(self.levels.slabs)
        moments, prior, gamma = self.moments, self.prior, self.rng.standard_gamma
        fit = float(w @ self.active_gram @ w) - 2 * float(w @ moments.b[A])
        # Where cancellation leaves nothing, the rounding error.
        rss = max(moments.yty + fit, EPSILON * moments.yty)
        noise_variance = (prior.noise + 0.5 * rss) / gamma(1.0 + 0.5 * moments.n)
        active = np.bincount(self.blocks[A], minlength=n_blocks)
        inactive = np.bincount(self.blocks, minlength=n_blocks) - active
        squares = np.bincount(self.blocks[A], w**2, minlength=n_blocks)
        slabs = (prior.slab + 0.5 * squares) / gamma(1.0 + 0.5 * active)
        odds = gamma(0.5 + active) / gamma(0.5 + inactive + SCARCITY * (active + inactive))
        return Levels(float(noise_variance), slabs, np.maximum(odds, SMALLEST))
