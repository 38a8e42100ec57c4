r"""How large errors are here, relative to what the model expects: error bars honest by place.

.. math:: y(x) \sim N\!\left(m(x),\; c(x)\, s^2(x)\right), \qquad \log c(x) = \theta_0 + B(x)\theta,

with m and s² of a model and c from its leave-one-out errors. Means stay as they are: where a signal
is restless the model may miss more of it than noise explains, and where it is calm, less. Half of
the errors judge what the other half teaches, and decide how fine B is, or that c is one everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from rwf._types import Array, IntArray
from rwf.data.rows import Block
from rwf.models.base import Model, scores
from rwf.models.correction import Corrected
from rwf.uncertainty.calibration import ENOUGH_SCORES, Calibration
from rwf.uncertainty.variance_function import VarianceFunction, learn_variance

FINENESS = (8, 32, 128, 512)
"""Local features per input column to choose from."""

ERRORS_PER_FEATURE = 4
"""Errors for every feature, at least."""

USUAL = 0.99
"""Share of the rows whose variance of f counts as usual."""

CLEAR = 2.0
"""Standard errors by which the log density of errors must rise."""


@dataclass(frozen=True)
class LocalCalibration:
    """c(x), for inputs in standardised units.

    Args:
        shape: c among the rows that taught it.
        calibration: errors of rows over √c, where c was taught by others.
        gain: how much higher c made the mean log density of rows that did not teach it.
        usual: a variance of f that few of these rows exceed, in squared units of y, shape (k,).
    """

    shape: VarianceFunction
    calibration: Calibration
    gain: float
    usual: Annotated[Array, "k"]

    def variances(self, model: Model, X: Array) -> Array:
        """c of a model at inputs in their own units, shape (n, k).

        In holes and beyond the data, where the variance of f is larger than among rows or atoms
        carry little of it, no rows have shown that errors are small, and c is at least one.
        """
        c = self.shape(model.scaler.inputs(X))[:, None]
        _, deviation = model.predict(X, noise=False)
        among = self.usual / np.maximum(deviation**2, self.usual)
        among = np.minimum(among, model.coverage(X)[:, None])
        c = among * c + (1.0 - among) * np.maximum(c, 1.0)
        scale: Array = c * self.calibration.inflation
        return scale

    def at(self, model: Model, X: Array) -> Corrected:
        factor = np.sqrt(self.variances(model, X))
        return Corrected(np.zeros_like(factor), factor)

    def with_rows(self, model: Model, rows: Block) -> LocalCalibration:
        return self

    def without_rows(self) -> LocalCalibration:
        return self

    def merged(self, other: LocalCalibration) -> LocalCalibration:
        return self


def learn_local_calibration(
    model: Model, known: Block, rng: np.random.Generator
) -> LocalCalibration | None:
    """c(x) from the errors of training rows, in standardised units; ``None`` where one is as good.

    Args:
        model: whose leave-one-out errors they are.
        known: some of its rows.
        rng: halves them, and draws features.
    """
    calibration_rows = model.calibration_rows(known)
    half = len(calibration_rows) // 2
    fineness = [count for count in FINENESS if count * ERRORS_PER_FEATURE <= half]
    if half < ENOUGH_SCORES or not fineness:
        return None
    z, order = scores(model, calibration_rows), rng.permutation(len(calibration_rows))
    first, second = order[:half], order[half:]

    def taught(by: IntArray, count: int) -> VarianceFunction:
        return learn_variance(calibration_rows.part(by), z[by], 0.0, rng, coarse=count)

    def unseen(count: int) -> Array:
        """c at every row, taught by the half that it is not in."""
        c = np.empty(len(calibration_rows))
        for half, other in ((first, second), (second, first)):
            c[other] = taught(half, count)(calibration_rows.X[other])
        return c

    tried = {count: unseen(count) for count in fineness}
    gains = {count: _gains(c, z) for count, c in tried.items()}
    best = max(gains, key=lambda count: float(gains[count].mean()))
    gain, error = (
        float(gains[best].mean()),
        float(gains[best].std()) / np.sqrt(len(calibration_rows)),
    )
    if gain < CLEAR * error:
        return None
    calibration = Calibration(z / np.sqrt(tried[best])[:, None])
    return LocalCalibration(
        taught(order, best), calibration, gain, _usual_variance(model, calibration_rows)
    )


def _usual_variance(model: Model, calibration_rows: Block) -> Array:
    """The variance of f at rows that are left out, which few exceed, shape (k,)."""
    X, unit = model.scaler.original_inputs(calibration_rows.X), model.scaler.y.scale**2
    _, of_y = model.predict(X)
    _, of_f = model.predict(X, noise=False)
    left_out = np.column_stack(
        [
            model.leave_one_out(calibration_rows, output).variance
            for output in range(model.n_outputs)
        ]
    )
    variances = left_out * unit - (of_y**2 - of_f**2)
    return np.maximum(np.quantile(variances, USUAL, axis=0), np.finfo(np.float64).tiny)


def _gains(c: Array, z: Array) -> Array:
    """By how much c raises the log densities of errors z, over all outputs, shape (n,)."""
    gains: Array = 0.5 * (z**2 * (1.0 - 1.0 / c[:, None]) - np.log(c)[:, None]).sum(axis=1)
    return gains
