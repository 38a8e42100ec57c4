"""Batches, seeds and numbers for torch."""

import torch

from experiments.baselines.tensors import batches, double, seeded


def test_batches_take_every_row_once_before_any_twice():
    with seeded(0):
        drawn = batches(23, 5)
        first = torch.cat([next(drawn) for _ in range(4)])
        second = torch.cat([next(drawn) for _ in range(4)])
    assert len(set(first.tolist())) == len(first) == 20
    assert first.tolist() != second.tolist()
    assert next(batches(23, 100)).tolist() == list(range(23))


def test_a_seed_gives_the_same_draws_and_leaves_those_outside_alone():
    torch.manual_seed(5)
    expected = torch.randn(3)
    torch.manual_seed(5)
    with seeded(1):
        first = torch.randn(3)
    assert torch.equal(torch.randn(3), expected)
    with seeded(1):
        assert torch.equal(torch.randn(3), first)
    with seeded(2):
        assert not torch.equal(torch.randn(3), first)


def test_threads_are_those_of_the_environment(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.setenv("OMP_NUM_THREADS", str(before + 1))
    with seeded(0):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_numbers_are_in_double_precision(rng):
    assert double(rng.normal(size=3).astype("float32")).dtype == torch.float64
