"""Print time and disk space of an installation, and the start-up times of library and command.

Every case is a new virtual environment, into which pip installs this checkout with wheels from the
package index, none of them from pip's cache. Example: python -m benchmarks install --out rows.jsonl
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path

import rwf
from benchmarks.rows import append

CHECKOUT = Path(__file__).parent.parent

CASES = {"pip install .": ".", 'pip install ".[cli]"': ".[cli]"}
"""What a user types, and what pip is given."""

IMPORT = "from rwf import RWFRegressor"
REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One environment: seconds by the wall clock, unless they are CPU time.

    Args:
        case: what was typed.
        install: seconds that pip took, downloads included.
        megabytes: on disk, beyond an environment with nothing but pip.
        packages: how many were installed, rwf included.
        import_wall: of a process that imports the regressor, the fastest of several.
        import_cpu: the least CPU time of these.
        help_wall: of ``rwf --help``, likewise; ``None`` where there is no command line.
        help_cpu: likewise.
        load: of the machine, meanwhile.
    """

    case: str
    install: float
    megabytes: float
    packages: int
    import_wall: float
    import_cpu: float
    help_wall: float | None
    help_cpu: float | None
    load: float
    python: str = platform.python_version()
    version: str = rwf.__version__
    machine: str = platform.processor() or platform.machine()


def measure(case: str) -> Row:
    with tempfile.TemporaryDirectory() as home:
        venv.create(home, with_pip=True)
        python = Path(home) / "bin" / "python"
        before, bare = _megabytes(Path(home)), _packages(python)
        begun = time.perf_counter()
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-cache-dir"]
        subprocess.run([*pip, "--disable-pip-version-check", CASES[case]], cwd=CHECKOUT, check=True)
        install = time.perf_counter() - begun
        after = _megabytes(Path(home))
        import_wall, import_cpu = _start([str(python), "-c", IMPORT])
        help_wall = help_cpu = None
        if "cli" in case:
            help_wall, help_cpu = _start([str(python.with_name("rwf")), "--help"])
        return Row(
            case=case,
            install=install,
            megabytes=after - before,
            packages=_packages(python) - bare,
            import_wall=import_wall,
            import_cpu=import_cpu,
            help_wall=help_wall,
            help_cpu=help_cpu,
            load=os.getloadavg()[0],
        )


def _megabytes(folder: Path) -> float:
    """Of all files, in the blocks that they take on disk."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_blocks * 512 for path in files) / 1e6


def _packages(python: Path) -> int:
    listed = subprocess.run(
        [str(python), "-m", "pip", "list", "--format", "json", "--disable-pip-version-check"],
        capture_output=True,
        check=True,
    )
    return len(json.loads(listed.stdout))


def _start(command: list[str]) -> tuple[float, float]:
    """The least wall and CPU seconds of several runs, after a first that fills caches."""
    walls, cpus = [], []
    for turn in range(1 + REPEATS):
        begun, used = time.perf_counter(), _cpu_of_children()
        subprocess.run(command, cwd="/", capture_output=True, check=True)
        if turn:
            walls.append(time.perf_counter() - begun)
            cpus.append(_cpu_of_children() - used)
    return min(walls), min(cpus)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(row: Row) -> str:
    text = (
        f"{row.case}: {row.packages} packages, {row.megabytes:.0f} MB in {row.install:.0f} s; "
        f"import in {row.import_wall:.2f} s ({row.import_cpu:.2f} s of CPU)"
    )
    if row.help_wall is None:
        return text
    return f"{text}; rwf --help in {row.help_wall:.2f} s ({row.help_cpu:.2f} s of CPU)"


def main(given: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks install", description=__doc__)
    parser.add_argument("--out", type=Path, help="append the rows to this file, as JSON lines")
    arguments = parser.parse_args(given)
    for case in CASES:
        row = measure(case)
        print(report(row), flush=True)
        append(arguments.out, row)


if __name__ == "__main__":
    main()
