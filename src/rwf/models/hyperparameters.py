"""What is learned of a dense model before all rows are seen: its features, and their variances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from rwf._types import Array
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import Variances


@dataclass(frozen=True)
class Hyperparameters:
    """Features with their shape parameters, and the variances that go with them."""

    features: Stack  # the blocks
    log_priors: Annotated[Array, "g"]  # log prior variance of each block, shape (B,)
    log_noise: Annotated[Array, "k"]  # log noise variance of each output, shape (k,)

    def variances(self, output: int) -> Variances:
        return Variances(self.log_priors, float(self.log_noise[output]))
