"""Moments of all rows in one of two forms: the cheaper one, and the more exact one.

All of them add. Which one is good enough depends on the noise, and is found out by trying: see
``resolves``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from rwf._types import Array
from rwf.data.rows import Block, Mapped, Rows, RowSum, block_rows
from rwf.features.base import Features
from rwf.inference.moments import Moments, RootMoments, accumulate, accumulate_root
from rwf.linalg.threads import cores
from rwf.models.hyperparameters import Hyperparameters
from rwf.uncertainty.variance_function import VarianceFunction

FORMS = ("gram", "root")
DenseMoments: TypeAlias = Moments | RootMoments


@dataclass(frozen=True)
class _Algebra:
    """How a form is made of rows, and of arrays that were stored."""

    accumulate: Callable[[Features, Iterable[Block], int], DenseMoments]
    from_arrays: Callable[[Mapping[str, Array]], DenseMoments]


ALGEBRAS: Mapping[str, _Algebra] = MappingProxyType(
    {
        "gram": _Algebra(accumulate, Moments.from_arrays),
        "root": _Algebra(accumulate_root, RootMoments.from_arrays),
    }
)


def no_rows(form: str, features: Features, n_outputs: int) -> DenseMoments:
    """The moments to which others are added first."""
    return ALGEBRAS[form].accumulate(features, (), n_outputs)


def collect(
    hyperparameters: Hyperparameters, rows: Rows, form: str, noise: VarianceFunction | None = None
) -> DenseMoments:
    """The moments of rows in standardised units, in one pass."""
    features, k = hyperparameters.features, rows.n_outputs
    p, algebra = features.n_features, ALGEBRAS[form]

    def gather(parts: Iterable[Block]) -> DenseMoments:
        return algebra.accumulate(features, parts, k)

    name = f"{form} of {p} columns and {k} outputs"
    seen = rows if noise is None else Mapped(rows, noise.on)
    total: DenseMoments = seen.total(
        RowSum(
            name if noise is None else f"{name}, {noise.name}",
            block_rows(p),
            gather,
            operator.add,
            lambda total: total.to_arrays(),
            algebra.from_arrays,
            cores(),
        )
    )
    return total
