"""The expected kernel of random features, by closed forms and quadrature."""

from rwf.kernels.expected.kernel import AccuracyWarning, ExpectedKernel

__all__ = ["AccuracyWarning", "ExpectedKernel"]
