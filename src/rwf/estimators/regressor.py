"""The regressor that users meet: random wavelet features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self, get_args

import numpy as np

from rwf._types import Array
from rwf.data.scaling import Standardizer
from rwf.estimators.base import ErrorBars, FeatureRegressor, Trend, Variances
from rwf.estimators.random_state import RandomState
from rwf.features import Family, RidgeFamily, WaveletFamily
from rwf.features.lattice import DENSITY
from rwf.features.ridge import RidgeFeatures
from rwf.features.wavelet import Normalization, WaveletFeatures
from rwf.models.base import Model
from rwf.models.dense import DenseModel
from rwf.models.noise import Noise
from rwf.models.tree import TreeModel
from rwf.priors.auto import Auto
from rwf.priors.base import Neighbors, Prior
from rwf.priors.recipes import (
    ADAPTIVE_ROWS,
    Adaptive,
    MultifrontalMultiscale,
    Multiscale,
    Nystrom,
    SpikeSlab,
)
from rwf.wavelets import CompactHat, Wavelet, as_wavelet
from rwf.wavelets.measure import Box, Hull, Measure, Rows, ShiftSampler, as_shifts

Solver = Literal["auto", "dense", "multifrontal"]
PriorName = Literal["auto", "random_features", "nystrom", "multiscale", "adaptive", "spike_slab"]

MOST_DENSE = 8000
"""Columns beyond which a dense Gram matrix is given up for a tree, where that is possible."""

INDEPENDENT = {
    "wavelet": "mexican_hat",
    "scales": (0.5, 2.0),
    "shifts": "data",
    "normalization": "peak",
    "blocks": None,
    "variances": "block",
}
"""Parameters that only independent weights have, with their defaults."""


class RWFRegressor(FeatureRegressor):
    r"""Gaussian-process regression with random wavelet features.

    .. math:: f(x) = \sum_i w_i\, z_i(x) + \text{trend}, \qquad
        z_i(x) = D^{-1/2}\, \psi\!\left(\frac{x - t_i}{\ell s_i}\right)

    Training is Bayesian linear regression in closed form; shape, amplitudes and noise are learned
    by maximal evidence. Five priors over the weights are to be had:

    - *projected*: atoms sit at training rows, and the weights' covariance makes the model the
      Gaussian process of infinitely many Mexican hats, with learned roughness, projected on the
      atoms. With an atom at every row, the default for up to 3000 rows, it is that exact process.
    - *cells*: a frame of local atoms, octave after octave, with prior variances learned over scale
      and place. For up to three input columns.
    - *adaptive*: few atoms, resampled in rounds to where the signal is. For up to three columns.
    - *sparse*: most weights are zero. Steps, cusps, hats and Gabor atoms on one input column, over
      a smooth part; which of them there are is sampled. For edges and rare events.
    - *independent*: the paper's. Atoms of any wavelet are drawn from p(s, t), and their weights are
      independent.

    Args:
        n_components: feature columns. ``None`` takes, for projected weights, as many as rows up to
            3000 of them, and else 2500, or up to 5000 where these would miss more variance than the
            noise has, for up to 20 000 rows; for cells and for independent weights as many as rows,
            within 100 and 2000; for adaptive atoms a quarter of that; on a tree as many as rows of
            one column, up to 250 000, and half as many of two, up to 100 000. Sparse weights find
            their own number.
        prior: one of these five, or "auto": projected for four or more input columns, for fewer
            whichever of the first four predicts held-out rows best (sparse only for one column, one
            output, up to 20 000 rows, and where ``n_components`` and ``noise`` leave it free);
            independent if one of the parameters is given that only independent weights have, which
            are the next five, and ``variances``.
        solver: "dense", with one Gram matrix of all columns; "multifrontal", for up to three input
            columns, where the same posterior of a hundred thousand local atoms takes seconds; or "auto",
            the tree for more than 8000 columns, and for more than 20 000 rows of one or two input
            columns. For fewer rows of these, cells on a tree are one more candidate of
            ``prior="auto"``.
        wavelet: the mother wavelet, by name or as an object.
        scales: lowest and highest scale s to start from, relative to the length-scales.
        shifts: where atoms sit: "data" (training rows), "box", "hull", or a function
            ``(X, m, rng) -> (m, d)`` in the units of X.
        normalization: "peak", or "energy" for the paper's :math:`s^{-d/2}`.
        blocks: kinds of features, each "radial" or "ridge", with their own length-scales and
            amplitude; ``None`` takes two radial and one ridge.
        ard: one length-scale per column and block, instead of one in all.
        log_skewed: with ``ard``, replace strongly skewed input columns by their logarithms.
        mix_columns: with ``ard`` and projected weights, for more than 3000 rows of 4 to 16 columns,
            learn also which columns act together, so that atoms may be narrow along any direction.
        trend: "linear", "constant" or "none".
        noise: "constant", "varying" for a variance that changes with x, or "auto", which decides by
            leave-one-out densities for up to three columns and takes "constant" for more.
        error_bars: "local" lets error bars follow the size of leave-one-out errors by place, in up
            to three columns and where that raises their density; "global" does not.
        second_opinion: ask the 16 nearest training rows too, and blend both by how they do on
            unseen rows, if that clearly raises their density. It finds what is finer than the
            atoms, but then the model keeps all training rows. "auto" does so for projected weights
            in four or more columns, of up to 100 000 rows that :meth:`fit` gets in memory; for
            dense grids and rasters, say ``True``.
        fill: in up to three columns, give f back the prior variance that local atoms lack in gaps
            and beyond the data.
        variances: "block" learns one prior variance per block, "unit" fixes all at one.
        max_iter: iterations of L-BFGS for the shape.
        n_restarts: further starts; the one of highest evidence wins.
        random_state: seed of all draws.
        verbose: 1 reports progress on standard error.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        prior: PriorName = "auto",
        solver: Solver = "auto",
        wavelet: str | Wavelet = "mexican_hat",
        scales: tuple[float, float] = (0.5, 2.0),
        shifts: str | ShiftSampler = "data",
        normalization: Normalization = "peak",
        blocks: Sequence[Literal["radial", "ridge"]] | None = None,
        ard: bool = True,
        log_skewed: bool = True,
        mix_columns: bool = True,
        trend: Trend = "linear",
        noise: Noise = "auto",
        error_bars: ErrorBars = "local",
        second_opinion: Neighbors = "auto",
        fill: bool = True,
        variances: Variances = "block",
        max_iter: int = 60,
        n_restarts: int = 2,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.solver = solver
        self.wavelet = wavelet
        self.scales = scales
        self.shifts = shifts
        self.normalization = normalization
        self.blocks = blocks
        self.ard = ard
        self.log_skewed = log_skewed
        self.mix_columns = mix_columns
        self.trend = trend
        self.noise = noise
        self.error_bars = error_bars
        self.second_opinion = second_opinion
        self.fill = fill
        self.variances = variances
        self.max_iter = max_iter
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_paper(
        cls,
        n_components: int = 300,
        *,
        wavelet: str | Wavelet = "mexican_hat_paper",
        max_iter: int = 60,
        n_restarts: int = 2,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> Self:
        """The recipe as printed.

        Isotropic atoms of unit energy, log-uniform scales in [2⁻⁴, 2²] of the largest span, shifts
        uniform in the bounding box, weights of unit variance, no trend; the scale range and the
        noise are learned. It works for d up to about 3.
        """
        return cls(
            n_components,
            prior="random_features",
            wavelet=wavelet,
            scales=(2.0**-4, 2.0**2),
            shifts=Box(pad=0.0),
            normalization="energy",
            blocks=("radial",),
            ard=False,
            trend="none",
            noise="constant",
            error_bars="global",
            second_opinion=False,
            fill=False,
            variances="unit",
            max_iter=max_iter,
            n_restarts=n_restarts,
            random_state=random_state,
            verbose=verbose,
        )

    def _recipe(self, n: int) -> Prior:
        if self.solver not in get_args(Solver):
            known = ", ".join(repr(solver) for solver in get_args(Solver))
            raise ValueError(f"solver={self.solver!r} is unknown: use one of {known}.")
        if self.prior not in get_args(PriorName):
            known = ", ".join(repr(prior) for prior in get_args(PriorName))
            raise ValueError(f"prior={self.prior!r} is unknown: use one of {known}.")
        chosen = [name for name, usual in INDEPENDENT.items() if getattr(self, name) != usual]
        if self.prior == "random_features" or (self.prior == "auto" and chosen):
            if self.solver == "multifrontal":
                given = ", ".join(chosen) or "prior='random_features'"
                raise ValueError(
                    f"solver='multifrontal' has atoms of its own and no use for {given}: leave "
                    "that out, or choose solver='dense'."
                )
            return super()._recipe(n)
        if self.prior == "adaptive" and "wavelet" in chosen:
            chosen.remove("wavelet")
        if chosen:
            raise ValueError(
                f"prior={self.prior!r} has atoms of its own and no use for {', '.join(chosen)}: "
                "leave them out, or choose prior='random_features'."
            )
        trend, low = self._trend(), self.n_features_in_ <= max(DENSITY)
        if self._reason_for_tree(n):
            return MultifrontalMultiscale(self.n_features_in_, trend)
        recipes: dict[str, Prior] = {"nystrom": Nystrom(trend)}
        if low:
            recipes["multiscale"] = Multiscale(CompactHat(), trend)
            recipes["adaptive"] = Adaptive(as_wavelet(self.wavelet), trend)
        if self.prior == "spike_slab" or (self.n_features_in_ == 1 and self._sparse_is_free()):
            recipes["spike_slab"] = self._sparse(trend)
        if self.prior == "auto" and self.solver == "auto" and self._tree_may_compete():
            recipes["cells on a tree"] = MultifrontalMultiscale(self.n_features_in_, trend)
            if self.n_features_in_ == 1:
                del recipes[
                    "multiscale"
                ]  # on one column a tree does as well with more atoms, sooner
        if self.prior == "auto":
            return Auto(recipes) if low else recipes["nystrom"]
        if self.prior not in recipes:
            raise ValueError(
                f"prior={self.prior!r} fills the space of the inputs with atoms, which is "
                f"possible in up to {max(DENSITY)} dimensions, and X has "
                f"{self.n_features_in_} columns: use prior='nystrom'."
            )
        return recipes[self.prior]

    def _reason_for_tree(self, n: int) -> str:
        """Why the multifrontal solver must or should be taken; nothing if it should not."""
        d, possible = self.n_features_in_, self.prior in ("auto", "multiscale")
        possible = possible and d <= max(DENSITY)
        if self.solver == "multifrontal" and not possible:
            raise ValueError(
                "solver='multifrontal' is for up to three input columns and prior='auto' or "
                f"'multiscale', but X has {d} columns, and prior={self.prior!r} was given: leave that out, or choose "
                "solver='dense'."
            )
        if self.solver == "multifrontal":
            return "solver='multifrontal' was asked for"
        if self.solver == "dense" or not possible:
            return ""
        if self.n_components is None and d <= 2 and n > ADAPTIVE_ROWS:
            return f"{n} rows are more than {ADAPTIVE_ROWS}, on {d} input column(s)"
        if self.n_components is not None and self.n_components > MOST_DENSE:
            return f"{self.n_components} columns are more than {MOST_DENSE}"
        return ""

    def _solver(self, n: int, model: Model) -> str:
        if isinstance(model, TreeModel):
            why = self._reason_for_tree(n) or "cells on it predicted held-out rows best"
            return f"multifrontal: {why}"
        if self.solver == "dense":
            return "dense: solver='dense' was asked for"
        if isinstance(model, DenseModel) and model.n_features > MOST_DENSE:
            return f"dense: prior={self.prior!r} has no other"
        return f"dense: {model.n_features} columns"

    def _tree_may_compete(self) -> bool:
        """Whether a tree may take part where held-out rows choose."""
        return self.n_features_in_ <= 2 and self.n_components is None

    def _sparse_is_free(self) -> bool:
        """Whether nothing was asked for that sparse weights cannot give."""
        return self.n_components is None and self.noise != "varying"

    def _sparse(self, trend: Sequence[Family]) -> Prior:
        if self.n_features_in_ != 1:
            raise ValueError(
                "prior='spike_slab' is for one input column, and X has "
                f"{self.n_features_in_}: use prior='adaptive' or 'nystrom'."
            )
        if not self._sparse_is_free():
            raise ValueError(
                f"prior='spike_slab' finds the number of its atoms and has constant noise: leave "
                f"out n_components={self.n_components!r} and noise={self.noise!r}."
            )
        return SpikeSlab(trend)

    def _families(self, scaler: Standardizer) -> list[Family]:
        wavelet = as_wavelet(self.wavelet)
        if self.normalization not in ("peak", "energy"):
            raise ValueError(f"normalization={self.normalization!r}: use 'peak' or 'energy'.")
        blocks = ("radial", "radial", "ridge") if self.blocks is None else tuple(self.blocks)
        if not blocks or not set(blocks) <= {"radial", "ridge"}:
            raise ValueError(f"blocks={self.blocks!r}: give a sequence of 'radial' and 'ridge'.")
        try:
            low, high = self.scales
        except (TypeError, ValueError):
            raise ValueError(f"scales={self.scales!r}: give a pair (low, high).") from None
        measure = Measure(low, high, self._shifts_in_units(scaler))
        length = float(np.sqrt(len(scaler.columns))) if self.ard else 1.0
        radial = WaveletFamily(wavelet, measure, length, self.ard, self.normalization)
        ridge = RidgeFamily(wavelet, measure, length, self.ard)
        return [radial if kind == "radial" else ridge for kind in blocks]

    def _shifts_in_units(self, scaler: Standardizer) -> ShiftSampler:
        """The shift sampler in standardised units; a user's own works in the units of X."""
        shifts = as_shifts(self.shifts)
        if isinstance(shifts, Rows | Box | Hull):
            return shifts

        def scaled(X: Array, m: int, rng: np.random.Generator) -> Array:
            drawn = np.asarray(shifts(scaler.original_inputs(X), m, rng), dtype=np.float64)
            width = len(scaler.X.center)
            if drawn.shape != (m, width):
                raise ValueError(
                    f"the function given as shifts returned shape {drawn.shape}: "
                    f"it must return ({m}, {width})."
                )
            return scaler.inputs(drawn)

        return scaled

    @property
    def scales_(self) -> Array:
        """s of all wavelet atoms, block after block, relative to the block's length-scales."""
        return np.concatenate([part.atoms.scales for part in self._atom_maps()])

    @property
    def shifts_(self) -> Array:
        """t of all wavelet atoms, block after block, in the units of X."""
        shifts = np.concatenate([part.atoms.shifts for part in self._atom_maps()])
        return self.model_.scaler.original_inputs(shifts)

    def _atom_maps(self) -> list[WaveletFeatures | RidgeFeatures]:
        maps = [
            part for part in self.model_.maps if isinstance(part, WaveletFeatures | RidgeFeatures)
        ]
        if not maps:
            # An AttributeError, so that dir(), Tab completion and scikit-learn's HTML skip them.
            raise AttributeError(
                "this model has no atoms with scales and shifts of their own: scales_ and shifts_ "
                "exist for prior='random_features', 'multiscale' and 'adaptive'."
            )
        return maps
