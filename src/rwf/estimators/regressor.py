"""The regressor that users meet: random wavelet features."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, Self

import numpy as np

from rwf._types import Array
from rwf.estimators.base import FeatureRegressor
from rwf.estimators.validation import RandomState
from rwf.features.ridge import RidgeFeatures
from rwf.features.wavelet import WaveletFeatures
from rwf.priors import PRIORS, Prior, RandomFeatures
from rwf.priors.base import CalibrationMode, Metric, Neighbors, Solver, Trend
from rwf.priors.random_features import Normalize
from rwf.wavelets import Wavelet
from rwf.wavelets.measure import Box

PRINTED = RandomFeatures(
    scales=(2.0**-4, 2.0**2),
    shifts=Box(pad=0.0),
    normalization="energy",
    blocks=("radial",),
    variances="unit",
)
"""The prior that the paper prints, with any wavelet."""

SPEECH = replace(PRINTED, wavelet="complex_morlet", ridge=1e-4, warm_up=10)
"""Its recipe for TIMIT."""


class RWFRegressor(FeatureRegressor):
    r"""Gaussian-process regression with random wavelet features.

    .. math:: f(x) = \sum_i w_i\, z_i(x) + \text{trend}, \qquad
        z_i(x) = D^{-1/2}\, \psi\!\left(\frac{x - t_i}{\ell s_i}\right)

    Training is Bayesian linear regression in closed form; hyperparameters, amplitudes and noise
    maximise the evidence. Priors over the weights:

    - ``"nystrom"``: the GP of infinitely many Mexican hats, with learned roughness, on inducing
      rows. Exact with as many inducing rows as rows, the default up to 3000.
    - ``"field"``: a coarse multiscale lattice, and kriging (a nearest-neighbour GP) of what it
      leaves, blended and calibrated by the distance to data. Up to three input columns; the model
      stores its training rows.
    - ``"multiscale"``: a lattice of local atoms, octave after octave, with prior variances learned
      over scale and place. Up to three input columns.
    - ``"adaptive"``: few atoms, resampled to where the signal is. Up to three input columns.
    - ``"spike_slab"``: most weights are zero. Steps, cusps, hats and Gabor atoms above a smooth
      part, for edges and rare events on one input column.
    - ``"random_features"``: the paper's. Atoms drawn from p(s, t), with independent weights.

    ==================  ==================================================================
    prior               feature columns by default, for n rows
    ==================  ==================================================================
    nystrom             n up to 3000; beyond, 2500, or 4000 if the noise is very small
    multiscale          n, within 100 and 2000; on the multifrontal solver n, n/2 or n/4
                        for 1, 2 or 3 input columns, at most 250 000, 100 000 or 20 000
    field               n/4, within 50 and 16 000
    adaptive            n/4, within 50 and 500
    spike_slab          sampled
    random_features     n, within 100 and 2000
    ==================  ==================================================================

    Args:
        n_components: feature columns; ``None`` for the defaults above.
        prior: a name, a prior object such as ``RandomFeatures(wavelet="morlet")``, or "auto":
            "nystrom" for four or more input columns; "field" for more than 20 000 rows of two or
            three, and from 1000 on unless they are smooth or mostly noise; else, whichever prior
            predicts held-out rows best.
        solver: "dense", with one Gram matrix; "multifrontal", which solves a hundred thousand
            local atoms in seconds, for the multiscale prior; or "auto", multifrontal for more than
            8000 columns, or 20 000 rows of one or two input columns. A field uses it.
        metric: "isotropic", one length-scale for all columns; "ard", one per column; "full", which
            also learns which columns act together (Nyström and field priors; else "ard"); or
            "auto": "full" for fields and for more than 3000 rows of 4 to 16 columns, else "ard".
        neighbors: blend the model with the nearest-neighbour (Vecchia) GP of so many rows, if that
            clearly improves the log-likelihood of held-out rows. Such a model stores its training
            rows. "auto" tries 16 with the Nyström prior, in four or more columns and for up to
            100 000 rows in memory; ``None`` never does, and excludes fields.
        trend: "linear", "constant" or "none".
        noise: "constant"; "heteroscedastic" for a variance that changes with x; "student" for
            outliers: rows with large leave-one-out errors count less, as under a Student-t; or
            "auto", which chooses between the first two by leave-one-out densities for up to three
            columns and is "constant" for more. With "student" all rows are in memory, fields and
            nearest neighbours are not used, and rows that are added later count in full.
        calibration: "global" learns a Student-t from leave-one-out errors, the same for all rows;
            "local" lets its scale vary with x, the mean and the variance; ``None`` is the raw
            posterior, whose variance also vanishes far from local atoms.
        log_skewed: replace strongly skewed input columns by their logarithms, unless the metric is
            isotropic.
        target_transform: "log" or "sqrt": model log y or √y, so that a price has errors in percent,
            and no interval below zero. Predictions come back in the units of y. "auto" does so for
            positive, strongly skewed targets if quick fits of up to 500 rows say that it clearly
            raises the likelihood and lowers the errors; and never for rows that stream. ``None``
            models y. (``target`` of :meth:`TableRegressor.fit` names a column.)
        n_restarts: further starting points; the one of highest evidence wins. ``None``: 2, or none
            for the Nyström prior of 4 to 16 columns, where others end no better on average.
        max_iter: iterations of L-BFGS. ``None``: 60, or 40 from that single starting point.
        n_jobs: trials, priors that compete, and the folds of :meth:`TableRegressor.validate` that
            run at once through joblib, in processes or on the backend of
            ``joblib.parallel_config``; -1 for all cores. ``None`` follows that context; without
            one, trials share the threads of this process.
        random_state: seed of all draws.
        verbose: 1 reports progress on standard error; with 0, a terminal shows a bar from two
            seconds on.
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        prior: str | Prior = "auto",
        solver: Solver = "auto",
        metric: Metric = "auto",
        neighbors: Neighbors = "auto",
        trend: Trend = "linear",
        noise: str = "auto",
        calibration: CalibrationMode = "local",
        log_skewed: bool = True,
        target_transform: Literal["auto", "log", "sqrt"] | None = "auto",
        n_restarts: int | None = None,
        max_iter: int | None = None,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.solver = solver
        self.metric = metric
        self.neighbors = neighbors
        self.trend = trend
        self.noise = noise
        self.calibration = calibration
        self.log_skewed = log_skewed
        self.target_transform = target_transform
        self.n_restarts = n_restarts
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def from_paper(
        cls,
        n_components: int = 300,
        *,
        wavelet: str | Wavelet = "mexican_hat_paper",
        normalize: Normalize = "standard",
        speech: bool = False,
        max_iter: int = 60,
        n_restarts: int = 2,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> Self:
        """The method as printed in the paper (Algorithm 1).

        Isotropic atoms of unit energy, log-uniform scales that start in [2⁻⁴, 2²], shifts uniform
        in the bounding box, weights of unit variance, no trend, the raw posterior; the scale range
        and the noise are learned.

        Args:
            n_components: D.
            wavelet: the mother wavelet.
            normalize: "standard" gives all input columns the same deviation, as the paper says
                that it normalises its data, "unit_box" the same span; ``None`` keeps their ratios.
                The largest span is then 1, the unit of the scales.
            speech: the recipe for TIMIT: complex Morlet wavelets, a ridge of 1e-4, and ten
                iterations of warm-up in which scales are clipped.
            max_iter: as for every other model, and so are n_restarts, random_state and verbose.
        """
        printed = SPEECH if speech else replace(PRINTED, wavelet=wavelet)
        return cls(
            n_components,
            prior=replace(printed, normalize=normalize),
            metric="isotropic",
            neighbors=None,
            trend="none",
            noise="constant",
            calibration=None,
            target_transform=None,
            max_iter=max_iter,
            n_restarts=n_restarts,
            random_state=random_state,
            verbose=verbose,
        )

    def _prior(self) -> Prior:
        if not isinstance(self.prior, str) and hasattr(self.prior, "learn"):
            return self.prior
        if self.prior not in PRIORS:
            known = ", ".join(repr(name) for name in PRIORS)
            raise ValueError(
                f"prior={self.prior!r} is unknown: use one of {known}, or a prior object."
            )
        return PRIORS[self.prior]()

    @property
    def scales_(self) -> Array:
        """s of all wavelet atoms, block after block, relative to the block's length-scales."""
        return np.concatenate([part.atoms.scales for part in self._atom_maps()])

    @property
    def shifts_(self) -> Array:
        """t of all wavelet atoms, block after block, in the units of X."""
        shifts = np.concatenate([part.atoms.shifts for part in self._atom_maps()])
        return self.model_.units.original_inputs(shifts)

    def _atom_maps(self) -> list[WaveletFeatures | RidgeFeatures]:
        maps = [
            part for part in self.model_.maps if isinstance(part, WaveletFeatures | RidgeFeatures)
        ]
        if not maps:
            # An AttributeError, so that dir(), Tab completion and scikit-learn's HTML skip them.
            raise AttributeError(
                "this model has no atoms with scales and shifts of their own: scales_ and shifts_ "
                "exist for prior='random_features'."
            )
        return maps
