"""Tasks by name: a table, and how its rows are split into training and test rows.

A task is the name of a table, in which case :data:`SERIES` are split by :func:`splits.quarter` and
all others by :func:`splits.random_tenth`, or the name with one of :data:`ENDINGS`. The tables of
:data:`SIMULATED` are drawn anew for every split, from ``np.random.default_rng(1000 + index)``, and
their noiseless values are known. Tasks on recordings, :data:`speech.PROBLEMS`, and those with
official splits, :data:`official.N_SPLITS`, have splits of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from experiments.data import heaton, official, speech, splits
from experiments.data.chirp import chirp_bursts
from experiments.data.splits import HoldOut, Split
from experiments.data.table import OPENML, Table, load
from rwf._types import Array
from rwf.datasets import (
    DONOHO_JOHNSTONE,
    FIVE_PLATEAUS,
    SIX_PLATEAUS,
    Sample,
    donoho_johnstone,
    multi_step,
)

SERIES = (
    "mcycle",
    "lidar",
    "co2",
    "sunspots",
    "ecg",
    "seismogram_tohoku",
    "audio_seven",
    "audio",
    "electricity",
)
"""Tables in the order of time, or of another input."""

FIELDS = (
    "volcano",
    "dem_jacksboro",
    "dem_us_prism4km",
    "walker_lake",
    "precip_us_west",
    "argo",
    "jason3",
)
"""Tables over two coordinates, and in the last two also over time."""

STAND_INS = ("stock_aerospace", "motion_cmu35")
"""Tables in place of the paper's STOCK and MOTION, whose source it does not name."""

SHUFFLED = "-shuffled"
"""The ending of tasks whose targets are in a random order, so that nothing can be learned."""

ENDINGS: Mapping[str, HoldOut] = MappingProxyType(
    {
        "-shifted": splits.beyond_a_plane,
        "-block": splits.block,
        "-gap": splits.hole,
        "-edge": splits.edge,
        "-tenth": splits.tenth,
        "-scattered": splits.scattered,
    }
)
"""What may follow the name of a table, and the rows that are then held out."""

UNITS: Mapping[str, str] = MappingProxyType(
    {
        "energy": "kWh/m²",
        "concrete": "MPa",
        "airfoil": "dB",
        "kin8nm": "distance",
        "naval": "coefficient",
        "protein": "Å",
        "mcycle": "g",
        "co2": "ppm",
        "ecg": "mV",
        "seismogram_tohoku": "counts",
        "electricity": "GW",
        "volcano": "m",
        "dem_jacksboro": "m",
        "dem_us_prism4km": "m",
        "walker_lake": "ppm",
        "precip_us_west": "cm",
        "argo": "°C",
        "jason3": "m/s",
        "heaton_satellite": "°C",
        "stock_aerospace": "USD",
        "motion_cmu35": "degrees",
        "motion_cmu35-trials": "degrees",
        "hla-boston": "1000 USD",
        "hla-concrete": "MPa",
        "hla-energy": "kWh/m²",
        "hla-naval": "coefficient",
        "hla-protein": "Å",
        **dict.fromkeys(speech.PROBLEMS, speech.UNIT),
    }
)
"""The units of the targets, as the tables print them."""


@dataclass(frozen=True)
class Simulation:
    """Rows from a known function, of which the first are for training.

    Args:
        draw: makes the rows.
        n_train: how many of them are for training, unless the ending of the task splits otherwise.
    """

    draw: Callable[[np.random.Generator], Sample]
    n_train: int

    def split(self, X: Array, index: int) -> Split:
        rows = np.arange(len(X))
        return Split(rows[: self.n_train], rows[self.n_train :])


def _plateaus(levels: tuple[float, ...], noise: float, n_train: int = 4200) -> Simulation:
    return Simulation(lambda rng: multi_step(n_train + 1800, rng, noise, levels), n_train)


