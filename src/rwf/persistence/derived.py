"""Arrays that a file leaves out, as they follow to the last bit from what it holds.

The factors of a posterior and of inducing inputs follow from statistics and kernels, and the
statistics of a field from its rows. Before an array is left out it is computed again and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from functools import partial

import numpy as np

from rwf._types import Array
from rwf.features.inducing import NystromFeatures
from rwf.inference.empirical_bayes import blas_threads_for
from rwf.models.dense import DenseModel
from rwf.models.field import FieldModel
from rwf.models.tree import TreeModel

Derivation = tuple[Array, Callable[[], Array]]  # an array of an object, and how it is computed


def derivable(value: object, known: Container[int]) -> set[int]:
    """Which arrays of an object can be computed again, by their id, beside those known to be."""
    found = set()
    for array, compute in _derivations(value):
        if id(array) not in known and _same(array, compute()):
            found.add(id(array))
    return found


def fill(value: object, pending: set[int]) -> None:
    """Compute those arrays of an object that are pending, and whose sources are not."""
    if isinstance(value, TreeModel) and id(value.statistics.grams) in pending:
        return  # the field that it is in has the rows
    for array, compute in _derivations(value):
        if id(array) in pending:
            array[...] = compute()
            pending.remove(id(array))


def _same(a: Array, b: Array) -> bool:
    same_order = a.flags.c_contiguous == b.flags.c_contiguous
    return a.shape == b.shape and same_order and a.tobytes("A") == b.tobytes("A")


def _derivations(value: object) -> Iterator[Derivation]:
    match value:
        case NystromFeatures():
            yield value.L, lambda: NystromFeatures.at(value.kernel, value.centers, value.jitter).L
        case DenseModel() if "fits" in vars(value):
            for output, fit in enumerate(value.fits):
                yield fit.posterior.factor.L, partial(_dense, value, output)
        case TreeModel():
            yield from _of_tree(value)
        case FieldModel():
            for lattice in value.lattices:
                yield lattice.statistics.grams, partial(_grams, value, lattice)
                yield from _of_tree(lattice)


def _dense(model: DenseModel, output: int) -> Array:
    p = model.fits[output].posterior
    with blas_threads_for(model.features.groups):
        found = model.statistics.posterior(output, p.prior_variances, p.noise_variance)
    return found.factor.L


def _of_tree(model: TreeModel) -> Iterator[Derivation]:
    if "fits" in vars(model):
        for output, fit in enumerate(model.fits):
            yield fit.posterior.factor.panels, partial(_panels, model, output)


def _panels(model: TreeModel, output: int) -> Array:
    p = model.fits[output].posterior
    moments = model.statistics.tempered(model.hyperparameters.effective_rows)
    return moments.posterior(output, p.prior_variances, p.noise_variance).factor.panels


def _grams(field: FieldModel, lattice: TreeModel) -> Array:
    return np.asarray(lattice.hyperparameters.collect(field.rows).grams)
