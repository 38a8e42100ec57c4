"""Routines called by their addresses do what numpy does, and do it side by side."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from rwf.linalg.blas import (
    add_gram,
    cholesky_inverse,
    lower_cholesky,
    lower_inverse,
    multiply_lower,
    multiply_rows,
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
