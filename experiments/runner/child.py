"""The process of one run: reads the run from standard input, writes its outcome to a file.

``python -m experiments.runner.child OUTCOME [CORE]``: with a core, the process keeps to it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path


def main() -> None:
    if len(sys.argv) > 2 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {int(sys.argv[2])})
    from experiments.runner.run import Run, measure
    from experiments.runner.store import as_line

    outcome = measure(Run(**json.load(sys.stdin)))
    Path(sys.argv[1]).write_text(as_line(outcome), encoding="utf-8")


if __name__ == "__main__":
    main()
