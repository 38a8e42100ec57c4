"""Moments of all rows in one of two forms: the cheaper one, and the more exact one.

All of them add. Which one is good enough depends on the noise, and is found out by trying: see
``resolves``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from rwf._types import Array
from rwf.data.rows import Block, Rows, RowSum, block_rows
from rwf.data.scaling import Standardizer
from rwf.features.base import Features
from rwf.inference.moments import Moments, RootMoments, accumulate, accumulate_root
from rwf.linalg.threads import cores
from rwf.models.base import in_units
from rwf.models.hyperparameters import Hyperparameters
from rwf.uncertainty.variance_function import VarianceFunction

Form = Literal["gram", "root"]
FORMS: tuple[Form, ...] = ("gram", "root")
DenseMoments: TypeAlias = Moments | RootMoments


@dataclass(frozen=True)
class _Way:
    """How a form is made of rows, and of arrays that were stored."""

    accumulate: Callable[[Features, Iterable[Block], int], DenseMoments]
    from_arrays: Callable[[Mapping[str, Array]], DenseMoments]


WAYS: Mapping[Form, _Way] = MappingProxyType(
    {
        "gram": _Way(accumulate, Moments.from_arrays),
        "root": _Way(accumulate_root, RootMoments.from_arrays),
    }
)


def form_of(moments: DenseMoments) -> Form:
    return "root" if isinstance(moments, RootMoments) else "gram"


def add(a: DenseMoments, b: DenseMoments) -> DenseMoments:
    """The sum of two moments of one form."""
    if isinstance(a, Moments) and isinstance(b, Moments):
        return a + b
    assert isinstance(a, RootMoments)
    assert isinstance(b, RootMoments)
    return a + b


def no_rows(form: Form, features: Features, n_outputs: int) -> DenseMoments:
    """The moments to which others are added first."""
    return WAYS[form].accumulate(features, (), n_outputs)


def collect(
    scaler: Standardizer | None,
    shape: Hyperparameters,
    rows: Rows,
    form: Form,
    noise: VarianceFunction | None = None,
) -> DenseMoments:
    """The statistics of the rows, in one pass; without a scaler, of rows in standardised units."""
    p, k = shape.features.n_features, rows.n_outputs

    def gather(parts: Iterable[Block]) -> DenseMoments:
        return WAYS[form].accumulate(shape.features, in_units(parts, scaler, noise), k)

    name = f"{form} of {p} columns and {k} outputs"
    return rows.total(
        RowSum(
            name if noise is None else f"{name}, {noise.name}",
            block_rows(p),
            gather,
            add,
            lambda total: total.to_arrays(),
            WAYS[form].from_arrays,
            cores(),
        )
    )
