"""Which recordings a folder or a zip archive has, with their speakers and sentences.

A layout is a pattern of paths. TIMIT is met in three: as on the disc (also in lower case, and also
``timit/TIMIT/...``), from Kaggle, where every recording is there twice, and as NLTK's sample. Only
the names of folders and recordings count, in any letter case, wherever in the tree they begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from zipfile import BadZipFile, ZipFile, is_zipfile

from experiments.data.table import DataError

_TIMIT = r"(?P<speaker>[fm][a-z]{3}\d)/(?P<sentence>s[aix]\d+)"

LAYOUTS: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        name: re.compile(rf"(?:^|.*/){pattern}", re.IGNORECASE)
        for name, pattern in {
            "TIMIT, disc or Kaggle": rf"(?P<part>train|test)/dr\d/{_TIMIT}\.wav(?:\.wav)?",
            "TIMIT, NLTK's sample": rf"dr\d-{_TIMIT}\.wav",
            "AudioMNIST": r"(?P<speaker>\d\d)/(?P<sentence>\d)_(?P=speaker)_(?P<take>\d+)\.wav",
            "AN4": (
                r"(?P<part>an4|an4test)_clstk/(?P<speaker>[a-z]+)/"
                r"(?P<sentence>\w+)-(?P=speaker)-\w+\.sph"
            ),
        }.items()
    }
)
"""Paths of recordings, relative to the folder, with forward slashes."""

PARTS = {"train": "train", "test": "test", "an4": "train", "an4test": "test"}
"""The part of the split by the name of the folder."""

DIALECT_SENTENCES = ("sa1", "sa2")
"""The two sentences that every speaker of TIMIT reads."""


@dataclass(frozen=True, order=True)
class Recording:
    """One file of a corpus; names are in lower case, whatever case the copy is in.

    Args:
        part: "train" or "test", empty if the layout has no parts.
        speaker: who speaks.
        sentence: the name of the spoken sentence or word.
        take: a number, if a speaker repeats a sentence.
        file: the path in the folder or archive.
    """

    part: str
    speaker: str
    sentence: str
    take: int
    file: str


def recordings(source: Path, dialect_sentences: bool = False) -> list[Recording]:
    """Every recording once, in an order that does not depend on the layout of the copy.

    Args:
        source: a folder or a zip archive.
        dialect_sentences: keep TIMIT's SA1 and SA2. All speakers read them, so test rows would have
            the sentences of training rows; they are left out as usual, which leaves 3696 + 1344
            recordings. The same holds for NLTK's sample: two of its ten sentences a speaker would
            be the only ones shared with all the others.
    """
    names = files(source)
    found = {layout: _matching(names, pattern) for layout, pattern in LAYOUTS.items()}
    present = [layout for layout, those in found.items() if those]
    if len(present) != 1:
        seen = f"recordings of {' and of '.join(present)}" if present else "no recording"
        raise DataError(
            f"{source} has {seen} in its paths: name a folder or a zip archive of one corpus, "
            "which has TRAIN/DR1/FCJF0/SA1.WAV or dr1-fvmh0/sa1.wav somewhere below it."
        )
    those = found[present[0]]
    if dialect_sentences or not present[0].startswith("TIMIT"):
        return those
    return [each for each in those if each.sentence not in DIALECT_SENTENCES]


def _matching(names: Iterable[str], pattern: re.Pattern[str]) -> list[Recording]:
    chosen: dict[tuple[str, str, str, int], Recording] = {}
    for file in sorted(names, key=lambda name: (len(name), name)):
        match = pattern.fullmatch(file)
        if match is None:
            continue
        fields = {name: text.lower() for name, text in match.groupdict(default="").items()}
        part = PARTS.get(fields.get("part", ""), "")
        key = (part, fields["speaker"], fields["sentence"], int(fields.get("take", 0)))
        # SA1.WAV and SA1.WAV.wav are one recording: the shorter name, the original, comes first.
        chosen.setdefault(key, Recording(*key, file))
    return sorted(chosen.values())


def files(source: Path) -> list[str]:
    """The paths of all files in a folder or a zip archive, relative to it."""
    if source.is_dir():
        return [path.relative_to(source).as_posix() for path in source.rglob("*")]
    if not is_zipfile(source):
        raise DataError(f"{source} is neither a folder nor a zip archive: name one of these.")
    with ZipFile(source) as archive:
        return archive.namelist()


def contents(source: Path, names: Iterable[str]) -> Iterator[bytes]:
    """The bytes of these files, one after the other."""
    if source.is_dir():
        for name in names:
            yield (source / name).read_bytes()
        return
    with ZipFile(source) as archive:
        for name in names:
            try:
                yield archive.read(name)
            except BadZipFile as error:
                raise DataError(f"{source} is damaged at {name}: copy it again.") from error
