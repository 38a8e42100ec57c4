r"""Feature maps as a GPyTorch kernel: wavelets as a part of GPyTorch and BoTorch models.

.. math:: k(x, x') = \sum_j v_j\, z_j(x)\, z_j(x')

The matrix of n rows is :math:`Z\,\mathrm{diag}(v)\,Z^\top`, handed on by its root, so that GPyTorch
solves in p columns where these are fewer than rows. Features and their slopes by x and by θ are
computed by rwf, in double precision on the CPU; autograd does the rest. This module needs PyTorch
and GPyTorch: ``pip install "rwf[gpytorch]"``.
"""

from __future__ import annotations

from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from rwf._types import Array
from rwf.data.scaling import BEND, FAR, Standardizer
from rwf.estimators.base import FeatureRegressor
from rwf.features import (
    ConstantFeatures,
    FeatureMap,
    FourierFeatures,
    LinearFeatures,
    RidgeFeatures,
    Stack,
    WaveletFeatures,
)
from rwf.features.base import row_chunks
from rwf.features.inducing import LOG_SCALES, NystromFeatures
from rwf.features.local import LocalAtoms
from rwf.wavelets import MexicanHat, OrientedWavelet, RadialWavelet, TensorWavelet

try:
    import torch
    from gpytorch.kernels import Kernel
    from linear_operator.operators import (
        LowRankRootLinearOperator,
        MatmulLinearOperator,
        RootLinearOperator,
    )
    from torch.autograd.function import once_differentiable
except ImportError as error:
    raise ImportError(
        'rwf.integrations.gpytorch needs PyTorch and GPyTorch: pip install "rwf[gpytorch]".'
    ) from error

Tensor: TypeAlias = Any  # torch.Tensor, where torch is installed


class FeatureKernel(Kernel):  # type: ignore[misc]
    r"""k(x, x′) = Σ v_j z_j(x) z_j(x′) of a feature map, for GPyTorch.

    Wrap it in a ``ScaleKernel`` to learn an amplitude. There are first derivatives by x, for
    acquisition functions, and by θ if that is learned, but no second derivatives.

    Args:
        features: the map, such as ``features_`` of a fitted :class:`~rwf.RandomWaveletFeatures`.
        prior_variances: v, one number or shape (p,).
        learn_hyperparameters: whether θ, such as the logarithms of length-scales, is a parameter
            to train, within the map's bounds.
        scaler: units in which the map takes its inputs; ``None`` if it takes them as they are.
        **kernel: parameters of every GPyTorch kernel, such as ``active_dims``.
    """

    is_stationary = False

    def __init__(
        self,
        features: FeatureMap | Stack,
        prior_variances: ArrayLike = 1.0,
        *,
        learn_hyperparameters: bool = False,
        scaler: Standardizer | None = None,
        **kernel: Any,  # noqa: ANN401
    ) -> None:
        super().__init__(**kernel)
        variances = np.asarray(prior_variances, dtype=np.float64)
        if variances.shape not in ((), (features.n_features,)) or not (variances >= 0).all():
            raise ValueError(
                f"prior_variances of shape {variances.shape}: give one number that is not "
                f"negative, or {features.n_features} of them, one per column."
            )
        self.features = features
        self.scaler = scaler
        self.register_buffer("prior_deviations", torch.as_tensor(np.sqrt(variances)))
        theta = torch.as_tensor(features.theta.copy())
        self.register_parameter(
            "theta", torch.nn.Parameter(theta, requires_grad=learn_hyperparameters)
        )
        self.register_buffer("theta_bounds", torch.as_tensor(features.bounds))

    @classmethod
    def of(
        cls, model: FeatureRegressor, output: int = 0, *, learn_hyperparameters: bool = False
    ) -> Self:
        """The prior over f of a fitted regressor, in the units of its data.

        With a constant mean at the mean of its training targets and a noise of
        ``noise_variance_``, a GPyTorch model has the posterior of the regressor, without what rwf
        adds to it: calibration, reversion to the prior variance, the neighbor blend,
        heteroscedastic noise, factors of rows with ``noise="student"``, and the Nyström residual
        variance. It needs the dense solver.
        """
        check_is_fitted(model)
        fitted = model.model_.gaussian
        if fitted is None or fitted.solver != "dense":
            raise ValueError(
                "a tree of atoms, or a sampled set of them, has no feature matrix: fit with "
                "solver='dense' and prior='nystrom', 'multiscale', 'adaptive' or 'random_features'."
            )
        return cls(
            fitted.features,
            model.model_.summary.prior_variances[:, output],
            learn_hyperparameters=learn_hyperparameters,
            scaler=model.model_.units,
        )

    def root(self, x: Tensor) -> Tensor:
        """Z diag(√v), shape (…, n, p), in the precision of x."""
        rows = x if self.scaler is None else in_units(self.scaler, x)
        theta = self.theta.clamp(*self.theta_bounds.T)
        Z = _Columns.apply(rows.reshape(-1, rows.shape[-1]), theta, self.features)
        deviations = self.prior_deviations.to(Z)
        return (Z * deviations).reshape(*rows.shape[:-1], -1)

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        **params: Any,  # noqa: ANN401
    ) -> Tensor:
        """The matrix between two sets of rows by its root, or its diagonal."""
        same = torch.equal(x1, x2)
        root = self.root(x1)
        other = root if same else self.root(x2)
        if diag:
            return (root * other).sum(-1)
        if not same:
            return MatmulLinearOperator(root, other.mT)
        few = root.shape[-1] < root.shape[-2]
        return LowRankRootLinearOperator(root) if few else RootLinearOperator(root)


