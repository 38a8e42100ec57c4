"""Write docs/speed.md from the stored rows of the benchmarks, the newest of every case.

Example: python -m benchmarks docs
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

from benchmarks import (
    cluster,
    dense,
    install,
    large,
    latency,
    map_peers,
    maps,
    profile,
    sizes,
    tree,
)
from benchmarks.rows import newest

PAGE = Path(__file__).parent.parent / "docs" / "speed.md"

JOBS = {
    "pass": "build Z, accumulate moments",
    "threads": "the same on two threads",
    "evidence": "evidence and its gradient",
    "predict": "means and variances",
}

LATENCY = f"""\
CPU seconds of `RWFRegressor().fit` on one thread, each in a process of its own, and the same scaled
to a core of {latency.GFLOPS:.0f} GFLOP/s by the rate of the machine's own dgemm. A first fit
compiles what it needs, and counts the whole process, `import` included.

numba keeps compiled code beside the sources, or, if the user cannot write there, in the user's
cache folder: `~/.cache/numba` on Linux, or `numba` in `$XDG_CACHE_HOME`. The environment variable
`NUMBA_CACHE_DIR` names another folder, for example for jobs that start on machines without a home
directory."""

PROFILE = """\
Seconds of a second fit on one thread, by the stages of `fit_report_.seconds`. *Learning* finds the
hyperparameters, *conditioning* passes over all rows and finds the variances, *neighbours* learns
the nearest-neighbour process and its weight, *calibration* the density of errors; *report* compares
the fit with a constant and a line."""

DENSE = """\
A pass over N rows of D columns needs at least one `syrk`, whatever the features are. Times are
multiples of that bare product, or of the one in the last column, of the same shape in the same run.
Z is computed in blocks that stay in cache, in memory that is allocated once, with the targets as
further columns, so that one product gives all moments. Nyström features need a further triangular
product per row, as large as the `syrk`, and db4 one table lookup per input: these two have no
limit."""

LARGE = f"""\
`RWFRegressor({large.COLUMNS}).fit(folder, "y")` for a folder of Parquet files with {large.INPUTS}
columns in single precision: one pass checks and counts the rows and draws a sample, the
hyperparameters are fitted to that, and one pass gives the moments. Memory is the peak of the
process, libraries included. RMSE is against the signal without its noise of {large.NOISE}."""

SIZES = """\
The same pass of Mexican hats by its size, on one core: how much of its time a bare `dsyrk` takes,
and its flops, N·D·(D + 1), against the rate of the machine's own dgemm."""

MAPS = f"""\
{maps.POINTS:,} points and a square template, each case in a process of its own. `rwf.maps` computes
means, deviations and two quantiles, chunk by chunk; PyKrige's ordinary kriging with an exponential
variogram means and deviations, and verde's spline means only, both of the whole template at once.
Theirs is the largest template that they manage: cells are doubled from {map_peers.FIRST_CELLS:,}
until the process exceeds {map_peers.MEMORY / 1e9:.0f} GB or {map_peers.SECONDS:.0f} s.

Seconds are those to predict and to write a NetCDF file, without the fit. Memory is the peak of the
process, libraries included. *Unknowns* are features, forces, or the size of the kriging system, and
cost time as they buy accuracy: RMSE is that of the means, against the function without its noise of
{maps.NOISE}."""

FILES = f"""\
Models and their files: maps of simulated terrain, and `rwf.datasets.diamonds` with {sizes.PRICES:,}
stones. The table has all inputs and targets in double precision. Loaded models predict the same to
the last bit."""

PRICES = """\
Scores of held-out stones: coverage is that of 95 % intervals, of all stones and of the tenths of
the predicted price with the lowest and the highest; the last column is the lowest end of an
interval."""

CLUSTER = """\
A pass over a Dask array on clusters of processes on one machine, relative to one worker.
*Waiting* partitions sleep before they are computed, as if they came from a slow disk."""

