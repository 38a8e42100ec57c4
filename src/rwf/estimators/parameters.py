"""What a fitted regressor has learned: evidence, variances and length-scales."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array
from rwf.features.inducing import NystromFeatures
from rwf.models.base import Model


class LearnedParameters:
    """The learned parameters of a regressor that has a model."""

    model_: Model
    _single_output: bool

    def log_marginal_likelihood(self) -> float:
        """log p(y) of all rows seen, in the units of y, at the fitted parameters.

        Where targets were transformed, it is that of the transformed ones.
        """
        check_is_fitted(self)
        found = self.model_.summary.log_evidence
        if found is None:
            raise AttributeError(
                "the evidence of a field or a spike-and-slab prior is not known: compare models by "
                "held-out rows, or by fit_report_.nll, a leave-one-out score."
            )
        return found

    @property
    def log_marginal_likelihood_value_(self) -> float:
        """The same, under scikit-learn's name."""
        return self.log_marginal_likelihood()

    @property
    def noise_variance_(self) -> float | Array:
        """σ² in squared units of y; one per output if there are several.

        It includes what the features miss on average. Predictions are calibrated beyond it. Where
        targets were transformed, this and ``prior_variances_`` are of the transformed ones.
        """
        noise = self.model_.summary.noise_variances
        return float(noise[0]) if self._single_output else noise

    @property
    def prior_variances_(self) -> Array:
        """The diagonal of Λ in squared units of y, shape (p,), or (p, k) for several outputs."""
        variances = self.model_.summary.prior_variances
        return variances[:, 0] if self._single_output else variances

    @property
    def n_features_out_(self) -> int:
        """Columns of the feature matrix, trend included."""
        return sum(part.n_features for part in self.model_.maps)

    @property
    def length_scales_(self) -> Array:
        """ℓ of each block in the units of X, shape (blocks, d); NaN for constant columns.

        With a full metric, it is how far a column must move alone.
        """
        units, lengths = self.model_.units, []
        for part in self.model_.maps:
            if isinstance(part, NystromFeatures):
                lengths += list(part.kernel.lengths)
            elif part.n_lengths:
                lengths.append(np.exp(part.theta[: part.n_lengths]))
        table = np.full((len(lengths), len(units.X.center)), np.nan)
        for row, length in zip(table, lengths, strict=True):
            row[units.columns] = length
        return table * units.X.scale
