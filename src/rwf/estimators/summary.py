"""What a fitted regressor says about itself: a short text, and a card in a notebook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from rwf.data.wording import numeral
from rwf.fit.cards import Card, Line, report_lines

if TYPE_CHECKING:
    from rwf.diagnostics.scores import Scores
    from rwf.fit.report import FitReport
    from rwf.models.base import Model


class Summarized:
    """``summary()``, and the representation in notebooks, of a regressor with a fit report."""

    model_: Model
    fit_report_: FitReport

    def summary(self) -> str:
        """What was fitted, chosen and found, in about ten lines."""
        check_is_fitted(self)
        return str(self._card())

    def _card(self) -> Card:
        rows = f"{self.model_.n_rows:,g} rows"
        return Card(f"{type(self).__name__}, fitted to {rows}", tuple(self._lines()))

    def _lines(self) -> Iterator[Line]:
        usual, given = type(self)().get_params(), self.get_params()  # type: ignore[attr-defined]
        changed = [f"{k}={v!r}" for k, v in given.items() if repr(v) != repr(usual[k])]
        yield "parameters", ", ".join(changed) or "defaults"
        yield from self._table_lines()
        transform, of = self.model_.units.transform, ""
        if transform is not None:
            of = ", ".join("y" if bend is None else f"{bend} y" for bend in transform.names)
            yield "modelled", f"{of}; predictions are in the units of y"
        yield "features", f"{self.fit_report_.n_features:,} columns"
        noise = np.sqrt(np.atleast_1d(self.model_.summary.noise_variances))
        yield "noise sd", ", ".join(numeral(float(sd)) for sd in noise) + (of and f" of {of}")
        if self.model_.keeps_rows:
            yield "keeps rows", "predictions use the nearest training rows, and files hold all"
        yield from report_lines(self.fit_report_)

    def _table_lines(self) -> Iterator[Line]:
        """What only models of tables say."""
        return iter(())

    def _repr_html_inner(self) -> str:
        if not hasattr(self, "model_"):
            return super()._repr_html_inner()  # type: ignore[misc, no-any-return]
        return self._card().html()

    def _repr_mimebundle_(self, **options: object) -> dict[str, str]:
        found: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in found:
            found["text/html"] = self._repr_html_inner()
        return found


def score_lines(scores: Scores) -> Iterator[Line]:
    """Scores on held-out rows, beside those of trivial predictors."""
    yield "scored by", f"{scores.method}, {scores.n_rows:,} rows"
    parts = {
        "RMSE": [f"{name} {numeral(score.rmse)}" for name, score in scores.lines],
        "NLL": [f"{name} {score.nll:.4g}" for name, score in scores.lines],
        "coverage": [f"{name} {100 * score.coverage:.1f} %" for name, score in scores.lines],
    }
    for label, each in parts.items():
        yield label, ", ".join(each)