INSTALL = f"""\
A new virtual environment. pip downloads every wheel, so that its seconds include the network.
Start-up is the fastest of {install.REPEATS} processes, by the wall clock and by CPU time."""


def stored_page() -> str:
    """The page that the stored rows make."""
    return page(
        newest("latency", latency.Row),
        newest("profile", profile.Row),
        newest("dense", dense.Row),
        newest("tree", tree.Row),
        newest("large", large.Row),
        newest("maps", maps.Row),
        newest("sizes", sizes.Row),
        newest("cluster", cluster.Row),
        newest("install", install.Row),
    )


def page(
    fits: list[latency.Row],
    profiles: list[profile.Row],
    passes: list[dense.Row],
    trees: list[tree.Row],
    files: list[large.Row],
    rasters: list[maps.Row],
    models: list[sizes.Row],
    clusters: list[cluster.Row],
    environments: list[install.Row],
) -> str:
    """The page that these rows make."""
    parts = [
        _latency(fits),
        _growth(fits),
        _profile(profiles),
        _dense(passes),
        _tree(trees),
        _large(files),
        _maps(rasters),
        _sizes(models),
        _cluster(clusters),
        _install(environments),
    ]
    return "\n".join(["# Speed", "", *(line for part in parts if part for line in [*part, ""])])


def _latency(rows: list[latency.Row]) -> list[str]:
    rows = [row for row in rows if row.case not in latency.GROWTH]
    table = [
        "| case | N | d | CPU s | at 50 GFLOP/s | at most |",
        "|---" * 6 + "|",
        *(
            f"| {row.case} | {row.rows:,} | {row.inputs} | {row.seconds:.2f} | {row.scaled:.2f} "
            f"| {_limit(row)} |"
            for row in rows
        ),
        "",
    ]
    again = "Again: `python -m benchmarks latency --out benchmarks/latency.jsonl`."
    return ["## Fits", "", LATENCY, "", *(table if rows else ()), again]


def _growth(rows: list[latency.Row]) -> list[str]:
    """Time by rows, as multiples of those before; nothing if there are no rows."""
    rows = sorted((row for row in rows if row.case in latency.GROWTH), key=lambda row: row.rows)
    if not rows:
        return []
    times = [row.scaled for row in rows]
    factors = ["–", *(f"{b / a:.2f}" for a, b in pairwise(times))]
    return [
        "## More and more rows",
        "",
        "A sine with a jump on one column; seconds as above, and as multiples of the row before.",
        "",
        "| N | CPU s | at 50 GFLOP/s | of the time before |",
        "|---" * 4 + "|",
        *(
            f"| {row.rows:,} | {row.seconds:.2f} | {row.scaled:.2f} | {factor} |"
            for row, factor in zip(rows, factors, strict=True)
        ),
        "",
        f"From {latency.LARGE:,} rows on, time is proportional to N^{latency.slope(rows):.2f}. "
        "Again:",
        "`python -m benchmarks latency --growth --out benchmarks/latency.jsonl`.",
    ]


def _profile(rows: list[profile.Row]) -> list[str]:
    """Shares of stages; nothing if there are no rows."""
    if not rows:
        return []
    stages = list(dict.fromkeys(name for row in rows for name in row.stages))
    shares = [[row.stages.get(name, 0.0) / row.seconds for name in stages] for row in rows]
    return [
        "## Where the time goes",
        "",
        PROFILE,
        "",
        f"| case | N | d | s | {' | '.join(stages)} |",
        "|---" * (4 + len(stages)) + "|",
        *(
            f"| {row.case} | {row.rows:,} | {row.inputs} | {row.seconds:.2f} "
            f"| {' | '.join(f'{share:.0%}' for share in own)} |"
            for row, own in zip(rows, shares, strict=True)
        ),
        "",
        "Again: `python -m benchmarks profile --out benchmarks/profile.jsonl`.",
    ]


