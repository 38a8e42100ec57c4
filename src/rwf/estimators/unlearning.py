"""Rows that leave a fitted regressor: forgetting, decay, and what single rows contribute."""

from __future__ import annotations

from collections import deque
from typing import Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array
from rwf.data.progress import Progress, progress_of
from rwf.data.readers import Data, Targets
from rwf.data.rows import Block, Rows
from rwf.data.stream import Stream
from rwf.estimators.joint import JointRegressor
from rwf.estimators.validation import check_data
from rwf.models.influence import Influence, influence


class UnlearningRegressor(JointRegressor):
    """A fitted regressor that can forget rows."""

    def forget(
        self, X: Data, y: Targets | None = None, sample_weight: Targets | None = None
    ) -> Self:
        """Subtract rows that were added before, as if they had never been: ``partial_fit`` undone.

        Features, units, inducing inputs and the calibration stay as they are, although they were
        learned from these rows too; noise and prior variances are learned again from the rest.
        Statistics of very small noise, in square-root form, and stored rows that are not found
        raise a ``ValueError`` that says what to do instead.

        Args:
            X: inputs, as for :meth:`partial_fit`.
            y: targets.
            sample_weight: the weights that the rows were added with.
        """
        check_is_fitted(self)
        with progress_of(type(self).__name__, self.verbose) as progress:
            self.model_ = self.model_.forget(self._further_rows(X, y, sample_weight, progress))
        return self

    def decay(self, share: float) -> Self:
        """Count every row seen so far less, by a share between 0 and 1."""
        check_is_fitted(self)
        if not 0 < share <= 1:
            raise ValueError(f"share={share!r} must lie between 0 and 1; 1 keeps rows as they are.")
        self.model_ = self.model_.decayed(share)
        self._forget_groups()
        return self

    def influence(
        self, X: ArrayLike, y: ArrayLike, *, groups: ArrayLike | None = None, at: ArrayLike
    ) -> Influence:
        """How much log evidence and predictions owe to training rows, or to groups of them.

        Args:
            X: training inputs, shape (n, d).
            y: their targets.
            groups: labels of rows that are left out together, shape (n,); ``None`` for every row
                alone.
            at: places where predictions are compared, shape (m, d).
        """
        check_is_fitted(self)
        model = self.model_.gaussian
        if model is None or self.model_.keeps_rows:
            raise ValueError(
                "the influence of rows is known for Gaussian weights without stored rows: fit "
                "prior='nystrom' or 'multiscale' with neighbors=None, or compare with a copy that "
                "has forgotten the rows."
            )
        rows, _ = check_data(self, X, y, None, reset=False)
        assert isinstance(rows, Block)  # of arrays
        given = np.arange(len(rows)) if groups is None else np.asarray(groups)
        if given.shape != (len(rows),):
            raise ValueError(f"groups has shape {given.shape}: give a label for each of the rows.")
        labels, codes = np.unique(given, return_inverse=True)
        order = np.argsort(codes, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(codes))[:-1])
        units = model.units
        found = influence(model, units.rows(rows), parts, units.inputs(self._fitted_inputs(at)))
        return Influence(labels, found.log_evidence, self._squeeze(found.shift))

    def _further_rows(
        self, X: Data, y: Targets | None, sample_weight: Targets | None, progress: Progress
    ) -> Rows:
        """Rows with the outputs of those fitted, in memory where the model needs them."""
        rows, single = check_data(self, X, y, sample_weight, reset=False)
        self._forget_groups()
        if rows.n_outputs != self.model_.n_outputs or single != self._single_output:
            raise ValueError(
                f"y has {rows.n_outputs} output(s), {'one' if single else 'two'}-dimensional, but "
                f"the model was fitted with {self.model_.n_outputs}, "
                f"{'one' if self._single_output else 'two'}-dimensional: give the same outputs."
            )
        if isinstance(rows, Block):
            return rows
        if self.model_.needs_all_rows:
            return rows.read_all("a model that stores rows")
        return Stream(rows, rows.n_rows, progress)

    def _forget_groups(self) -> None:
        """Drop the predictions without groups, which are not those of another fit or more rows."""
        self.__dict__.pop("_left_out", None)


Regressor = TypeVar("Regressor", bound=UnlearningRegressor)


class RecentRows(Generic[Regressor]):
    """A model of the recent rows of a stream: of a window, or of rows that count less with age.

    Args:
        model: fitted to rows that show the range of what follows.
        window: so many of the latest rows count; these are kept, and older ones forgotten.
        half_life: a row counts half after so many further rows; no rows are kept.

    The rows of the fit itself are in neither: begin with ``model.empty_copy()`` to leave them out.
    """

    def __init__(
        self, model: Regressor, *, window: int | None = None, half_life: float | None = None
    ) -> None:
        if (window is None) == (half_life is None):
            raise ValueError("give window, in rows, or half_life, in rows, and not both.")
        if not (window or half_life or 0) > 0:
            raise ValueError(f"window={window!r} or half_life={half_life!r} must be positive.")
        check_is_fitted(model)
        self.model = model
        self._window, self._half_life = window, half_life
        self._rows: deque[tuple[Array, Array]] = deque()

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add rows, in the order of their arrival, and let old ones go."""
        inputs, targets = np.asarray(X), np.asarray(y)
        if self._half_life is not None:
            self.model.decay(0.5 ** (len(inputs) / self._half_life))
        self.model.partial_fit(inputs, targets)
        if self._window is not None:
            self._rows.append((inputs, targets))
            surplus = sum(len(part) for part, _ in self._rows) - self._window
            while surplus > 0:
                surplus -= self._forget_oldest(surplus)
        return self

    def _forget_oldest(self, most: int) -> int:
        X, y = self._rows.popleft()
        self.model.forget(X[:most], y[:most])
        if len(X) > most:
            self._rows.appendleft((X[most:], y[most:]))
        return min(most, len(X))
