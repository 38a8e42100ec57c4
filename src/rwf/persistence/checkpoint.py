"""Checkpoints: what a long fit has learned, and its sums so far, so that it can be resumed.

The format is that of :mod:`rwf.persistence.file`. The previous file stays beside it, in case the
last is damaged. After learning, a fit is deterministic: it makes its sums over rows in the same
order, so those in the file need not be made again.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import rwf
from rwf.data.readers import Reader
from rwf.data.stream import Entry
from rwf.errors import CheckpointError, DamagedCheckpointWarning, ModelFileError
from rwf.fit.checkpoint import FitState
from rwf.persistence import file
from rwf.persistence.arrays import AGAIN, Json
from rwf.persistence.codec import Decoder, Encoder
from rwf.persistence.records import CHECKPOINT

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

SECONDS = 60.0  # seconds between two checkpoints, at least
SHARE = 0.05  # share of the time that writing may take; checkpoints of large models are rarer


class Checkpoint:
    """The checkpoint of one fit, whose rows and parameters the fingerprint identifies."""

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
        """The path of the checkpoint before the last."""
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
            # With other rounding, on another machine, a fit may need other sums: make them again.
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
        encoder = Encoder(CHECKPOINT)
        header: dict[str, Json] = {
            "fingerprint": dict(self._fingerprint),
            "state": encoder.fields(state),
            "entries": [encoder.fields(entry) for entry in self._entries],
            "objects": encoder.objects,
        }
        file.write(self._new, header, encoder.arrays)
        if self.path.exists() and not self._damaged:
            self.path.replace(self.previous)
        self._new.replace(self.path)
        self._damaged = False

    def _load(self) -> None:
        """Read the last checkpoint of an earlier process, or the previous one if it is damaged."""
        damages = []
        for path in (self.path, self.previous):
            if not path.exists():
                continue
            try:
                self._read(path)
            except ModelFileError as error:
                damages.append(f"{path} cannot be read: {str(error).removesuffix(AGAIN)}")
                continue
            self._damaged = bool(damages)  # a damaged file must not replace the previous one
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
        header, arrays, _ = file.read(path)
        then, entries = header.get("fingerprint"), header.get("entries")
        if not isinstance(then, dict) or not isinstance(entries, list):
            raise CheckpointError(f"{path} is no checkpoint: give another path, or remove it.")
        self._require_same(path, then)
        decoder = Decoder(CHECKPOINT, header.get("objects"), arrays)
        self._entries = [decoder.make(Entry, entry) for entry in entries]
        self.state = decoder.make(FitState, header.get("state"))

    def _require_same(self, path: Path, then: Mapping[str, Json]) -> None:
        """That the checkpoint is of the same rows and parameters."""
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


def fingerprint(estimator: BaseEstimator, reader: Reader) -> dict[str, str]:
    """What identifies a fit: its rows, its parameters, the estimator and the version of rwf."""
    parameters = estimator.get_params(deep=False)
    for name in ("verbose", "n_jobs"):  # these change no number
        parameters.pop(name, None)
    return {
        **reader.fingerprint(),
        **{f"parameter {name}": _described(value) for name, value in parameters.items()},
        "estimator": type(estimator).__name__,
        "rwf": rwf.__version__,
    }


def _described(value: object) -> str:
    """A description of a parameter that is the same in every process."""
    if isinstance(value, np.random.Generator | np.random.RandomState):
        return type(value).__name__
    name = getattr(value, "__qualname__", None)
    return repr(value) if name is None else f"{getattr(value, '__module__', '')}.{name}"