def _denoising(name: str, regular: bool, n: int = 2048) -> Simulation:
    """The same points twice: for training, and with fresh noise for testing."""

    def draw(rng: np.random.Generator) -> Sample:
        first = donoho_johnstone(name, rng, n, regular=regular)
        fresh = first.f + rng.standard_normal(n)
        return Sample(
            X=np.concatenate([first.X, first.X]),
            y=np.concatenate([first.y, fresh]),
            f=np.concatenate([first.f, first.f]),
        )

    return Simulation(draw, n_train=n)


GROWING = (1_000, 3_000, 10_000, 30_000, 100_000)
"""Numbers of training rows of five plateaus, for cost against the number of rows."""

SIMULATED: Mapping[str, Simulation] = MappingProxyType(
    {
        "six-plateaus": _plateaus(SIX_PLATEAUS, 0.05),
        "five-plateaus": _plateaus(FIVE_PLATEAUS, 0.05),
        "five-plateaus-quiet": _plateaus(FIVE_PLATEAUS, 0.005),
        "five-plateaus-350": _plateaus(FIVE_PLATEAUS, 0.005, 350),
        **{f"steps-{n}": _plateaus(FIVE_PLATEAUS, 0.05, n) for n in GROWING},
        "chirp-bursts": Simulation(lambda rng: chirp_bursts(120_000, rng), n_train=100_000),
        **{name: _denoising(name, regular=True) for name in DONOHO_JOHNSTONE},
        **{f"{name}-irregular": _denoising(name, regular=False) for name in DONOHO_JOHNSTONE},
    }
)
"""Tables that are drawn: plateaus, 4200 + 1800 rows, or the number in the name + 1800; chirp and
bursts, 100 000 + 20 000; denoising, 2048 points."""

TRIALS: Mapping[str, str] = MappingProxyType({"motion_cmu35-trials": "motion_cmu35"})
"""Tables whose first column is a row's group: it is no input, and whole groups are held out."""

KNOWN = frozenset(
    {
        *OPENML,
        *STAND_INS,
        *SERIES,
        *FIELDS,
        *SIMULATED,
        *TRIALS,
        *speech.PROBLEMS,
        *heaton.PROBLEMS,
        *official.N_SPLITS,
    }
)
"""The tables that suites may name; any other file in RWF_DATA is a table too."""


def parts(task: str) -> tuple[str, str]:
    """The name of the table, and the ending, which may be empty."""
    ending = next((ending for ending in ENDINGS if task.endswith(ending)), "")
    return task.removesuffix(ending), ending


def unit(task: str) -> str | None:
    """The unit of the target, if it has one."""
    return UNITS.get(parts(task.removesuffix(SHUFFLED))[0])


def has_split(task: str, index: int) -> bool:
    """Whether a task has a split of that number: official splits are limited."""
    return index < official.N_SPLITS.get(task, index + 1)


def problem(task: str, index: int) -> tuple[Table, Split]:
    """The table of a task, and split number ``index`` of its rows."""
    if task.endswith(SHUFFLED):
        table, split = problem(task.removesuffix(SHUFFLED), index)
        y = np.random.default_rng(2000 + index).permutation(table.y)
        return Table(task, table.X, y), split
    name, ending = parts(task)
    if task in TRIALS:
        table = load(TRIALS[task])
        labels = table.X[:, 0]
        return Table(task, table.X[:, 1:], table.y, groups=labels), splits.groups(labels, index)
    if name in speech.PROBLEMS:
        if ending:
            raise ValueError(f"{name} has splits of its own: leave out {ending}.")
        return speech.problem(name, index)
    if name in heaton.PROBLEMS:
        return heaton.problem(name, index)
    if name in official.N_SPLITS:
        if ending:
            raise ValueError(f"{name} has official splits: leave out {ending}.")
        return official.problem(name, index)
    if name in SIMULATED:
        sample = SIMULATED[name].draw(np.random.default_rng(1000 + index))
        table = Table(name, sample.X, sample.y, sample.f)
    else:
        table = load(name)
    return table, hold_out(task)(table.X, index)


def hold_out(task: str) -> HoldOut:
    """How a task's rows are split."""
    name, ending = parts(task)
    if ending:
        return ENDINGS[ending]
    if name in SIMULATED:
        return SIMULATED[name].split
    return splits.quarter if name in SERIES else splits.random_tenth
