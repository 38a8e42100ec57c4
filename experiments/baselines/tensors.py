"""Mini-batches, seeds and numbers for torch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from rwf._types import Array


def batches(n: int, size: int) -> Iterator[torch.Tensor]:
    """Rows of one mini-batch after another, without end: every row once, then shuffled again.

    The last rows of a shuffle that do not fill a batch wait for the next one, so that all batches
    have one size. With a size of n or more every batch is all rows.
    """
    if size >= n:
        while True:
            yield torch.arange(n)
    while True:
        yield from torch.randperm(n)[: n - n % size].split(size)


@contextmanager
def seeded(random_state: int) -> Iterator[None]:
    """Within it torch draws from this seed alone, on as many threads as the environment names.

    torch's own generator, which libraries on torch use too, is put back at the end.
    """
    threads = os.environ.get("OMP_NUM_THREADS") or os.environ.get("OPENBLAS_NUM_THREADS")
    before = torch.get_num_threads()
    if threads:
        torch.set_num_threads(int(threads))
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(random_state)
            yield
    finally:
        torch.set_num_threads(before)


def double(values: Array) -> torch.Tensor:
    """Numbers for torch, in float64: kernel matrices in float32 lose their Cholesky factors."""
    return torch.as_tensor(values, dtype=torch.float64)
