"""The kernel that random features estimate, by quadrature."""

from rwf.kernels.expected.kernel import AccuracyWarning, ExpectedKernel

__all__ = ["AccuracyWarning", "ExpectedKernel"]
