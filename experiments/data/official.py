"""Tables with official splits: those of published numbers, which may then stand beside ours.

``hla-<set>`` has the 90/10 splits of Hernández-Lobato & Adams (2015), twenty a set and five of
protein; ``evans-<set>`` has the ten masks of T. Evans' uci_datasets, on which papers give scores
in units of the target's standard deviation. In the directory that RWF_DATA names,
``official/hla_<set>.csv.gz`` has the rows and ``official/hla_<set>_test.csv.gz`` a column for each
split, 1 = test; their rows are in the same order.
"""

from __future__ import annotations

import numpy as np

from experiments.data.splits import Split
from experiments.data.table import DataError, Table, file_name, load, local_file

N_SPLITS = {
    **dict.fromkeys(
        (f"hla-{name}" for name in ("yacht", "boston", "energy", "concrete", "wine_red")), 20
    ),
    "hla-kin8nm": 20,
    "hla-naval": 20,
    "hla-protein": 5,
    **dict.fromkeys(
        (f"evans-{name}" for name in ("airfoil", "elevators", "pol", "kin40k", "keggdirected")), 10
    ),
}
"""How many splits there are of each."""


def problem(name: str, index: int) -> tuple[Table, Split]:
    """The table, and its official split of that number."""
    if not 0 <= index < N_SPLITS[name]:
        raise ValueError(f"{name} has splits 0 to {N_SPLITS[name] - 1}: there is no split {index}.")
    file = "official/" + name.replace("-", "_")
    found = load(file)
    path = local_file(f"{file}_test")
    if path is None:
        raise DataError(f"{file_name(file)} is there, but not {file_name(file + '_test')}.")
    masks = np.loadtxt(path, delimiter=",", skiprows=1, dtype=np.int8, ndmin=2)
    if masks.shape != (len(found.y), N_SPLITS[name]):
        raise DataError(
            f"{file_name(file + '_test')} has shape {masks.shape}, but {name} has "
            f"{len(found.y)} rows and {N_SPLITS[name]} splits."
        )
    test = masks[:, index] == 1
    return Table(name, found.X, found.y), Split(np.flatnonzero(~test), np.flatnonzero(test))
