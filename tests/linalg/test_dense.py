"""Products in place do what numpy does, side by side; M = I + AᵀA = LLᵀ, however A is scaled."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from rwf.errors import NotPositiveDefiniteError
from rwf.linalg.dense import (
    MANY_ROWS,
    Factor,
    add_gram,
    add_outer,
    cholesky_inverse,
    factor_gram,
    factor_rows,
    lower_cholesky,
    lower_inverse,
    lower_of_inverse,
    multiply_lower,
    multiply_rows,
    multiply_symmetric,
    resolvable_identity,
    stack_triangle,
    whiten_rows,
)

sizes = st.integers(0, 12)
seeds = st.integers(0, 99)


def positive(p: int, seed: int, order: str = "C") -> np.ndarray:
    A = np.random.default_rng(seed).normal(size=(p + 3, p))
    return np.array(A.T @ A + np.eye(p), order=order)


@given(n=sizes, p=sizes, seed=seeds)
def test_gram_matrices_are_added_to_what_is_there(n, p, seed):
    rng = np.random.default_rng(seed)
    Z, before = rng.normal(size=(n, p)), rng.normal(size=(p, p))
    G = np.array(before, order="F")
    add_gram(G, Z)
    assert_allclose(np.triu(G), np.triu(before + Z.T @ Z), rtol=1e-12, atol=1e-12)
    assert (np.tril(G, -1) == np.tril(before, -1)).all()


@given(p=sizes, seed=seeds, order=st.sampled_from("CF"))
def test_cholesky_and_both_inverses(p, seed, order):
    M = positive(p, seed, order)
    kept = M.copy()
    L = lower_cholesky(M)
    assert_allclose(M, kept, rtol=0)
    assert_allclose(L, np.linalg.cholesky(M), rtol=1e-10, atol=1e-12)
    assert_allclose(lower_inverse(L), np.linalg.inv(L), rtol=1e-8, atol=1e-10)
    assert_allclose(cholesky_inverse(L), np.linalg.inv(M), rtol=1e-8, atol=1e-10)


@given(p=sizes, q=st.integers(0, 3), seed=seeds, order=st.sampled_from("CF"))
def test_of_symmetric_matrices_lower_triangles_are_enough(p, q, seed, order):
    M, rng = positive(p, seed), np.random.default_rng(seed)
    A = np.array(rng.normal(size=(p, q)), order=order)
    lower = np.asfortranarray(np.tril(M) + np.triu(rng.normal(size=(p, p)), 1))
    L = lower_cholesky(lower, 0.25)
    assert_allclose(L, np.linalg.cholesky(M + 0.25 * np.eye(p)), rtol=1e-10, atol=1e-12)
    inverse = np.linalg.inv(L @ L.T)
    assert_allclose(np.tril(lower_of_inverse(L)), np.tril(inverse), rtol=1e-8, atol=1e-10)
    single = lower_of_inverse(L, single=True)
    assert_allclose(np.tril(single), np.tril(inverse), atol=1e-5 * np.abs(inverse).max(initial=1))
    assert_allclose(multiply_symmetric(lower, A), M @ A, rtol=1e-10, atol=1e-10)
    add_outer(lower, A, 2.0, 0.5)
    assert_allclose(np.tril(lower), np.tril(0.5 * M + 2.0 * A @ A.T), rtol=1e-10, atol=1e-10)


@given(n=sizes, p=sizes, seed=seeds)
def test_rows_are_whitened_in_place(n, p, seed):
    L = lower_cholesky(positive(p, seed))
    Z = np.random.default_rng(seed).normal(size=(n, p))
    expected = np.linalg.solve(L, Z.T).T
    whiten_rows(L, Z)
    assert_allclose(Z, expected, rtol=1e-8, atol=1e-10)


@given(n=sizes, p=sizes, apart=st.integers(0, 3), seed=seeds)
def test_rows_may_stand_apart_in_every_routine(n, p, apart, seed):
    rng = np.random.default_rng(seed)
    wide = rng.normal(size=(n, p + apart))
    Z, kept = wide[:, :p], wide.copy()
    G, out = np.zeros((p, p), order="F"), np.full((n, 4 + apart), 7.0)
    add_gram(G, Z)
    assert_allclose(np.triu(G), np.triu(Z.T @ Z), rtol=1e-12, atol=1e-12)
    B = rng.normal(size=(p, 4))
    multiply_rows(Z, B, out[:, :4])
    if p:
        assert_allclose(out[:, :4], Z @ B, rtol=1e-12, atol=1e-12)
    assert (out[:, 4:] == 7.0).all()
    whiten_rows(lower_cholesky(positive(p, seed)), Z)
    assert (wide[:, p:] == kept[:, p:]).all()


def test_gram_matrices_in_single_precision_replace_what_was_there(rng):
    Z = rng.normal(size=(9, 4)).astype(np.float32)
    G = np.full((4, 4), 7.0, dtype=np.float32, order="F")
    add_gram(G, Z, keep=0.0)
    assert_allclose(np.triu(G), np.triu(Z.T @ Z), rtol=1e-5, atol=1e-6)
    add_gram(G, Z[:0], keep=0.0)
    assert not np.triu(G).any()


@given(n=sizes, p=sizes, apart=st.integers(0, 3), seed=seeds)
def test_rows_are_multiplied_by_a_triangle_in_place(n, p, apart, seed):
    L = lower_cholesky(positive(p, seed))
    wide = np.random.default_rng(seed).normal(size=(n, p + apart))
    expected = np.hstack([wide[:, :p] @ L.T, wide[:, p:]])
    multiply_lower(L, wide[:, :p])
    assert_allclose(wide, expected, rtol=1e-10, atol=1e-12)


def test_a_matrix_that_is_not_positive_definite_has_no_factor():
    assert lower_cholesky(np.diag([1.0, -1.0])) is None


def test_arrays_in_the_wrong_order_are_refused(rng):
    Z = rng.normal(size=(4, 3))
    with pytest.raises(AssertionError):
        add_gram(np.zeros((3, 3)), Z)
    with pytest.raises(AssertionError):
        add_gram(np.zeros((3, 3), order="F"), np.asfortranarray(Z))
    with pytest.raises(AssertionError):
        add_gram(np.zeros((3, 3), order="F"), Z.astype(np.float32))


def test_another_thread_runs_while_a_routine_works(rng):
    M = positive(1500, 0)
    seen, done = 0, threading.Event()

    def factor() -> None:
        for _ in range(3):
            lower_cholesky(M)
        done.set()

    worker = threading.Thread(target=factor)
    worker.start()
    while not done.is_set():
        seen += 1
    worker.join()
    # With the lock held, this loop would wake up only between the three calls.
    assert seen > 1000


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
