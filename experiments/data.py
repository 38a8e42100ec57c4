"""Tasks: a table of numbers by its name, and how its rows are split into training and test rows.

A table is ``<name>.csv.gz`` in the directory that the environment variable RWF_DATA names: a
header, numbers only, the target last. The six tables of :data:`OPENML` are otherwise fetched from
OpenML and cached by scikit-learn. The rows may come in another order from there, so that split k
is another split. A task is a table, or ``<table>-shifted`` for splits by extrapolation.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rwf.types import Array, IntArray

SHIFTED = "-shifted"
"""The ending of tasks whose test rows lie beyond the training rows."""

UNITS = {
    "energy": "kWh/m²",
    "concrete": "MPa",
    "airfoil": "dB",
    "kin8nm": "distance",
    "naval": "coefficient",
    "protein": "Å",
}
"""The units of the targets, as the tables print them."""


class DataError(Exception):
    """A data set that cannot be had; the message says what to do."""


@dataclass(frozen=True)
class Table:
    """Inputs X, shape (n, d), and targets y, shape (n,), in the units of their source."""

    name: str
    X: Array
    y: Array


@dataclass(frozen=True)
class Split:
    """Row numbers to learn from, and row numbers to be judged on."""

    train: IntArray
    test: IntArray


@dataclass(frozen=True)
class OpenMLTable:
    """Where a table is on OpenML, and what must come back.

    Args:
        data_id: OpenML's number.
        shape: rows and inputs.
        also_target: a second target that OpenML may list among the inputs.
    """

    data_id: int
    shape: tuple[int, int]
    also_target: str | None = None


OPENML = {
    "energy": OpenMLTable(44960, (768, 8), also_target="cooling_load"),
    "concrete": OpenMLTable(44959, (1030, 8)),
    "airfoil": OpenMLTable(44957, (1503, 5)),
    "kin8nm": OpenMLTable(189, (8192, 8)),
    "naval": OpenMLTable(44969, (11934, 16), also_target="gt_turbine_decay_state_coefficient"),
    "protein": OpenMLTable(44963, (45730, 9)),
}


def load(task: str) -> Table:
    """The table of a task, from RWF_DATA if it is there, else from OpenML."""
    name = task.removesuffix(SHIFTED)
    path = local_file(name)
    if path is not None:
        rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64, ndmin=2)
        return Table(name, rows[:, :-1], rows[:, -1])
    if name in OPENML:
        return _from_openml(name, OPENML[name])
    raise DataError(
        f"no data set {name!r}: set RWF_DATA to a directory that holds {name}.csv.gz, "
        f"or use one of {', '.join(OPENML)}, which are fetched."
    )


def local_file(name: str) -> Path | None:
    """The file of a table in RWF_DATA, if there is one."""
    directory = os.environ.get("RWF_DATA")
    if not directory:
        return None
    path = Path(directory) / f"{name}.csv.gz"
    return path if path.is_file() else None


def _from_openml(name: str, source: OpenMLTable) -> Table:
    from sklearn.datasets import fetch_openml

    advice = f"Set RWF_DATA to a directory that holds {name}.csv.gz."
    try:
        found = fetch_openml(data_id=source.data_id, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise DataError(f"OpenML {source.data_id} ({name}) failed: {error}. {advice}") from error
    inputs = [k for k, column in enumerate(found.feature_names) if column != source.also_target]
    X = np.asarray(found.data, dtype=np.float64)[:, inputs]
    y = np.asarray(found.target, dtype=np.float64)
    if X.shape != source.shape or y.shape != source.shape[:1]:
        raise DataError(
            f"OpenML {source.data_id} ({name}) has inputs {X.shape} and targets {y.shape}, "
            f"not {source.shape}. {advice}"
        )
    return Table(name, X, y)


def split_of(task: str, table: Table, index: int) -> Split:
    """Split number ``index`` of a task's rows."""
    if task.endswith(SHIFTED):
        return shifted_split(table.X, index)
    return split(len(table.y), index)


def split(n: int, index: int) -> Split:
    """A seeded permutation of n rows, of which the first 90 % are for training."""
    order = np.random.RandomState(index).permutation(n)
    cut = int(0.9 * n)
    return Split(order[:cut], order[cut:])


def shifted_split(X: Array, index: int) -> Split:
    """Train on the low 80 % of rows along a random direction, test on those beyond.

    The direction is Gaussian in the standardised columns that vary; rows keep their order.
    """
    scale = X.std(axis=0)
    varying = scale > 0
    rng = np.random.RandomState(index)
    direction = rng.normal(size=int(varying.sum()))
    position = ((X[:, varying] - X[:, varying].mean(axis=0)) / scale[varying]) @ direction
    order = np.argsort(position, kind="stable")
    cut = int(0.8 * len(X))
    return Split(np.sort(order[:cut]), np.sort(order[cut:]))
