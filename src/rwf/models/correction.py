"""What experience adds to a model: its errors at training rows correct means and error bars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from rwf._types import Array
from rwf.data.rows import Block
from rwf.models.base import Model
from rwf.uncertainty.calibration import Calibration


@dataclass(frozen=True)
class Corrected:
    """By what a model's predictions change.

    Args:
        shift: what is added to means, in units of y, shape (n, k).
        factor: by what standard deviations are multiplied, shape (n, k).
    """

    shift: Array
    factor: Array

    @classmethod
    def unchanged(cls, n: int, n_outputs: int) -> Corrected:
        """Nothing is added, and all is multiplied by one."""
        return cls(np.zeros((n, n_outputs)), np.ones((n, n_outputs)))


class Correction(Protocol):
    """Corrects a model's predictions by place."""

    @property
    def calibration(self) -> Calibration:
        """Leave-one-out errors over the corrected standard deviations."""
        ...

    def at(self, model: Model, X: Array) -> Corrected:
        """By what predictions at inputs, in their own units, change."""
        ...

    def with_rows(self, model: Model, rows: Block) -> Self:
        """The correction after the model has seen further rows."""
        ...

    def without_rows(self) -> Self:
        """The correction before the first row."""
        ...

    def merged(self, other: Self) -> Self:
        """The correction of both models' rows."""
        ...
