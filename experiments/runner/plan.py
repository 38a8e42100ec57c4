"""A suite: which tasks, methods, splits and settings, expanded to its runs."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from experiments import ROOT
from experiments.data.tasks import has_split
from experiments.runner.default import fresh, is_stale
from experiments.runner.run import Run
from experiments.runner.store import JSON, RESULTS, Row, read, results_file

SUITES = ROOT / "experiments" / "suites"
"""Where suites are described, one TOML file each."""


@dataclass(frozen=True)
class Suite:
    """The content of a file in ``suites/``.

    Args:
        name: the file's, without its ending.
        description: one sentence, printed above the suite's tables.
        tasks, methods, splits: every combination is run.
        grid: settings of which every combination of values is run.
        references: methods that the grid does not concern: each is run with its default settings.
        slow: methods that get the first ``n_slow`` splits only.
        n_slow: how many these are.
        also: suites of which rows of this one's runs are taken, so that no run is done twice.
        timeout: seconds after which a run has failed.
    """

    name: str
    description: str
    tasks: tuple[str, ...]
    methods: tuple[str, ...]
    splits: tuple[int, ...]
    grid: Mapping[str, tuple[JSON, ...]]
    references: tuple[str, ...]
    slow: tuple[str, ...]
    n_slow: int
    also: tuple[str, ...]
    timeout: float

    @property
    def all_methods(self) -> tuple[str, ...]:
        return (*self.methods, *self.references)

    def splits_of(self, method: str, task: str) -> tuple[int, ...]:
        """The splits of a task that a method gets."""
        splits = tuple(split for split in self.splits if has_split(task, split))
        return splits[: self.n_slow] if method in self.slow else splits

    def settings(self) -> list[dict[str, JSON]]:
        """Every combination of the grid: one empty set of settings if there is none."""
        return [
            dict(zip(self.grid, values, strict=True))
            for values in itertools.product(*self.grid.values())
        ]

    def runs(
        self, tasks: Collection[str] | None = None, methods: Collection[str] | None = None
    ) -> list[Run]:
        """The runs, a split at a time, so that an interrupted session leaves whole tables."""
        chosen_tasks = _chosen("tasks", self.tasks, tasks)
        chosen_methods = _chosen("methods", self.all_methods, methods)
        pairs = [*itertools.product(self.settings(), self.methods)]
        pairs += [({}, method) for method in self.references]
        return [
            Run(task, method, split, settings)
            for split in self.splits
            for task in chosen_tasks
            for settings, method in pairs
            if method in chosen_methods and split in self.splits_of(method, task)
        ]

    def rows(self, directory: Path = RESULTS) -> list[Row]:
        """The stored rows of the suite's runs, its own or other suites', in the order of runs.

        Each says whether it is stale: one of ours, with another default than that of the results.
        """
        found: dict[str, Row] = {}
        for name in (*self.also, self.name):
            found |= {str(row["key"]): row for row in read(results_file(name, directory))}
        accepted, keys = fresh(directory), [run.key for run in self.runs()]
        return [
            {**found[key], "stale": is_stale(found[key], accepted)} for key in keys if key in found
        ]


def load_suite(name: str, directory: Path = SUITES) -> Suite:
    """Read ``<name>.toml``."""
    path = directory / f"{name}.toml"
    if not path.is_file():
        known = ", ".join(suite_names(directory)) or "none"
        raise ValueError(f"no suite {name!r} in {directory.name}/: there are {known}.")
    text = tomllib.loads(path.read_text(encoding="utf-8"))
    return Suite(
        name=name,
        description=text["description"],
        tasks=tuple(text["tasks"]),
        methods=tuple(text["methods"]),
        splits=tuple(range(text["first_split"], text["last_split"] + 1)),
        grid={key: tuple(values) for key, values in text.get("grid", {}).items()},
        references=tuple(text.get("references", ())),
        slow=tuple(text.get("slow", {}).get("methods", ())),
        n_slow=text.get("slow", {}).get("splits", 0),
        also=tuple(text.get("also", ())),
        timeout=text["timeout"],
    )


def suite_names(directory: Path = SUITES) -> list[str]:
    return sorted(path.stem for path in directory.glob("*.toml"))


def _chosen(kind: str, all_of: tuple[str, ...], some: Collection[str] | None) -> list[str]:
    """Those of ``all_of`` that are in ``some``, or all."""
    unknown = set(some or ()) - set(all_of)
    if unknown:
        raise ValueError(
            f"{kind} {', '.join(sorted(unknown))} are not in the suite, which has "
            f"{', '.join(all_of)}."
        )
    return [name for name in all_of if some is None or name in some]
