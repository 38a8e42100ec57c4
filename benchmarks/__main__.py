"""Run a benchmark by its name: python -m benchmarks dense --help."""

from __future__ import annotations

import argparse

from benchmarks import cluster, dense, docs, install, large, latency, maps, profile, sizes, tree

BENCHMARKS = {
    "cluster": cluster.main,
    "dense": dense.main,
    "install": install.main,
    "large": large.main,
    "maps": maps.main,
    "latency": latency.main,
    "profile": profile.main,
    "sizes": sizes.main,
    "tree": tree.main,
    "docs": docs.main,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("name", choices=BENCHMARKS, help="docs writes docs/speed.md from the rows")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="arguments of the benchmark")
    given = parser.parse_args()
    BENCHMARKS[given.name](given.rest)


if __name__ == "__main__":
    main()
