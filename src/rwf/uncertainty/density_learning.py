"""Learn the density of prediction errors: Fisher scoring for h, and evidence for all else.

Amplitudes, the length of f_X and ν are selected one after the other. Every candidate needs one
Cholesky factor, as Fisher's information about h is constant.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular

from rwf._types import Array
from rwf.uncertainty.error_density import (
    LEVEL,
    OF_INPUTS,
    OF_MEANS,
    OF_VARIANCES,
    TINY,
    Amplitudes,
    ErrorDensity,
    ScaleFeatures,
    Scored,
)
from rwf.uncertainty.student_t import t_log_density

DOFS = (4.0, 3.0, 6.0, 10.0)  # ν to choose from, the first one first
AMPLITUDES = (0.3, 0.7, 1.4)  # standard deviations a priori of each part of h, if it is there
LENGTHS = (0.4, 0.2, 0.8)  # of f_X, in root-mean-square distances of two rows, the usual one first
FINE_LENGTHS = (0.1, 0.03)  # too, in up to three input columns
FEW_INPUTS = 3  # up to which f_X may be fine: more inputs cannot be filled by its centers
LIGHTER = 6.0  # nats that lighter tails must gain: one large error, of which new rows have more
MOST_STEPS, TOLERANCE = 30, 1e-2  # of Fisher scoring; a hundredth of a nat does not select
WIDEST = 300.0  # |h| beyond which variances would overflow
MOST_ROWS = 3000  # from which a density is learned
USUAL = 0.99  # share of the rows whose variances, support and h count as usual


@dataclass(frozen=True)
class _Candidate:
    """h of highest posterior density for some amplitudes and ν."""

    features: ScaleFeatures
    dof: float
    weights: Array
    precision: Array
    h: Array
    evidence: float


class _Search:
    """Maximises the Laplace evidence over amplitudes, the length of f_X and ν, one by one."""

    def __init__(self, rows: Scored, rng: np.random.Generator, *, local: bool) -> None:
        self.rows, self.squares = rows, rows.squares
        # Rows have one error each, whatever they weigh.
        self.counts = rows.weights / float(rows.weights.mean())
        fine = FINE_LENGTHS if rows.X.shape[1] <= FEW_INPUTS else ()
        self.lengths = (*LENGTHS, *fine) if local else LENGTHS[:1]
        self.first = {length: ScaleFeatures.of(rows, length, rng) for length in self.lengths}
        self.columns: dict[tuple[int, float], Array] = {}
        self.length = self.lengths[0]
        self.best = self._fit(self.length, (LEVEL, 0.0, 0.0, 0.0), DOFS[0])
        for part in (OF_INPUTS, OF_MEANS, OF_VARIANCES) if local else ():
            lengths = self.lengths if part == OF_INPUTS else (self.length,)
            self._try(
                (length, self._with(part, a), self.best.dof)
                for a in AMPLITUDES
                for length in lengths
            )
        self._try((self.length, self.best.features.amplitudes, dof) for dof in DOFS[1:])

    def _with(self, part: int, amplitude: float) -> Amplitudes:
        b, g, m, x = (
            amplitude if i == part else a for i, a in enumerate(self.best.features.amplitudes)
        )
        return b, g, m, x

    def _try(self, choices: Iterable[tuple[float, Amplitudes, float]]) -> None:
        for length, amplitudes, dof in choices:
            found = self._fit(length, amplitudes, dof)
            least = LIGHTER if dof > self.best.dof else TOLERANCE
            if found.evidence > self.best.evidence + least:
                self.best, self.length = found, length

    def _fit(self, length: float, amplitudes: Amplitudes, dof: float) -> _Candidate:
        features, rows, parts = self.first[length], self.rows, []
        for part, a in enumerate(amplitudes):
            key = part, length if part == OF_INPUTS else 0.0
            if a > 0 and key not in self.columns:
                self.columns[key] = features.part(part, rows.X, rows.mean, rows.variance)
            if a > 0:
                parts.append(a * self.columns[key])
        features = replace(features, amplitudes=amplitudes)
        return _mode(features, np.hstack(parts), self.squares, self.counts, dof)


def _mode(
    features: ScaleFeatures, Z: Array, squares: Array, counts: Array, dof: float
) -> _Candidate:
    """β of highest posterior density by Fisher scoring, and its evidence.

    log p = Σ c_i (log t_ν(z_i e^{-h_i/2}) - h_i/2) - β²/2, of constant information ν/(2ν + 6).
    """
    information = dof / (2 * (dof + 3))
    P = information * (Z * counts[:, None]).T @ Z
    P[np.diag_indices_from(P)] += 1.0
    L = np.asarray(np.linalg.cholesky(P), dtype=np.float64)

    def density(h: Array, w: Array) -> float:
        h = np.clip(h, -WIDEST, WIDEST)
        terms = t_log_density(np.sqrt(squares * np.exp(-h)), dof) - 0.5 * h
        return float(counts @ terms) - 0.5 * float(w @ w)

    w, h = np.zeros(Z.shape[1]), np.zeros(len(Z))
    value = density(h, w)
    for _ in range(MOST_STEPS):
        ratio = squares * np.exp(-np.clip(h, -WIDEST, WIDEST))
        slope = 0.5 * counts * ((dof + 1) * ratio / (dof + ratio) - 1.0)
        gradient = slope @ Z - w
        step = solve_triangular(L, gradient, lower=True)
        step = solve_triangular(L, step, lower=True, trans="T")
        along, size = Z @ step, 1.0
        after = density(h + along, w + step)
        while after < value and size > 1e-3:
            size *= 0.5
            after = density(h + size * along, w + size * step)
        if after <= value:
            break
        w, h, gain, value = w + size * step, h + size * along, after - value, after
        if gain < TOLERANCE:
            break
    evidence = value - float(np.log(np.diag(L)).sum())
    return _Candidate(features, dof, w, L, h, evidence)


def learn_error_density(
    rows: Scored, rng: np.random.Generator, *, local: bool, growth: float = 1.0
) -> ErrorDensity:
    """The density of errors that suits scored rows; without ``local``, the same for all rows."""
    rows = rows.part(rows.weights > 0)
    if len(rows.y) > MOST_ROWS:
        rows = rows.part(np.sort(rng.permutation(len(rows.y))[:MOST_ROWS]))
    best = _Search(rows, rng, local=local).best
    most = float(np.quantile(rows.function_variance, USUAL))
    least = float(np.quantile(rows.support, 1.0 - USUAL))
    low, high = np.quantile(best.h, [1.0 - USUAL, USUAL])
    return ErrorDensity(
        features=best.features.compact,
        weights=best.weights,
        precision=best.precision,
        dof=best.dof,
        span=(float(low), float(high)),
        growth=growth,
        usual=(max(most, TINY), max(least, TINY)),
        least=float(np.quantile(rows.variance, 1.0 - USUAL)),
        evidence=best.evidence,
    )