def _dense(rows: list[dense.Row]) -> list[str]:
    rates = [row.gemm_gflops for row in rows]
    bounded = [row for row in rows if row.job != "size"]
    sizes = [row for row in rows if row.job == "size"]
    return [
        "## The dense solver",
        "",
        DENSE,
        "",
        "| job | features | d | N | D | time | at most | bare product |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {JOBS[row.job]} | {row.features} | {row.inputs} | {row.rows:,} | {row.columns:,} "
            f"| {row.ratio:.2f} | {_limit(row)} | {row.bare} |"
            for row in bounded
        ),
        "",
        SIZES,
        "",
        "| d | N | D | rows a second | `dsyrk` takes | of the rate of dgemm |",
        "|---" * 6 + "|",
        *(
            f"| {row.inputs} | {row.rows:,} | {row.columns:,} | {row.rows / row.seconds:,.0f} "
            f"| {1 / row.ratio:.0%} | {_share_of_gemm(row):.0%} |"
            for row in sizes
        ),
        "",
        f"Cores of {min(rates):.0f} to {max(rates):.0f} GFLOP/s (dgemm), with other load.",
        "Again: `python -m benchmarks dense --out benchmarks/dense.jsonl`, on a quiet machine.",
    ]


def _share_of_gemm(row: dense.Row) -> float:
    """Flops that a pass cannot do without, per second, over those of the machine's own product."""
    return row.rows * row.columns * (row.columns + 1) / row.seconds / (1e9 * row.gemm_gflops)


def _limit(row: dense.Row | latency.Row) -> str:
    if row.limit is None:
        return "–"
    return f"{row.limit:.2f}" if row.within else f"**{row.limit:.2f}, missed**"


def _tree(rows: list[tree.Row]) -> list[str]:
    rates = [row.gemm_gflops for row in rows]
    return [
        "## The multifrontal solver",
        "",
        "CPU seconds of one core, and bytes. *Work* is assembly, factor and selected inverse.",
        "",
        "| case | N | D | largest front | work, s | predictions | s | memory, GB |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.case} | {row.rows:,} | {row.columns:,} | {row.largest_front:,} "
            f"| {row.work:.2f} | {row.predicted:,} | {row.predict:.2f} "
            f"| {row.peak_memory / 1e9:.2f} |"
            for row in rows
        ),
        "",
        f"Cores of {min(rates):.0f} to {max(rates):.0f} GFLOP/s (dgemm). Again: "
        "`python -m benchmarks tree --out benchmarks/tree.jsonl`.",
    ]


def _large(rows: list[large.Row]) -> list[str]:
    rates = [row.gemm_gflops for row in rows]
    return [
        "## Files larger than memory",
        "",
        LARGE,
        "",
        "| N | D | files, GB | seconds | rows/s of the passes | memory, GB | RMSE | coverage |",
        "|---|---|---|---|---|---|---|---|",
        *(
            f"| {row.rows:,} | {row.columns:,} | {row.file_gigabytes:.2f} | {row.seconds:.0f} "
            f"| {row.rows / (row.seconds - row.stages['shape']):,.0f} "
            f"| {row.peak_memory / 1e9:.2f} | {row.rmse:.4f} | {row.coverage:.3f} |"
            for row in rows
        ),
        "",
        f"{rows[0].cores} cores of {min(rates):.0f} to {max(rates):.0f} GFLOP/s (dgemm), with "
        "other load. Again:",
        "`python -m benchmarks large --out benchmarks/large.jsonl`.",
    ]


