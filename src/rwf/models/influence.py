r"""How much the evidence and predictions of a model change without some of its rows.

With residuals r and covariance C of f, both given all rows, and P = diag(w/σ²v), a group G is left
out by

.. math:: \log p(y) - \log p(y_{-G}) = \log p(y_G \mid y_{-G}), \qquad
    m(x) - m_{-G}(x) = C_{xG} P^{1/2} B^{-1} P^{1/2} r,

where B = I - P^{1/2} C_{GG} P^{1/2}. Hyperparameters stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.models.gaussian import GaussianModel

AT_ONCE = 500  # rows whose covariance is in memory at once


@dataclass(frozen=True)
class Influence:
    """What G groups of rows contribute to a model, in the units of y.

    Args:
        groups: their labels, shape (G,).
        log_evidence: log p(y) with all rows, less that without the group: the log density of its
            rows given all others; low where the rest of the data do not expect it.
        shift: predictive means with all rows, less those without the group, shape (G, m), or
            (G, m, k) for several outputs.
    """

    groups: NDArray[np.generic]
    log_evidence: Array
    shift: Array


def influence(
    model: GaussianModel, rows: Block, groups: Sequence[IntArray], at: Array
) -> Influence:
    """The influence of groups of training rows, given by their numbers, in standardised units."""
    count, k = len(groups), model.n_outputs
    evidence, shift = np.zeros(count), np.zeros((count, len(at), k))
    for some in _batches(groups):
        numbers = np.concatenate([groups[g] for g in some])
        X = np.concatenate([rows.X[numbers], at])
        mean, noise = model.mean(X), model.noise_of(rows.part(numbers))
        weights, Z = rows.weights[numbers], model.features_at(X)
        ends = np.cumsum([0, *(len(groups[g]) for g in some)])
        for output, t in enumerate(model.fits):
            C = t.posterior.covariance_of(Z)
            for g, a, b in zip(some, ends[:-1], ends[1:], strict=True):
                its, v = slice(a, b), noise[a:b]
                y, w = rows.y[numbers[its], output], weights[its]
                left = t.posterior.unseen_group(mean[its, output], C[its, its], y, w, v)
                evidence[g] += left.log_density
                root = np.sqrt(w / (t.posterior.noise_variance * v))
                B = np.eye(b - a) - root[:, None] * C[its, its] * root
                solved = cho_solve(cho_factor(B), root * (y - mean[its, output]))
                shift[g, :, output] = C[len(numbers) :, its] @ (root * solved)
    scale = model.units.y.scale
    sizes = np.array([rows.weights[numbers].sum() for numbers in groups])
    jacobian = sizes * float(np.log(scale).sum())
    return Influence(np.arange(count), evidence - jacobian, shift * scale)


def _batches(groups: Sequence[IntArray]) -> list[list[int]]:
    """Groups that are left out one by one from the same covariance."""
    found: list[list[int]] = [[]]
    size = 0
    for g, numbers in enumerate(groups):
        if found[-1] and size + len(numbers) > AT_ONCE:
            found.append([])
            size = 0
        found[-1].append(g)
        size += len(numbers)
    return [some for some in found if some]
