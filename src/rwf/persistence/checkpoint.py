"""A long fit on disk, so that it can go on where it stopped: what was learned, and sums so far.

The file is one of :mod:`rwf.persistence`: numbers and JSON, checksummed, written all or nothing.
The last but one stays beside it as ``.previous``, for the day when the last is damaged. After
learning, a fit is the same whoever does it: its seed is in the file, and the sums over rows that it
needs come in the same order, so those that are there need not be made again.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

import rwf
from rwf._types import Array
from rwf.data.readers import Reader
from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.data.stream import Entry
from rwf.errors import CheckpointError, DamagedCheckpointWarning, ModelFileError
from rwf.fit.checkpoint import FitState
from rwf.persistence import file
from rwf.persistence.codec import (
    BOOL,
    FLOAT,
    INT,
    TEXT,
    Decoder,
    Encoder,
    Instance,
    Kind,
    Mismatch,
    Table,
    floats,
)
from rwf.persistence.file import Json
from rwf.persistence.records import RECORDS
from rwf.priors.lattice import LearnedLattice
from rwf.priors.learned_features import LearnedFeatures

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

SECONDS = 60.0
"""Seconds between two checkpoints, at least."""

SHARE = 0.05
"""Share of the time that writing may take; checkpoints of large models are rarer."""

VERSION = 1
"""Of what is in the file."""

LEARNED: dict[str, Kind] = {
    "units": Instance(Standardizer),
    "X": floats("n", "d"),
    "y": floats("n", "k"),
    "weights": floats("n"),
    "n_components": INT,
    "learned": Instance(LearnedFeatures, LearnedLattice),
    "n_rows": INT,
    "seed": INT,
    "seconds": Table(FLOAT),
}


class Checkpoint:
    """The keeper of one fit.

    Args:
        path: of the file; the last but one is beside it.
        fingerprint: by what the rows and the parameters of this fit are told from others.
        progress: called with a line of text now and then.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        fingerprint: Mapping[str, str],
        progress: Callable[[str], None],
    ) -> None:
        self.path = Path(path).absolute()
        self.state: FitState | None = None
        self._fingerprint, self._progress = dict(fingerprint), progress
        self._entries: list[Entry] = []
        self._next = 0
        self._damaged = False
        self._written, self._interval, self._current = time.monotonic(), SECONDS, True
        if not self.path.parent.is_dir():
            raise CheckpointError(
                f"there is no folder {self.path.parent} for the checkpoint: make it, or give "
                "another path."
            )
        self._load()

    @property
    def previous(self) -> Path:
        """Where the last but one is."""
        return self.path.with_name(f"{self.path.name}.previous")

    @property
    def _new(self) -> Path:
        return self.path.with_name(f"{self.path.name}.new")

    def begin(self, state: FitState) -> None:
        self.state = state
        self._current = False
        self.flush()

    def recall(self, name: str) -> Entry | None:
        entry = self._entries[self._next] if self._next < len(self._entries) else None
        if entry is None or entry.name != name:
            # On a machine that rounds otherwise a fit may take another way: its sums are made anew.
            del self._entries[self._next :]
            return None
        self._progress(f"{name}: {entry.rows:,} rows are in the checkpoint")
        self._next += entry.done
        return entry

    def note(self, entry: Entry) -> None:
        self._entries[self._next :] = [entry]
        self._next += entry.done
        self._current = False
        if time.monotonic() - self._written >= self._interval:
            self.flush()

    def flush(self) -> None:
        if self._current or self.state is None:
            return
        begun = time.monotonic()
        self._write(self.state)
        self._written, self._current = time.monotonic(), True
        self._interval = max(SECONDS, (self._written - begun) / SHARE)

    def finish(self) -> None:
        for path in (self.path, self.previous, self._new):
            path.unlink(missing_ok=True)

    def _write(self, state: FitState) -> None:
        encoder, sizes = Encoder(RECORDS), dict[str, int]()
        values = {**vars(state), **vars(state.known)}
        learned = {
            name: kind.encode(values[name], encoder, sizes) for name, kind in LEARNED.items()
        }
        entries: list[Json] = []
        for entry in self._entries:
            sums: dict[str, Json] = {
                name: {"array": encoder.array(array)} for name, array in entry.sums.items()
            }
            entries.append(
                {"name": entry.name, "rows": entry.rows, "done": entry.done, "sums": sums}
            )
        header: dict[str, Json] = {
            "checkpoint": VERSION,
            "fingerprint": dict(self._fingerprint),
            "learned": learned,
            "entries": entries,
            "objects": encoder.objects,
        }
        file.write(self._new, header, encoder.arrays)
        if self.path.exists() and not self._damaged:
            self.path.replace(self.previous)
        self._new.replace(self.path)
        self._damaged = False

    def _load(self) -> None:
        """What an earlier process has left, or the last but one of it if the last is damaged."""
        damages = []
        for path in (self.path, self.previous):
            if not path.exists():
                continue
            try:
                self._read(path)
            except (ModelFileError, Mismatch) as error:
                damages.append(f"{path} is damaged: {str(error).removesuffix(file.AGAIN)}")
                continue
            self._damaged = bool(damages)  # and must not take the place of the one that is not
            for damage in damages:
                warnings.warn(
                    f"{damage} The fit goes on from {path}, which is a little older.",
                    DamagedCheckpointWarning,
                    stacklevel=5,
                )
            return
        if damages:
            raise CheckpointError(
                f"{' '.join(damages)} There is no other checkpoint to go on from: remove the file "
                "to start anew, or give another path."
            )

    def _read(self, path: Path) -> None:
        header, arrays = file.read(path)
        if header.get("checkpoint") != VERSION:
            raise CheckpointError(
                f"{path} is no checkpoint that this rwf can read: give another path, or remove it."
            )
        self._require_same(path, header.get("fingerprint"))
        decoder = Decoder(RECORDS, header.get("objects"), arrays)
        found, entries = header.get("learned"), header.get("entries")
        if (
            not isinstance(found, dict)
            or set(found) != set(LEARNED)
            or not isinstance(entries, list)
        ):
            raise Mismatch("what was learned is not described.")
        sizes: dict[str, int] = {}
        # Kinds have checked every value: what comes out has the types that went in.
        values: dict[str, Any] = {
            name: kind.decode(found[name], decoder, sizes) for name, kind in LEARNED.items()
        }
        known = Block(*(values.pop(name) for name in ("X", "y", "weights")))
        self._entries = [_entry(entry, decoder) for entry in entries]
        self.state = FitState(known=known, **values)

    def _require_same(self, path: Path, then: Json) -> None:
        """That the checkpoint is of the same rows and parameters."""
        if not isinstance(then, dict):
            raise Mismatch("it does not say what it is of.")
        now = self._fingerprint
        differ = [
            f"{key} is {now.get(key, 'not there')}, and was {then.get(key, 'not there')}"
            for key in sorted({*now, *then})
            if now.get(key) != then.get(key)
        ]
        if differ:
            raise CheckpointError(
                f"{path} is the checkpoint of another fit: {'; '.join(differ)}. Fit the same rows "
                "with the same parameters to go on; else give another path, or remove the file."
            )


def _entry(json: Json, decoder: Decoder) -> Entry:
    if not isinstance(json, dict) or not isinstance(json.get("sums"), dict):
        raise Mismatch("a sum is not described.")
    sums = {
        name: decoder.array(array) for name, array in cast(dict[str, Json], json["sums"]).items()
    }
    name, rows, done = (
        kind.decode(json.get(key), decoder, {})
        for key, kind in (("name", TEXT), ("rows", INT), ("done", BOOL))
    )
    return Entry(cast(str, name), cast(int, rows), cast(bool, done), cast(dict[str, Array], sums))


def fingerprint(estimator: BaseEstimator, reader: Reader) -> dict[str, str]:
    """By what a fit is told from others: its rows, its parameters, and who fits."""
    parameters = estimator.get_params(deep=False)
    parameters.pop("verbose", None)  # it says how much is told, and changes nothing
    return {
        **reader.fingerprint(),
        **{f"parameter {name}": _described(value) for name, value in parameters.items()},
        "estimator": type(estimator).__name__,
        "rwf": rwf.__version__,
    }


def _described(value: object) -> str:
    """A parameter in words that are the same in every process."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return type(value).__name__
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{getattr(value, '__module__', '')}.{name}"
