r"""Scores of predictive distributions: error, sharpness and calibration.

Every metric compares targets y with predictive distributions, the noise included, in the units of
y: what ``predict_distribution`` returns, or means μ and standard deviations σ of normal ones.
:data:`METRICS` holds them under one call, ``metric(y, distribution)`` or ``metric(y, mean, std)``;
:data:`SKILLS` compare with a reference prediction, such as a constant or a straight line learned on
the training rows. Reference: Gneiting and Raftery (2007), Strictly proper scoring rules.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from rwf._types import Array
from rwf.uncertainty.student_t import StudentT

LEVEL = 0.95  # the nominal coverage of the intervals in METRICS
LEVELS = tuple(k / 20 for k in range(1, 20))  # nominal coverages that calibration_error compares
MeanStd = tuple[Array, Array]  # predictive means and standard deviations


@runtime_checkable
class Distribution(Protocol):
    """What a metric needs of predictive distributions, one for each row."""

    @property
    def mean(self) -> Array: ...

    @property
    def std(self) -> Array: ...

    def standardized(self, y: ArrayLike) -> Array: ...

    def logpdf(self, y: ArrayLike) -> Array: ...

    def cdf(self, y: ArrayLike) -> Array: ...

    def interval(self, coverage: float = 0.95) -> tuple[Array, Array]: ...

    def crps(self, y: ArrayLike) -> Array: ...


Predicted = Distribution | MeanStd | tuple[ArrayLike, ArrayLike]
"""Predictive distributions, or means and standard deviations of normal ones."""


@dataclass(frozen=True)
class Metric:
    """A named score of predictions, and which way is better."""

    name: str  # as printed in tables
    better: Literal["lower", "higher", "nominal"]  # nominal: close to LEVEL
    function: Callable[[Array, Distribution], float]  # a mean over rows

    def __call__(
        self, y: ArrayLike, mean: ArrayLike | Distribution, std: ArrayLike | None = None
    ) -> float:
        return self.function(*_compared(y, mean, std))

    def of(self, y: ArrayLike, prediction: Predicted) -> float:
        """The score of a distribution, or of a pair of means and standard deviations."""
        return self(y, prediction) if isinstance(prediction, Distribution) else self(y, *prediction)


def rmse(y: ArrayLike, mean: ArrayLike) -> float:
    r"""Root mean squared error, :math:`\sqrt{\tfrac1n \sum_i (y_i - \mu_i)^2}`."""
    y, mean = _aligned(y=y, mean=mean)
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def crps(y: ArrayLike, mean: ArrayLike | Distribution, std: ArrayLike | None = None) -> float:
    r"""Continuous ranked probability score, in closed form; that of N(μ, σ²) is

    .. math::
        \int \bigl(F(x) - 1\{y \le x\}\bigr)^2 dx
        = \sigma \Bigl[ z\,(2\Phi(z) - 1) + 2\varphi(z) - \tfrac{1}{\sqrt\pi} \Bigr],
        \qquad z = \frac{y - \mu}{\sigma}.
    """
    y, p = _compared(y, mean, std)
    return float(np.mean(p.crps(y)))


def nll(y: ArrayLike, mean: ArrayLike | Distribution, std: ArrayLike | None = None) -> float:
    r"""Negative log predictive density, of normals :math:`z^2/2 + \log\sigma\sqrt{2\pi}`."""
    y, p = _compared(y, mean, std)
    return float(-np.mean(p.logpdf(y)))


def pit(y: ArrayLike, mean: ArrayLike | Distribution, std: ArrayLike | None = None) -> Array:
    """F(y) of every row, the probability integral transform: uniform if predictions are right."""
    y, p = _compared(y, mean, std)
    return p.cdf(y)


def coverage(
    y: ArrayLike,
    mean: ArrayLike | Distribution,
    std: ArrayLike | None = None,
    level: float = LEVEL,
) -> float:
    r"""Share of targets inside the central interval that should hold ``level`` of them.

    .. math::
        \tfrac1n \sum_i 1\{ |F_i(y_i) - \tfrac12| \le \tfrac12 \text{level} \}.
    """
    return float(calibration_curve(y, mean, std, (level,))[0])


def interval_width(std: ArrayLike | Distribution, level: float = LEVEL) -> float:
    """Mean width of the central intervals that :func:`coverage` counts."""
    if isinstance(std, Distribution):
        _, p = _compared(std.mean, std, None)
    else:
        _, p = _compared(np.zeros_like(std), np.zeros_like(std), std)
    low, high = p.interval(_checked(level))
    return float(np.mean(high - low))


def calibration_curve(
    y: ArrayLike,
    mean: ArrayLike | Distribution,
    std: ArrayLike | None = None,
    levels: Sequence[float] = LEVELS,
) -> Array:
    """The coverage of the central interval of each level, shape (levels,)."""
    off = np.abs(pit(y, mean, std) - 0.5)
    return np.array([np.mean(off <= _checked(level) / 2) for level in levels])


def calibration_error(
    y: ArrayLike,
    mean: ArrayLike | Distribution,
    std: ArrayLike | None = None,
    levels: Sequence[float] = LEVELS,
) -> float:
    """Mean absolute difference between nominal and observed coverage over the levels.

    Zero for a calibrated prediction, up to the noise of counting rows.
    """
    return float(np.mean(np.abs(calibration_curve(y, mean, std, levels) - np.asarray(levels))))


METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("rmse", "lower", lambda y, p: rmse(y, p.mean)),
            Metric("crps", "lower", crps),
            Metric("nll", "lower", nll),
            Metric("coverage", "nominal", coverage),
            Metric("width", "lower", lambda y, p: interval_width(p)),
            Metric("calibration_error", "lower", calibration_error),
        )
    }
)
"""Every metric by its name; coverage and width are those of :data:`LEVEL` intervals."""


@dataclass(frozen=True)
class Skill:
    r"""The gain of a prediction over a reference prediction of the same targets.

    .. math::
        1 - S / S_\text{ref} \quad\text{(relative)}, \qquad S_\text{ref} - S \quad\text{(otherwise)}

    Both are zero for the reference itself. RMSE and CRPS are relative, at most one; NLL has no
    natural zero, so its skill is a difference, in nats per row.
    """

    metric: Metric  # the score S, for which lower is better
    relative: bool  # whether S is at best zero
    better: Literal["higher"] = "higher"

    def __call__(self, y: ArrayLike, prediction: Predicted, reference: Predicted) -> float:
        score, other = self.metric.of(y, prediction), self.metric.of(y, reference)
        if not self.relative:
            return other - score
        if other == 0:
            raise ValueError(
                f"the reference has {self.metric.name} 0, which nothing can improve on. "
                "Compare with another reference, or leave the skill out."
            )
        return 1 - score / other


SKILLS: Mapping[str, Skill] = MappingProxyType(
    {
        "rmse": Skill(METRICS["rmse"], relative=True),
        "crps": Skill(METRICS["crps"], relative=True),
        "nll": Skill(METRICS["nll"], relative=False),
    }
)
"""The skills by the name of their score."""


def constant_reference(y_train: ArrayLike, n: int) -> MeanStd:
    r"""The training mean at n rows: :math:`N(\bar y,\, s^2 (1 + 1/n_\text{train}))`."""
    (y,) = _aligned(y_train=y_train)
    if len(y) < 2:
        raise ValueError("one training row has no variance. Pass at least two.")
    std = y.std(ddof=1) * np.sqrt(1 + 1 / len(y))
    return np.full(n, y.mean()), np.full(n, std)


def linear_reference(X_train: ArrayLike, y_train: ArrayLike, X: ArrayLike) -> MeanStd:
    """:func:`least_squares` on unweighted training rows, at rows X, shape (n, d)."""
    (A,), (y,), (B,) = _aligned(X_train=X_train), _aligned(y_train=y_train), _aligned(X=X)
    found = least_squares(A, y, np.ones(len(y)), B)
    if found is None:
        raise ValueError(
            f"{len(y)} training rows leave nothing to estimate the noise of a line in "
            f"{A.shape[1]} columns. Pass more rows, or compare with constant_reference."
        )
    return found


def least_squares(A: Array, y: Array, weights: Array, X: Array) -> MeanStd | None:
    r"""Ordinary least squares with an intercept on rows A with positive weights, at rows X.

    .. math::
        N\bigl(\hat y(x),\; s^2 (1 + h(x))\bigr), \qquad
        s^2 = \frac{\|y - \hat y\|^2}{n_\text{train} - r - 1},

    with h the leverage and r the rank of the centred inputs, so that constant and repeated columns
    are harmless. ``None`` if there are at most r + 1 rows.
    """
    w = weights / weights.mean()
    center, middle = np.average(A, axis=0, weights=w), float(np.average(y, weights=w))
    scale = np.sqrt(np.average((A - center) ** 2, axis=0, weights=w))
    varies = scale > 1e-12 * np.maximum(np.abs(center), 1e-300)
    root = np.sqrt(w)
    U, singular, Vt = np.linalg.svd(
        root[:, None] * (A - center)[:, varies] / scale[varies], full_matrices=False
    )
    r = int(np.sum(singular > 1e-9 * singular.max(initial=0.0)))
    if len(y) <= r + 1:
        return None
    Q = ((X - center)[:, varies] / scale[varies]) @ (Vt[:r].T / singular[:r])
    target = root * (y - middle)
    b = U[:, :r].T @ target
    residual = target - U[:, :r] @ b
    variance = residual @ residual / (len(y) - r - 1)
    leverage = 1 / len(y) + np.einsum("nr,nr->n", Q, Q)
    return middle + Q @ b, np.sqrt(variance * (1 + leverage))


def _compared(
    y: ArrayLike, mean: ArrayLike | Distribution, std: ArrayLike | None
) -> tuple[Array, Distribution]:
    """Targets and predictive distributions, checked."""
    if isinstance(mean, Distribution):
        if std is not None:
            raise ValueError("a distribution has its own std. Pass it alone.")
        y, *_ = _aligned(y=y, mean=mean.mean, std=mean.std)
        return y, mean
    if std is None:
        raise ValueError("std is missing. Pass means and standard deviations, or a distribution.")
    y, mean, std = _aligned(y=y, mean=mean, std=std)
    return y, StudentT.normal(mean, _positive(std))


def _aligned(**named: ArrayLike) -> list[Array]:
    """The arguments as finite float64 arrays of one shape: nothing is broadcast."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in named.items()}
    if len({array.shape for array in arrays.values()}) > 1:
        seen = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"Shapes differ: {seen}. Pass arrays of one shape, e.g. mean.ravel().")
    for name, array in arrays.items():
        if array.size == 0:
            raise ValueError(f"{name} is empty. Pass at least one row.")
        bad = np.flatnonzero(~np.isfinite(array))
        if bad.size:
            raise ValueError(
                f"{name} has {bad.size} non-finite values, the first at {bad[0]}. "
                "Drop those rows, or mend what produced them."
            )
    return list(arrays.values())


def _positive(std: Array) -> Array:
    if np.any(std <= 0):
        raise ValueError(
            f"std must be positive; the smallest is {std.min():.3g}. "
            "Pass predictive standard deviations that include the noise, not variances of f."
        )
    return std


def _checked(level: float) -> float:
    if not 0 < level < 1:
        raise ValueError(f"level={level} is not a probability. Pass one inside (0, 1), e.g. 0.95.")
    return level
