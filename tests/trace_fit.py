"""Which modules of rwf a default fit and prediction of a table pass through, and in what order.

``python tests/trace_fit.py`` prints them. A module is entered when it is called and is not yet on
the stack: a function that is passed down and called from below is no new entry.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import rwf
from rwf.linalg.threads import one_thread

HOME = str(Path(rwf.__file__).parent)


class Trace:
    """Entries from one module of rwf into another."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], int] = {}
        self.modules: dict[str, None] = {}

    def __enter__(self) -> Trace:
        sys.setprofile(self._profile)
        return self

    def __exit__(self, *reason: object) -> None:
        sys.setprofile(None)

    def _profile(self, frame: FrameType, event: str, argument: Any) -> None:
        name = _module(frame)
        if event != "call" or name is None or frame.f_code.co_name == "<module>":
            return
        self.modules.setdefault(name)
        above = [found for found in map(_module, _callers(frame)) if found is not None]
        if above and name not in above:
            pair = (above[0], name)
            self.entries[pair] = self.entries.get(pair, 0) + 1


def _callers(frame: FrameType) -> list[FrameType]:
    found, caller = [], frame.f_back
    while caller is not None:
        found.append(caller)
        caller = caller.f_back
    return found


def _module(frame: FrameType) -> str | None:
    """The module of a frame, such as ``fit.pipeline``, if it is one of ours."""
    path = frame.f_code.co_filename
    if not path.startswith(HOME):
        return None
    return path[len(HOME) + 1 : -len(".py")].replace("/", ".").removesuffix(".__init__")


def trace_table(n: int = 2000, d: int = 8) -> Trace:
    """A default fit of a table, and a prediction with standard deviations."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    model = rwf.RWFRegressor(n_restarts=0, max_iter=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:400], y[:400]).predict(X[:9], return_std=True)  # compiles what is compiled
    # On one core no work is handed to threads, so that stacks are whole.
    with warnings.catch_warnings(), one_thread(), Trace() as trace:
        warnings.simplefilter("ignore")
        model.fit(X, y).predict(X[:100], return_std=True)
    return trace


if __name__ == "__main__":
    found = trace_table()
    lines = [f"{len(found.modules)} modules: {', '.join(found.modules)}", ""]
    lines += [f"{count:7d}  {a} -> {b}" for (a, b), count in found.entries.items()]
    sys.stdout.write("\n".join(lines) + "\n")
