"""Print how close one pass over the rows comes to the matrix product that bounds it.

Building Z and accumulating its moments cannot be faster than one ``syrk``. Each line gives the
share of the pass that a bare ``syrk`` of the same shape takes, and the share of the machine's own
``gemm`` rate that the whole pass reaches. Example: python -m benchmarks --rows 100000
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import blas

import rwf
from rwf.features import Family, FourierFamily, RidgeFamily, Stack, WaveletFamily
from rwf.measures import Measure, Rows
from rwf.moments import accumulate
from rwf.rows import Block, block_rows, blocks
from rwf.threads import one_blas_thread
from rwf.wavelets import CompactHat, ComplexMorlet, Daubechies, MexicanHat

DATA = Measure(0.5, 2.0, Rows())


def families(d: int) -> dict[str, Family]:
    """Every kind of feature with a fused loop."""
    length = float(np.sqrt(d))
    return {
        "Mexican hat": WaveletFamily(MexicanHat(), DATA, length),
        "compact hat": WaveletFamily(CompactHat(), DATA, length),
        "complex Morlet": WaveletFamily(ComplexMorlet(), DATA, length),
        "db4": WaveletFamily(Daubechies(4), DATA, length),
        "ridge": RidgeFamily(MexicanHat(), DATA, length),
        "Fourier": FourierFamily("se", length),
    }


@dataclass(frozen=True)
class Row:
    """One measurement, on one core."""

    features: str
    rows: int
    columns: int
    inputs: int
    syrk_share: float  # seconds of a bare syrk / seconds of the pass
    gemm_share: float  # rate of the pass in flops of its syrk / rate of gemm
    gemm_gflops: float
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()


def fastest(job: Callable[[], object], repeats: int = 3) -> float:
    """Seconds of the fastest of several runs."""
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        job()
        seconds.append(time.perf_counter() - begun)
    return min(seconds)


def gemm_rate(size: int = 1500) -> float:
    """Flops per second of the machine's own dgemm."""
    A = np.asfortranarray(np.random.default_rng(0).normal(size=(size, size)))
    return 2 * size**3 / fastest(lambda: blas.dgemm(1.0, A, A))


def bare_syrk(n: int, p: int) -> float:
    """Seconds of the products alone, in blocks as the pass makes them."""
    size = min(n, block_rows(p))
    Z = np.random.default_rng(0).normal(size=(size, p))
    G = np.zeros((p, p), order="F")
    once = fastest(lambda: blas.dsyrk(1.0, Z.T, beta=1.0, c=G, overwrite_c=1))
    return once * n / size


def measure(name: str, family: Family, n: int, p: int, d: int, rate: float) -> Row:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    features = Stack((family.draw(p, X, rng),))
    rows = Block(X, rng.normal(size=(n, 1)), np.ones(n))
    features(X[:8])  # compile
    seconds = fastest(lambda: accumulate(features, blocks(rows, p), 1), repeats=2)
    flops = n * p * (p + 1)
    return Row(name, n, p, d, bare_syrk(n, p) / seconds, flops / seconds / rate, rate / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--inputs", type=int, nargs="+", default=[1, 10])
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args()
    with one_blas_thread():
        rate = gemm_rate()
        print(f"dgemm on one core: {rate / 1e9:.0f} GFLOP/s")
        print(f"{'features':<16}{'d':>4}{'syrk share':>12}{'gemm share':>12}")
        for d in arguments.inputs:
            for name, family in families(d).items():
                row = measure(name, family, arguments.rows, arguments.columns, d, rate)
                print(f"{name:<16}{d:>4}{row.syrk_share:>12.0%}{row.gemm_share:>12.0%}", flush=True)
                if arguments.out:
                    with arguments.out.open("a", encoding="utf-8") as lines:
                        lines.write(json.dumps(asdict(row)) + "\n")


if __name__ == "__main__":
    main()
