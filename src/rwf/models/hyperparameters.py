"""What is learned of a dense model before all rows are seen: its features, and their variances."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from rwf._types import Array
from rwf.data.rows import Block, Mapped, Rows, RowSum, block_rows
from rwf.features.base import Features
from rwf.features.stack import Stack
from rwf.inference.empirical_bayes import Variances
from rwf.inference.moments import Moments, RootMoments, accumulate, accumulate_root
from rwf.linalg.threads import cores
from rwf.uncertainty.variance_function import VarianceFunction


@dataclass(frozen=True)
class Hyperparameters:
    """Features with their shape parameters, and the variances that go with them."""

    features: Stack  # the blocks
    log_priors: Annotated[Array, "g"]  # log prior variance of each block, shape (B,)
    log_noise: Annotated[Array, "k"]  # log noise variance of each output, shape (k,)

    def variances(self, output: int) -> Variances:
        return Variances(self.log_priors, float(self.log_noise[output]))


FORMS = ("gram", "root")
DenseMoments: TypeAlias = Moments | RootMoments
Accumulate: TypeAlias = Callable[[Features, Iterable[Block], int], DenseMoments]
ACCUMULATE: dict[str, Accumulate] = {"gram": accumulate, "root": accumulate_root}
FROM_ARRAYS: dict[str, Callable[[Mapping[str, Array]], DenseMoments]] = {
    "gram": Moments.from_arrays,
    "root": RootMoments.from_arrays,
}


def collect(
    hyperparameters: Hyperparameters, rows: Rows, form: str, noise: VarianceFunction | None = None
) -> DenseMoments:
    """The moments of rows in standardised units, in one pass."""
    features, k = hyperparameters.features, rows.n_outputs
    p, name = features.n_features, f"{form} of {features.n_features} columns and {k} outputs"
    seen = rows if noise is None else Mapped(rows, noise.on)
    total: DenseMoments = seen.total(
        RowSum(
            name if noise is None else f"{name}, {noise.name}",
            block_rows(p),
            lambda parts: ACCUMULATE[form](features, parts, k),
            operator.add,
            lambda total: total.to_arrays(),
            FROM_ARRAYS[form],
            cores(),
        )
    )
    return total
