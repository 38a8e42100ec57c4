"""Print how much faster a pruned model predicts, and what that costs in accuracy.

Each line is one signal of Donoho and Johnstone and one prior: columns before and after, seconds of
means and of error bars as ratios before over after, and the error of f on new rows as the ratio
after over before. Example: python -m benchmarks pruning --columns 1000 --keep 100
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.timing import fastest
from rwf import RWFRegressor
from rwf.estimators import Prior
from rwf.signals import DONOHO_JOHNSTONE, donoho_johnstone
from rwf.threads import one_blas_thread

PRIORS: tuple[Prior, ...] = ("cells", "projected")


def measure(signal: str, prior: Prior, columns: int, keep: int | None, rows: int) -> str:
    rng = np.random.default_rng(0)
    known = donoho_johnstone(signal, rng, columns, regular=False)
    new = donoho_johnstone(signal, rng, rows, regular=False)
    whole = RWFRegressor(columns, prior=prior, random_state=0).fit(known.X, known.y)
    pruned = whole.prune(keep)

    def error(model: RWFRegressor) -> float:
        return float(np.sqrt(np.mean((model.predict(new.X) - new.f) ** 2)))

    def means(model: RWFRegressor) -> float:
        return fastest(lambda: model.predict(new.X))

    def bars(model: RWFRegressor) -> float:
        return fastest(lambda: model.predict(new.X, return_std=True))

    ratios = [seconds(whole) / seconds(pruned) for seconds in (means, bars)]
    counts = f"{whole.n_features_out_:>8}{pruned.n_features_out_:>8}"
    times = "".join(f"{ratio:>11.1f}×" for ratio in ratios)
    return f"{signal:<11}{prior:<11}{counts}{times}{error(pruned) / error(whole):>12.3f}"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks pruning", description=__doc__)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--keep", type=int, help="columns; by default as the tolerance allows")
    parser.add_argument("--rows", type=int, default=20_000)
    arguments = parser.parse_args(given)
    print(
        f"{'signal':<11}{'prior':<11}{'columns':>8}{'kept':>8}{'mean':>12}{'bars':>12}{'error':>12}"
    )
    with one_blas_thread():
        for signal in DONOHO_JOHNSTONE:
            for prior in PRIORS:
                line = measure(signal, prior, arguments.columns, arguments.keep, arguments.rows)
                print(line, flush=True)


if __name__ == "__main__":
    main()
