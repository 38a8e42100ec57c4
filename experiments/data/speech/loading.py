"""Where corpora are, and the sums of their recordings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from experiments.data.speech.alignment import is_misaligned
from experiments.data.speech.audio import samples_of
from experiments.data.speech.corpus import Recording, contents, recordings
from experiments.data.speech.mel import WINDOW, log_mel
from experiments.data.speech.sums import FrameSums, frame_sums, together
from experiments.data.table import DataError
from rwf._types import Array

TIMIT_VARIABLE = "RWF_TIMIT"
"""The environment variable that names a user's own copy of TIMIT, a folder or a zip archive."""

ARCHIVES: Mapping[str, str] = MappingProxyType(
    {
        "audiomnist": "speech_audiomnist16k.zip",
        "timit-sample": "speech_timit_sample.zip",
    }
)
"""The corpora in RWF_DATA, and their files."""

CONTENTS: Mapping[str, str] = MappingProxyType(
    {
        "audiomnist": "AudioMNIST at 16 kHz, as audiomnist16k/01/0_01_0.wav",
        "timit-sample": "NLTK's sample of TIMIT, which must not be passed on, as "
        "timit/dr1-fvmh0/sa1.wav",
    }
)
"""What these files hold."""


def location(corpus: str) -> Path:
    """Where a corpus is; the error has advice if it is not there."""
    if corpus == "timit":
        return _own_copy()
    directory, archive = os.environ.get("RWF_DATA"), ARCHIVES[corpus]
    path = Path(directory or "", archive)
    if not directory or not path.is_file():
        raise DataError(
            f"no recordings of {corpus}: set RWF_DATA to a directory that holds {archive}, which "
            f"has {CONTENTS[corpus]}."
        )
    return path


def _own_copy() -> Path:
    own = os.environ.get(TIMIT_VARIABLE)
    if not own or not Path(own).exists():
        seen = f"is {own!r}, which is not there" if own else "is not set"
        raise DataError(
            f"{TIMIT_VARIABLE} {seen}: TIMIT (LDC93S1) is licensed, so give your own copy, a "
            "folder or a zip archive, as --timit PATH; or use timit-sample-... or audiomnist-..."
        )
    return Path(own)


@lru_cache(maxsize=2)
def corpus(source: Path, dialect_sentences: bool) -> tuple[Sequence[Recording], FrameSums]:
    """The recordings of a folder or archive and their sums, which all splits and targets share."""
    found = recordings(source, dialect_sentences)
    entries = [(each, frame_sums(L)) for each, L in _spectrograms(source, found)]
    damaged = len(found) - len(entries)
    if damaged:
        warnings.warn(
            f"{damaged} of {len(found)} recordings in {source.name} have lost bytes, so that their "
            "samples are noise, and are left out.",
            stacklevel=2,
        )
    if not entries:
        raise DataError(f"{source} has no recording that can be used: copy it again.")
    return tuple(each for each, _ in entries), together([sums for _, sums in entries])


def _spectrograms(source: Path, found: Sequence[Recording]) -> Iterator[tuple[Recording, Array]]:
    """The log-mel spectrograms of those recordings that are whole."""
    for each, content in zip(found, contents(source, [r.file for r in found]), strict=True):
        samples = samples_of(content, each.file)
        if len(samples) < WINDOW:
            raise DataError(
                f"{each.file} has {len(samples)} samples, and one window has {WINDOW}: remove it."
            )
        if not is_misaligned(samples):
            yield each, log_mel(samples)
