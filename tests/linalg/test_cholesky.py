"""M = I + AᵀA = LLᵀ, however A is given and however badly it is scaled."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from rwf.errors import NotPositiveDefiniteError
from rwf.linalg.cholesky import (
    MANY_ROWS,
    Factor,
    factor_gram,
    factor_rows,
    resolvable_identity,
    stack_triangle,
)


@given(
    n=st.integers(1, 30),
    p=st.integers(1, 20),
    exponent=st.integers(-6, 12),
    seed=st.integers(0, 99),
)
def test_the_factor_of_rows_is_lower_triangular_and_multiplies_to_the_matrix(n, p, exponent, seed):
    A = 10.0**exponent * np.random.default_rng(seed).normal(size=(n, p))
    L = factor_rows(A).L
    M = np.eye(p) + A.T @ A
    assert (np.triu(L, 1) == 0).all()
    assert (np.diag(L) > 0).all()
    assert_allclose(L @ L.T, M, atol=1e-12 * np.abs(M).max())


def test_qr_and_cholesky_give_the_same_factor(rng):
    A = rng.normal(3.0, 2.0, (30, 7))
    by_qr = stack_triangle(np.eye(7), A)
    by_qr *= np.sign(np.diag(by_qr))[:, None]
    assert_allclose(factor_gram(A.T @ A).L, by_qr.T, rtol=1e-12, atol=1e-13)


def test_two_triangles_stack_like_their_rows(rng):
    top, rows = np.triu(rng.normal(size=(6, 6))), np.triu(rng.normal(size=(6, 6)))
    R = stack_triangle(top, rows, triangular=True)
    assert_allclose(R.T @ R, top.T @ top + rows.T @ rows, atol=1e-12)


def test_log_determinant_and_inverse_are_those_of_the_matrix(rng):
    A = rng.normal(3.0, 2.0, (12, 5))
    M = np.eye(5) + A.T @ A
    factor = factor_gram(A.T @ A)
    assert_allclose(factor.log_determinant, np.linalg.slogdet(M)[1], rtol=1e-12)
    assert_allclose(factor.inverse(), np.linalg.inv(M), rtol=1e-9)
    assert_allclose(factor.inverse_diagonal(), np.diag(np.linalg.inv(M)), rtol=1e-9)


def test_rows_whose_gram_matrix_would_swallow_the_identity_keep_it():
    # Two columns equal up to 1e-9: AᵀA is singular in double precision, I + AᵀA is not.
    A = 1e9 * np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    assert resolvable_identity((A**2).sum(axis=0)) > 1
    # det(I + AᵀA) = 1 + ‖A‖² + det(A)², with det A = 1e9.
    assert_allclose(factor_rows(A).log_determinant, np.log(1 + (A**2).sum() + 1e18), rtol=1e-7)


def test_jitter_is_reported_and_bounded():
    assert factor_gram(np.eye(3)).jitter == 0.0
    slightly_negative = np.diag([1e12, -1.0 - 1e-6])
    assert 0 < factor_gram(slightly_negative).jitter <= 1e-9 * (1e12 + 1)
    with pytest.raises(NotPositiveDefiniteError, match="Raise the noise variance"):
        factor_gram(np.diag([5.0, -40.0]))


def test_factor_is_a_value():
    assert Factor(np.eye(2)).log_determinant == 0.0


def test_many_rows_are_whitened_as_accurately_as_by_substitution(rng):
    x = np.sort(rng.uniform(size=300))
    K = np.exp(-0.5 * ((x[:, None] - x) / 0.3) ** 2)
    factor = factor_gram(1e11 * K)  # its triangle has a condition number of five millions
    V = rng.normal(size=(MANY_ROWS, 300))
    many = V @ factor.L.T
    few = many.copy()
    factor.whiten(many)
    for row in few:
        factor.whiten(row[None])
    assert np.abs(few - V).max() > 1e-11  # so that there is something to lose
    assert np.abs(many - V).max() < 3 * np.abs(few - V).max()


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is one core, and so one thread")
def test_the_inverse_is_the_same_by_any_number_of_threads(rng):
    L = factor_rows(rng.normal(size=(300, 300))).L
    with threadpool_limits(1, user_api="blas"):
        alone = Factor(L).inverse_diagonal()
    with threadpool_limits(2, user_api="blas"):
        together = Factor(L).inverse_diagonal()
    assert_array_equal(alone, together)
