r"""Adaptive prior: importance resampling of p(s, t), so that atoms move to where the signal is.

Each round learns a prior variance per octave from the moments, drops the third of the atoms that
explain least, :math:`m_j^2\|z_j\|^2/\sigma^2`, and draws new ones among many candidates, half of
them fresh and half near strong atoms, in proportion to what they would explain of the residual,
:math:`(z_c^\top r)^2/(\|z_c\|^2\sigma^2) - 2`. Held-out rows choose the best round: with atoms
chosen by the data the evidence is biased upwards.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.holdout import hold_out
from rwf.data.rows import Block
from rwf.features.base import FeatureMap, Stack
from rwf.features.local import LocalAtoms
from rwf.features.wavelet import unit_directions
from rwf.inference.empirical_bayes import EmpiricalBayes, Variances
from rwf.inference.optimize import Progress, Trial
from rwf.models.base import LOW_DIMENSION
from rwf.models.dense import Hyperparameters
from rwf.priors.base import FitConfig, LearnedFeatures, LearningTask, Prior
from rwf.priors.random_features import START_NOISE
from rwf.priors.tied_variances import held_out_log_density, moments_of, tied_variances
from rwf.wavelets import Haar, Wavelet, as_wavelet

SAMPLE_ROWS = 20_000  # rows by which atoms are placed
LEAST_COMPONENTS, MOST_COMPONENTS = 50, 500  # bounds of the default, a quarter of the rows

ROUNDS = 12
POOL = 20  # candidates per atom
MOST_CANDIDATES = 6000  # candidates of a round, at most
REPLACED = 1 / 3  # share of the atoms that a round replaces
CHANCE = 2.0  # what a candidate catches of pure noise, about
SPACINGS, HAAR_SPACINGS = 2.5, 16.0  # finest scale, in row spacings; small Haar atoms fit noise
PAD = 0.1  # atoms begin this share of the span beyond the data


@dataclass(frozen=True)
class Adaptive(Prior):
    """Few atoms of one wavelet, resampled in rounds to where the signal is.

    Args:
        wavelet: the mother wavelet, by name or as an object.
    """

    wavelet: str | Wavelet = "mexican_hat"
    name: ClassVar[str] = "adaptive"
    most_inputs: ClassVar[int] = LOW_DIMENSION
    sample_rows: ClassVar[int] = SAMPLE_ROWS

    def for_rows(self, n: int, d: int, config: FitConfig) -> Prior:
        as_wavelet(self.wavelet)
        return super().for_rows(n, d, config)

    def n_components(self, n: int) -> int:
        return int(np.clip(n // 4, LEAST_COMPONENTS, MOST_COMPONENTS))

    def learn(self, task: LearningTask) -> LearnedFeatures:
        known, wavelet = task.known, as_wavelet(self.wavelet)
        parameters, trials = learn_atoms(
            wavelet, task.draw_trend(), known, task.n_components, task.rng, task.progress
        )
        n_learned = len(parameters.log_priors) + known.y.shape[1]
        return LearnedFeatures(
            trials=tuple(trials), n_learned=n_learned, hyperparameters=parameters
        )


@dataclass(frozen=True)
class _Round:
    stack: Stack
    fits: tuple[EmpiricalBayes, ...]
    report: Trial


@dataclass(frozen=True)
class _Source:
    """Where candidates come from: log-uniform scales, places in the box, any direction."""

    wavelet: Wavelet
    low: Array
    high: Array
    finest: float
    coarsest: float

    @classmethod
    def around(cls, wavelet: Wavelet, X: Array) -> _Source:
        n, d = X.shape
        low, high = X.min(axis=0), X.max(axis=0)
        span = float((high - low).max()) or 1.0
        spacings = HAAR_SPACINGS if isinstance(wavelet, Haar) else SPACINGS
        finest = min(spacings * span * n ** (-1.0 / d), 0.5 * span)
        margin = PAD * (high - low)
        return cls(wavelet, low - margin, high + margin, finest, 2.0 * span)

    def fresh(self, m: int, rng: np.random.Generator) -> LocalAtoms:
        d = len(self.low)
        scales = np.exp(rng.uniform(np.log(self.finest), np.log(self.coarsest), size=m))
        shifts = rng.uniform(self.low, self.high, size=(m, d))
        return LocalAtoms(self.wavelet, scales, shifts, unit_directions(m, d, rng))

    def near(self, atoms: LocalAtoms, rng: np.random.Generator) -> LocalAtoms:
        """The same atoms, moved by half a scale, stretched and turned a little."""
        m, d = atoms.shifts.shape
        scales = np.clip(
            atoms.scales * np.exp(0.5 * rng.normal(size=m)), self.finest, self.coarsest
        )
        shifts = atoms.shifts + 0.5 * atoms.scales[:, None] * rng.normal(size=(m, d))
        directions = atoms.directions + 0.3 * rng.normal(size=(m, d)) * (d > 1)
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        return LocalAtoms(self.wavelet, scales, shifts, directions)


def learn_atoms(
    wavelet: Wavelet,
    trend: Sequence[FeatureMap],
    rows: Block,
    n_features: int,
    rng: np.random.Generator,
    progress: Progress,
) -> tuple[Hyperparameters, list[Trial]]:
    """About ``n_features`` atoms placed by the data, and their variances."""
    kept, test = hold_out(rows, rng)
    source = _Source.around(wavelet, kept.X)
    m = max(1, n_features // wavelet.columns)
    atoms = source.fresh(m, rng)
    tried: list[_Round] = []
    for index in range(ROUNDS + 1):
        found = _round(index, by_octave(atoms, trend), kept, test, tried)
        tried.append(found)
        progress(found.report.line)
        renewed = _renewed(source, joined_atoms(found.stack), found, kept, rng)
        if renewed is None:
            break
        atoms = renewed
    best = max(tried, key=lambda r: -np.inf if r.report.held_out is None else r.report.held_out)
    everything = moments_of(best.stack, rows)
    final = tied_variances(everything, best.stack, [t.variances for t in best.fits])
    chosen = Hyperparameters(
        best.stack,
        np.mean([t.variances.log_priors for t in final], axis=0),
        np.array([t.variances.log_noise for t in final]),
    )
    return chosen, [replace(r.report, chosen=r is best) for r in tried]


def by_octave(atoms: LocalAtoms, trend: Sequence[FeatureMap]) -> Stack:
    """Atoms in blocks of one octave each, and the trend."""
    octave = np.floor(np.log2(atoms.scales)).astype(np.intp)
    parts = [atoms.take(np.flatnonzero(octave == o)) for o in np.unique(octave)]
    return Stack((*parts, *trend))


def joined_atoms(stack: Stack) -> LocalAtoms:
    """The atoms of all octaves, in the order of their columns."""
    parts = [part for part in stack.maps if isinstance(part, LocalAtoms)]
    first, *others = parts
    for part in others:
        first = first.joined(part)
    return first


def _round(index: int, stack: Stack, kept: Block, test: Block, past: Sequence[_Round]) -> _Round:
    begun = time.perf_counter()
    moments = moments_of(stack, kept)
    k = kept.y.shape[1]
    noises = [t.variances.log_noise for t in past[-1].fits] if past else [np.log(START_NOISE)] * k
    starts = [Variances(np.zeros(len(stack.maps)), float(noise)) for noise in noises]
    fits = tied_variances(moments, stack, starts)
    report = Trial(
        log_evidence_per_row=sum(t.posterior.log_evidence for t in fits) / moments.n,
        iterations=sum(t.evaluations for t in fits),
        seconds=time.perf_counter() - begun,
        name=f"round {index}",
        held_out=held_out_log_density(fits, stack, test),
    )
    return _Round(stack, fits, report)


def _renewed(
    source: _Source, atoms: LocalAtoms, found: _Round, rows: Block, rng: np.random.Generator
) -> LocalAtoms | None:
    """The atoms with the weakest replaced; ``None`` if no candidate catches more than chance."""
    m, columns = len(atoms.scales), source.wavelet.columns
    Z = np.asarray(found.stack(rows.X), dtype=np.float64)
    strength, residuals = np.zeros(m), np.empty_like(rows.y)
    energies = np.einsum("np,np->p", Z, Z)
    owner = _atom_of_column(found.stack)
    for output, fits in enumerate(found.fits):
        mean, noise = fits.posterior.mean, fits.posterior.noise_variance
        strength += np.bincount(owner[owner >= 0], (mean**2 * energies / noise)[owner >= 0], m)
        residuals[:, output] = (rows.y[:, output] - Z @ mean) / np.sqrt(noise)
    count = min(POOL * m, MOST_CANDIDATES) // 2
    share = strength + 1e-12 * (1.0 + strength.max())
    copies = rng.choice(m, size=count, p=share / share.sum())
    pool = source.near(atoms.take(copies), rng).joined(source.fresh(count, rng))
    caught = np.maximum(_caught(pool, rows, residuals) - CHANCE * columns, 0.0)
    new = min(max(1, int(REPLACED * m)), int((caught > 0).sum()))
    if new == 0:
        return None
    chosen = rng.choice(len(caught), size=new, replace=False, p=caught / caught.sum())
    strongest = np.sort(np.argsort(strength)[new:])
    return atoms.take(strongest).joined(pool.take(chosen))


def _atom_of_column(stack: Stack) -> IntArray:
    """The number of the atom that every column belongs to; -1 for the trend."""
    owners, first = [], 0
    for part in stack.maps:
        if isinstance(part, LocalAtoms):
            m = len(part.scales)
            owners.append(np.tile(np.arange(first, first + m), part.wavelet.columns))
            first += m
        else:
            owners.append(np.full(part.n_features, -1))
    return np.concatenate(owners).astype(np.intp)


def _caught(pool: LocalAtoms, rows: Block, residuals: Array) -> Array:
    """χ² that every candidate would catch of the residuals, all outputs together, shape (m,)."""
    m = len(pool.scales)
    caught, size = np.empty(m), max(1, 2**22 // max(len(rows), 1))
    root = rows.root_precision
    for start in range(0, m, size):
        part = pool.take(np.arange(start, min(start + size, m)))
        Z = np.asarray(part(rows.X), dtype=np.float64) * root
        energy = np.einsum("np,np->p", Z, Z)
        score = np.sum((Z.T @ (residuals * root)) ** 2, axis=1)
        chi2 = np.where(energy > 1e-12, score / np.maximum(energy, 1e-12), 0.0)
        caught[start : start + size] = chi2.reshape(part.wavelet.columns, -1).sum(axis=0)
    return caught