def _maps(rows: list[maps.Row]) -> list[str]:
    order = [*maps.MAPPERS]
    return [
        "## Rasters",
        "",
        MAPS,
        "",
        "| model | unknowns | computed | cells | seconds | cells/s | cells per CPU second "
        "| memory, GB | file, GB | RMSE |",
        "|---" * 10 + "|",
        *(
            f"| {row.case} | {row.unknowns:,} | {', '.join(row.outputs)} | {row.cells:,} "
            f"| {row.seconds:.0f} | {row.cells / row.seconds:,.0f} "
            f"| {row.cells / row.cpu_seconds:,.0f} | {row.peak_memory / 1e9:.2f} "
            f"| {row.file_gigabytes:.2f} | {row.rmse:.3f} |"
            for row in sorted(rows, key=lambda row: order.index(row.case))
        ),
        "",
        f"{_versions(rows)}; {rows[0].cores} cores, with other load. Again:",
        "`python -m benchmarks maps --out benchmarks/maps.jsonl`.",
    ]


def _versions(rows: list[maps.Row]) -> str:
    """The libraries with their versions, each once."""
    return ", ".join({f"{row.case.split(',')[0]} {row.version}": None for row in rows})


def _sizes(rows: list[sizes.Row]) -> list[str]:
    return [
        "## Model files",
        "",
        FILES,
        "",
        "| model | N | d | D | table, MB | file, MB | times the table | save, s | load, s |",
        "|---" * 9 + "|",
        *(
            f"| {row.case} | {row.rows:,} | {row.inputs} | {row.columns:,} "
            f"| {row.table_megabytes:.1f} | {row.file_megabytes:.1f} | {row.ratio:.1f} "
            f"| {row.save:.1f} | {row.load:.1f} |"
            for row in rows
        ),
        "",
        PRICES,
        "",
        "| model | RMSE | CRPS | coverage | lowest tenth | highest tenth | lowest end |",
        "|---" * 7 + "|",
        *(
            f"| {row.case} | {row.scores['rmse']:.1f} | {row.scores['crps']:.1f} "
            f"| {row.scores['coverage']:.3f} | {min(row.deciles):.3f} | {max(row.deciles):.3f} "
            f"| {row.lowest:.1f} |"
            for row in rows
            if row.case in sizes.WAYS
        ),
        "",
        "Again: `python -m benchmarks sizes --out benchmarks/sizes.jsonl`.",
    ]


def _cluster(rows: list[cluster.Row]) -> list[str]:
    loads = [row.load for row in rows]
    return [
        "## A cluster",
        "",
        CLUSTER,
        "",
        "| case | N | D | partitions | rows/s | times one worker | ZᵀZ differs by |",
        "|---|---|---|---|---|---|---|",
        *(
            f"| {row.case} | {row.rows:,} | {row.columns:,} | {row.partitions} "
            f"| {row.rows_per_second:,.0f} | {row.ratio:.2f} | {row.difference:.0e} |"
            for row in rows
        ),
        "",
        f"{rows[0].cores} cores, load average {min(loads):.0f} to {max(loads):.0f}. Again:",
        "`python -m benchmarks cluster --out benchmarks/cluster.jsonl`.",
    ]


def _install(rows: list[install.Row]) -> list[str]:
    return [
        "## Install and start",
        "",
        INSTALL,
        "",
        "| command | packages | MB on disk | s | import, s | of CPU | `--help`, s | of CPU |",
        "|---" * 8 + "|",
        *(
            f"| `{row.case}` | {row.packages} | {row.megabytes:.0f} | {row.install:.0f} "
            f"| {row.import_wall:.2f} | {row.import_cpu:.2f} | {_seconds(row.help_wall)} "
            f"| {_seconds(row.help_cpu)} |"
            for row in rows
        ),
        "",
        f"Python {rows[0].python}, load average "
        f"{max(row.load for row in rows):.0f}. `import` is of `RWFRegressor`. Again:",
        "`python -m benchmarks install --out benchmarks/install.jsonl`.",
    ]


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def main(given: list[str] | None = None) -> None:
    argparse.ArgumentParser(prog="benchmarks docs", description=__doc__).parse_args(given)
    PAGE.write_text(stored_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