class _Columns(torch.autograd.Function):  # type: ignore[misc]
    """Z of rows and θ, differentiable by the slopes of the map."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, theta: Tensor, features: FeatureMap | Stack) -> Tensor:  # noqa: ANN401
        ctx.save_for_backward(x)
        ctx.features = features.with_theta(_array(theta))
        return torch.as_tensor(ctx.features(_array(x))).to(x)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, R: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        (x,) = ctx.saved_tensors
        by_x, by_theta, _ = ctx.needs_input_grad
        rows, gradient = _array(x), _array(R)
        return (
            torch.as_tensor(input_slopes(ctx.features, rows, gradient)).to(x) if by_x else None,
            torch.as_tensor(ctx.features.pull_back(rows, gradient)).to(R) if by_theta else None,
            None,
        )


def _array(values: Tensor) -> Array:
    return np.ascontiguousarray(values.detach().cpu().numpy(), dtype=np.float64)


def in_units(scaler: Standardizer, x: Tensor) -> Tensor:
    """:meth:`Standardizer.inputs`, differentiable."""

    def constant(values: ArrayLike) -> Tensor:
        return torch.as_tensor(np.asarray(values)).to(x.device)

    unit = ((x - constant(scaler.X.center)) / constant(scaler.X.scale)).clamp(-FAR, FAR)
    bend = scaler.logarithm
    if bend is not None:
        sign, center, scale = (constant(v) for v in (bend.sign, bend.unit.center, bend.unit.scale))
        bent = torch.log1p(BEND * (sign * unit - constant(bend.low)).clamp(min=0.0))
        unit = torch.where(constant(bend.chosen), sign * (bent - center) / scale, unit)
    return unit[..., constant(scaler.columns)].to(x)


def input_slopes(features: FeatureMap | Stack, X: Array, R: Array) -> Array:
    """Σ_j R_nj ∂z_j(x_n)/∂x_n for a gradient R with respect to Z, shape (n, d)."""
    match features:
        case Stack():
            ends = np.cumsum([part.n_features for part in features.maps])[:-1]
            parts = zip(features.maps, np.split(R, ends, axis=1), strict=True)
            total: Array = np.sum([input_slopes(part, X, r) for part, r in parts], axis=0)
            return total
        case ConstantFeatures():
            return np.zeros_like(X)
        case LinearFeatures():
            return np.divide(R, np.sqrt(features.n_features))
        case FourierFeatures():
            return _fourier_slopes(features, X, R)
        case RidgeFeatures():
            return _ridge_slopes(features, X, R)
        case WaveletFeatures() | LocalAtoms():
            return _wavelet_slopes(features, X, R)
        case NystromFeatures():
            return _nystrom_slopes(features, X, R)
    raise TypeError(f"{type(features).__name__} has no slopes by its inputs.")


def _fourier_slopes(features: FourierFeatures, X: Array, R: Array) -> Array:
    W, m = features.frequencies * np.exp(-features.log_lengths), features.n_atoms
    P = X @ W.T
    slopes: Array = (R[:, m:] * np.cos(P) - R[:, :m] * np.sin(P)) @ W / np.sqrt(m)
    return slopes


def _ridge_slopes(features: RidgeFeatures, X: Array, R: Array) -> Array:
    atoms = features.atoms
    W = features.weights / (atoms.scales[:, None] * atoms.lengths)  # p = w·((x - t)/ℓ)/s
    P = X @ W.T - np.einsum("md,md->m", atoms.shifts, W)
    slopes: Array = (R * features.factors * features.wavelet.line(P)[1]) @ W
    return slopes


def _wavelet_slopes(features: WaveletFeatures | LocalAtoms, X: Array, R: Array) -> Array:
    psi, widths, slopes = features.wavelet, features.widths, np.empty_like(X)
    for rows in row_chunks(len(X), widths.size):
        U = (X[rows, None] - features.shifts) / widths  # (n, m, d)
        H = [r * features.factors for r in np.split(R[rows], psi.columns, axis=1)]
        if isinstance(psi, TensorWavelet):
            G = H[0][..., None] * _product_slopes(*psi.line(U))
        elif isinstance(psi, RadialWavelet):
            G = 2 * (H[0] * psi.slope(np.sum(U**2, axis=-1), U.shape[-1]))[..., None] * U
        else:
            assert isinstance(psi, OrientedWavelet)
            e = features.directions
            partials = psi.partials(np.sum(U**2, axis=-1), np.einsum("nmd,md->nm", U, e))
            G = np.zeros_like(U)
            for h, (d_q, d_p) in zip(H, partials, strict=True):
                G += 2 * (h * d_q)[..., None] * U + (h * d_p)[..., None] * e
        slopes[rows] = np.sum(G / widths, axis=1)
    return slopes


def _product_slopes(values: Array, slopes: Array) -> Array:
    """The gradient of a product over the last axis, from its factors and their slopes."""
    others = [
        np.prod(np.delete(values, k, axis=-1), axis=-1) * slopes[..., k]
        for k in range(values.shape[-1])
    ]
    return np.stack(others, axis=-1)


def _nystrom_slopes(features: NystromFeatures, X: Array, R: Array) -> Array:
    kernel, hat, slopes = features.kernel, MexicanHat(), np.zeros_like(X)
    G = solve_triangular(features.L, R.T, lower=True, trans="T").T  # gradient by k_T(x) = Lz(x)
    squares = np.exp(2 * LOG_SCALES)
    for block in range(kernel.n_blocks):
        T = kernel.coordinates(block, features.centers)
        amplitude = np.exp(kernel.log_variances[block])
        for rows in row_chunks(len(X), features.centers.size):
            U = kernel.coordinates(block, X[rows])[:, None] - T  # (n, m, d)
            Q = np.sum(U**2, axis=-1)
            terms = zip(kernel.weights(block)[0], squares, strict=True)
            by_q = amplitude * sum(w / s2 * hat.slope(Q / s2, X.shape[1]) for w, s2 in terms)
            own = np.einsum("nm,nmd->nd", 2 * G[rows] * by_q, U)
            slopes[rows] += own @ kernel.matrix(block).T
    return slopes
