"""Print how close dense passes over rows come to the matrix product that bounds them.

Building Z and adding up its moments cannot be faster than one ``syrk``, evidence with its gradient
not faster than three, and variances not faster than one ``trmm``. Each line gives the time of the
whole as a multiple of that bare product, of the same shape and on as many threads, and the most
that is allowed. Rows are taken a tenth at a time, in turn with the bare product, and the median of
the ten ratios counts; what cannot be taken apart is run three times. Seconds are CPU time on one
core, but for those of two threads. Every case runs in a process of its own. Example:
python -m benchmarks dense --rows 100000
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import numpy as np

import rwf
from benchmarks.rows import append, in_own_process
from benchmarks.timing import Pair, gemm_rate, typical_ratio
from rwf._types import Array
from rwf.data.rows import Block, blocks
from rwf.data.scaling import Standardizer
from rwf.features import (
    ConstantFeatures,
    Family,
    FourierFamily,
    LinearFeatures,
    RidgeFamily,
    Stack,
    WaveletFamily,
)
from rwf.features.inducing import HatMixture, NystromFeatures
from rwf.features.lattice import draw_lattice
from rwf.inference.evidence import evidence
from rwf.inference.moments import accumulate, row_buffer
from rwf.linalg.dense import add_gram, call
from rwf.linalg.threads import in_parallel, one_blas_thread
from rwf.models.dense import DenseModel, Hyperparameters
from rwf.wavelets import CompactHat, ComplexMorlet, Daubechies, MexicanHat
from rwf.wavelets.measure import Measure, Rows

DATA = Measure(0.5, 2.0, Rows())
NOISE = 0.1
SLICES = 10
REPEATS = 3


def families(d: int) -> dict[str, Family]:
    """Every kind of random features with a fused loop."""
    length = float(np.sqrt(d))
    return {
        "Mexican hat": WaveletFamily(MexicanHat(), DATA, length),
        "compact hat": WaveletFamily(CompactHat(), DATA, length),
        "complex Morlet": WaveletFamily(ComplexMorlet(), DATA, length),
        "db4": WaveletFamily(Daubechies(4), DATA, length),
        "ridge": RidgeFamily(MexicanHat(), DATA, length),
        "Fourier": FourierFamily("se", length),
    }


def features(name: str, p: int, X: Array, rng: np.random.Generator) -> Stack:
    """About p columns over the inputs X."""
    d = X.shape[1]
    if name == "lattice":
        octaves = draw_lattice(CompactHat(), X[:10_000], p - 2, rng)
        return Stack((*octaves, ConstantFeatures(), LinearFeatures(d)))
    if name == "nystrom":
        kernel = HatMixture(np.zeros(1), np.zeros(1), np.full((1, d), 0.5 * np.log(d)))
        return Stack((NystromFeatures.at(kernel, X[:p], 1e-6),))
    return Stack((families(d)[name].draw(p, X, rng),))


@dataclass(frozen=True)
class Case:
    """What to run.

    Args:
        job: what is timed: "pass", "threads", "evidence" or "predict"; or "size", a pass
            as the others, of another size.
        features: of which kind.
        inputs: d.
        limit: the largest multiple of the bare product that is allowed.
        share: of the number of rows on the command line.
        columns: the same for columns, as a multiple.
    """

    job: str
    features: str
    inputs: int
    limit: float | None = None
    share: float = 1.0
    columns: float = 1.0

    @property
    def name(self) -> str:
        sizes = f", {self.columns:g} D, {self.share:g} N" if self.job == "size" else ""
        return f"{self.job}, {self.features}, d = {self.inputs}{sizes}"


GRADED = ("Mexican hat", "compact hat", "complex Morlet", "ridge", "Fourier")
CASES = {
    case.name: case
    for case in (
        *(Case("pass", name, d, 1 / 0.75) for d in (1, 10) for name in GRADED),
        Case("pass", "lattice", 1, 1 / 0.75),
        *(Case("pass", "db4", d, None, 0.2) for d in (1, 10)),
        *(Case("pass", "nystrom", d, None, 0.2) for d in (1, 10)),
        *(Case("threads", "Mexican hat", d, 1 / 1.7) for d in (1, 10)),
        *(Case("evidence", "Mexican hat", d, 3.2, 0.5) for d in (1, 10)),
        *(Case("predict", "Mexican hat", d, 1.6) for d in (1, 10)),
        *(Case("size", "Mexican hat", 10, None, 1.0, columns) for columns in (0.1, 0.3)),
        Case("size", "Mexican hat", 10, None, 0.1, 3.0),
        *(Case("size", "Mexican hat", d, None, 0.1) for d in (1, 3, 10, 30, 100)),
        *(Case("size", "Mexican hat", 10, None, share) for share in (0.01, 0.03, 0.3)),
    )
}


@dataclass(frozen=True)
class Row:
    """One measurement; ``ratio`` is the time of the whole over that of the bare product."""

    case: str
    job: str
    features: str
    inputs: int
    rows: int
    columns: int
    bare: str
    ratio: float
    limit: float | None
    seconds: float
    gemm_gflops: float
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()

    @property
    def within(self) -> bool:
        return self.limit is None or self.ratio <= self.limit


def bare_syrk(n: int, p: int) -> Callable[[], None]:
    """The products alone, of as many rows at a time as in a pass."""
    size = len(row_buffer(p))
    Z = np.random.default_rng(0).normal(size=(min(n, size), p))
    G = np.zeros((p, p), order="F")

    def job() -> None:
        for start in range(0, n, size):
            add_gram(G, Z[: min(size, n - start)])

    return job


def bare_trmm(n: int, p: int) -> Callable[[], None]:
    """The triangular products alone, in place."""
    size = len(row_buffer(p))
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(min(n, size), p))
    L = np.asfortranarray(np.eye(p) + np.tril(rng.normal(size=(p, p)), -1) / p**2)

    def job() -> None:
        for start in range(0, n, size):
            rows = min(size, n - start)
            call("dtrmm", "L", "L", "N", "N", p, rows, 1.0, L, p, Z, p)

    return job


def model(stack: Stack, rows: Block) -> DenseModel:
    """A model of given variances, that only has to predict."""
    hyperparameters = Hyperparameters(stack, np.zeros(len(stack.maps)), np.full(1, np.log(NOISE)))
    return DenseModel(
        units=Standardizer.learn(rows, ard=True),
        hyperparameters=hyperparameters,
        statistics=accumulate(stack, blocks(rows, stack.n_features), 1),
        learn_variances=False,
    )


def jobs(case: Case, stack: Stack, rows: Block) -> tuple[str, list[Pair]]:
    """The name of the bare product, and pairs of the whole and the bare that take as many rows."""
    p, n = stack.n_features, -(-len(rows) // SLICES)
    slices = list(rows.parts(n))
    if case.job in ("pass", "size"):
        syrk = bare_syrk(n, p)
        return "dsyrk", [(partial(one_pass, stack, part), syrk) for part in slices]
    if case.job == "threads":
        two, one = partial(on_threads, 2, stack), partial(on_threads, 1, stack)
        return "one thread", [(partial(two, part), partial(one, part)) for part in slices]
    if case.job == "evidence":
        priors, log_noise = np.zeros(len(stack.maps)), np.full(1, np.log(NOISE))
        whole_evidence = partial(evidence, stack, rows, stack.groups, priors, log_noise)
        return "dsyrk", [(whole_evidence, bare_syrk(len(rows), p))] * REPEATS
    fitted, trmm = model(stack, rows.part(slice(0, 20 * p))), bare_trmm(n, p)
    fitted.predict(rows.X[:2])  # compile, and fit the variances
    return "dtrmm", [(partial(fitted.predict, part.X), trmm) for part in slices]


def one_pass(stack: Stack, rows: Block) -> None:
    accumulate(stack, blocks(rows, stack.n_features), 1)


def on_threads(threads: int, stack: Stack, rows: Block) -> None:
    """The pass on several threads, which take turns at blocks."""

    def share(worker: int) -> None:
        mine = itertools.islice(blocks(rows, stack.n_features), worker, None, threads)
        accumulate(stack, mine, 1)

    in_parallel(share, range(threads))


def measure(case: Case, n: int, p: int) -> Row:
    rng = np.random.default_rng(1)
    n, p = int(n * case.share), int(p * case.columns)
    X = rng.normal(size=(n, case.inputs))
    rows = Block(X, np.sin(3 * X[:, :1]) + rng.normal(size=(n, 1)), np.ones(n))
    stack = features(case.features, p, X, rng)
    few = rows.part(slice(0, 8))
    accumulate(stack, [few], 1)  # compile
    evidence(stack, few, stack.groups, np.zeros(len(stack.maps)), np.zeros(1))
    bare, pairs = jobs(case, stack, rows)
    clock = time.perf_counter if case.job == "threads" else time.process_time
    taken, ratio = typical_ratio(pairs, clock)
    rate = gemm_rate()
    return Row(
        case=case.name,
        job=case.job,
        features=case.features,
        inputs=case.inputs,
        rows=n,
        columns=stack.n_features,
        bare=bare,
        ratio=ratio,
        limit=case.limit,
        seconds=taken,
        gemm_gflops=rate / 1e9,
    )


def report(row: Row) -> str:
    limit = "" if row.limit is None else f" of {row.limit:.2f}"
    return (
        f"{row.case:<34} N={row.rows} D={row.columns}: {row.ratio:.2f}{limit} × {row.bare}, "
        f"{row.seconds:.1f} s, gemm {row.gemm_gflops:.0f} GFLOP/s"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks dense", description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES), help="all, if none is named")
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    parser.add_argument("--here", action="store_true", help="one case in this process, as JSON")
    given = parser.parse_args(arguments)
    if given.here:
        case = CASES[given.cases[0]]
        if case.job != "threads":
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        with one_blas_thread():
            print(json.dumps(asdict(measure(case, given.rows, given.columns))))
        return
    for name in given.cases:
        sizes = ["--rows", given.rows, "--columns", given.columns]
        row = in_own_process(Row, "benchmarks.dense", [name, "--here", *sizes])
        print(report(row), "" if row.within else " TOO MUCH", flush=True)
        append(given.out, row)


if __name__ == "__main__":
    main()
