"""Tables of numbers by their names.

A table is ``<name>.csv.gz`` in the directory that the environment variable RWF_DATA names: a
header, numbers only, the target last. The six tables of :data:`OPENML` are otherwise fetched from
OpenML and cached by scikit-learn. The rows may come in another order from there, so that split k
is another split.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rwf._types import Array

FILES = {
    "co2": "co2_mauna_loa_weekly",
    "sunspots": "sunspots_monthly",
    "ecg": "ecg_mitbih208",
    "audio": "audio_seven",
    "seismogram_tohoku": "seismogram_tohoku_tly",
    "electricity": "electricity_victoria_2014",
    "precip_us_west": "precip_us_west_1997",
    "argo": "argo2016_temp100",
    "jason3": "jason3_windspeed",
}
"""The files of tables that have shorter names here."""


class DataError(Exception):
    """A data set that cannot be loaded; the message has advice."""


@dataclass(frozen=True)
class Table:
    """Inputs X, shape (n, d), and targets y, shape (n,), in the units of their source.

    Simulated tables know their noiseless targets too, f of shape (n,). Rows that belong together,
    such as those of a speaker, have the same label in groups, shape (n,).
    """

    name: str
    X: Array
    y: Array
    f: Array | None = None
    groups: NDArray[np.generic] | None = None


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


def load(name: str) -> Table:
    """A table from RWF_DATA if it is there, else from OpenML."""
    path = local_file(name)
    if path is not None:
        rows = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.float64, ndmin=2)
        return Table(name, rows[:, :-1], rows[:, -1])
    if name in OPENML:
        return _from_openml(name, OPENML[name])
    raise DataError(
        f"no data set {name!r}: set RWF_DATA to a directory that holds {file_name(name)}, "
        f"or use one of {', '.join(OPENML)}, which are fetched."
    )


def local_file(name: str) -> Path | None:
    """The file of a table in RWF_DATA, if there is one."""
    directory = os.environ.get("RWF_DATA")
    if not directory:
        return None
    path = Path(directory) / file_name(name)
    return path if path.is_file() else None


def file_name(name: str) -> str:
    return f"{FILES.get(name, name)}.csv.gz"


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
