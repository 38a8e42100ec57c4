"""One picture of a fitted regressor, whichever suits its input columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rwf._types import Array
from rwf.data.readers import Data, Reader, Targets
from rwf.data.rows import Block
from rwf.diagnostics.plots import overview, predicted_and_actual
from rwf.diagnostics.sensitivity import partial_dependence
from rwf.errors import NoSuchColumnError
from rwf.estimators.validation import check_data
from rwf.uncertainty.transformed import Predictive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rwf.estimators.base import FeatureRegressor

SHOWN = 2000  # rows that are drawn, at most
POINTS, PIXELS = 400, 120  # places of a line, and of a side of a map


class Plotted:
    """``plot()`` of a fitted regressor."""

    def plot(
        self,
        X: Data,
        y: Targets | None = None,
        *,
        column: int | str | None = None,
        output: int = 0,
        ax: Axes | None = None,
    ) -> Axes:
        """A picture of the predictions that suits the number of input columns.

        One column: the mean with its 95 % interval. Two: a map of the mean over the range of the
        rows. More: observed over predicted targets. With ``column``, in any case, the mean of f
        over rows in which the column is set to each of its values, with two standard deviations.

        Args:
            X: some rows, as for :meth:`predict`; those of the fit will do.
            y: their targets, or the name of the target's column. A table that has it needs no y.
            column: the number or the name of a column of numbers.
            output: which of several outputs.
            ax: where to draw; the current axes if not given.
        """
        rows = _Rows.of(self, X, y)  # type: ignore[arg-type]
        if ax is None:
            from matplotlib import pyplot

            ax = pyplot.gca()
        if column is not None:
            return rows.dependence(ax, column, output)
        return rows.overview(ax, output)


@dataclass(frozen=True)
class _Rows:
    """A regressor, and rows of numbers with or without targets."""

    model: Any  # a FeatureRegressor, which is above this module
    X: Array
    y: Array | None
    names: tuple[str, ...]
    target: str

    @classmethod
    def of(cls, model: FeatureRegressor, X: Data, y: Targets | None) -> _Rows:
        schema = getattr(model, "schema_", None)
        if schema is not None:
            names, target = tuple(schema.names), str(schema.target)
            try:
                rows: Block | Reader | None = model._known(X, y)
            except NoSuchColumnError:
                rows = None
        else:
            d, given = model.n_features_in_, getattr(model, "feature_names_in_", None)
            numbered = ("x",) if d == 1 else tuple(f"x{i}" for i in range(d))
            names, target = numbered if given is None else tuple(given), "y"
            if isinstance(y, str):
                target = y
            rows = None if y is None else check_data(model, X, y, None, reset=False)[0]
        if rows is None:
            return cls(model, model._fitted_inputs(X), None, names, target)
        shown = _sampled(rows, np.random.default_rng(0))
        return cls(model, shown.X, shown.y, names, target)

    def predicted(self, X: Array, output: int) -> Predictive:
        found: Predictive = self.model._distributions(X).output(output)
        return found

    def overview(self, ax: Axes, output: int) -> Axes:
        y = None if self.y is None else self.y[:, output]
        if len(self.names) == 1:
            low, high = float(self.X.min()), float(self.X.max())
            x = np.linspace(low, high, POINTS)
            p = self.predicted(x[:, None], output)
            data = None if y is None else (self.X[:, 0], y)
            overview.predictive_interval(ax, x, p.mean, *p.interval(), data=data)
            ax.set(xlabel=self.names[0], ylabel=self.target)
            return ax
        if len(self.names) == 2:
            first, second = np.linspace(self.X.min(axis=0), self.X.max(axis=0), PIXELS).T
            places = np.stack(np.meshgrid(first, second), axis=-1).reshape(-1, 2)
            mean = self.predicted(places, output).mean.reshape(PIXELS, PIXELS)
            overview.mean_map(ax, first, second, mean, label=f"mean of {self.target}", data=self.X)
            ax.set(xlabel=self.names[0], ylabel=self.names[1])
            return ax
        if y is None:
            raise ValueError(
                f"with {len(self.names)} input columns, plot needs the targets of the rows, "
                "plot(X, y), or one column, plot(X, column=0)."
            )
        return predicted_and_actual(ax, y, self.predicted(self.X, output).mean)

    def dependence(self, ax: Axes, column: int | str, output: int) -> Axes:
        known = {name: number for number, name in enumerate(self.names)}
        number = known.get(column, -1) if isinstance(column, str) else int(column)
        if not 0 <= number < len(self.names):
            raise ValueError(
                f"column={column!r} is none of the columns of numbers: use one of "
                f"{', '.join(map(repr, self.names))}, or 0 to {len(self.names) - 1}."
            )
        found = partial_dependence(_OneOutput(self.model, output), self.X, number)
        overview.dependence_band(ax, found.values, found.mean, found.std)
        ax.set(xlabel=self.names[number], ylabel=f"mean of {self.target}")
        return ax


def _sampled(rows: Block | Reader, rng: np.random.Generator) -> Block:
    """At most SHOWN of some rows."""
    if isinstance(rows, Block):
        return rows.part(rng.permutation(len(rows))[:SHOWN])
    return rows.sample(SHOWN, rng)[0]


@dataclass(frozen=True)
class _OneOutput:
    """A regressor that combines one output at rows of numbers."""

    model: Any
    output: int

    def predict_combination(self, X: Array, weights: Array) -> tuple[Array, Array]:
        mean, covariance = self.model.combine_rows(X, weights)
        variances = np.einsum("qqk->qk", covariance)
        return mean[:, self.output], np.sqrt(variances[:, self.output])
