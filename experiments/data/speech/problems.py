"""Tasks on speech by name: ``<corpus>-<target>``, or ``<corpus>-<target>-known``.

The corpus is one of

- ``audiomnist``: 1080 recordings of spoken digits by 60 speakers, in RWF_DATA;
- ``timit-sample``: 101 recordings of TIMIT by 16 speakers, in RWF_DATA. There are 160, of which 32
  are of SA1 and SA2, and 27 others have lost bytes;
- ``timit``: your own copy, at the path RWF_TIMIT;
- ``timit-sample-sa`` and ``timit-sa``: the same with the sentences SA1 and SA2.

The target is ``mel-bin``, the mean of band 40 from the other 79, or ``mel-pca``, the first
principal component of bands 32 to 47 from the other 64; see :mod:`experiments.data.speech.targets`.

Training and test recordings are as the layout has them, if it does; then the number of a split only
seeds the method. Else a random tenth of *speakers* is held out, because TIMIT's test speakers are
others too: with recordings of the same speakers in the training rows, the task is easier. That
easier task is ``-known``: a tenth of the recordings of every speaker is held out, whatever the
layout, and CMVN is by speaker. New speakers have no training statistics of their own, so that
otherwise CMVN is by all training speakers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import MappingProxyType

import numpy as np

from experiments.data import splits
from experiments.data.speech.corpus import Recording
from experiments.data.speech.loading import corpus, location
from experiments.data.speech.normalization import by_everyone, by_speaker
from experiments.data.speech.targets import MelBin, MelPCA, Target
from experiments.data.splits import Split
from experiments.data.table import DataError, Table
from rwf._types import Array, BoolArray

UNIT = "dB"
"""Of all targets."""

TARGETS: Mapping[str, Target] = MappingProxyType({"mel-bin": MelBin(), "mel-pca": MelPCA()})


@dataclass(frozen=True)
class Problem:
    """What a name stands for.

    Args:
        corpus: as :func:`experiments.data.speech.loading.location` knows it.
        target: one of :data:`TARGETS`.
        dialect_sentences: whether SA1 and SA2 are among the recordings.
        known_speakers: whether training rows have recordings of the test speakers.
    """

    corpus: str
    target: str
    dialect_sentences: bool
    known_speakers: bool


def _problems() -> Iterator[tuple[str, Problem]]:
    corpora = [
        ("audiomnist", ""),
        ("timit-sample", ""),
        ("timit-sample", "-sa"),
        ("timit", ""),
        ("timit", "-sa"),
    ]
    for (name, sa), target, known in product(corpora, TARGETS, ("", "-known")):
        yield f"{name}{sa}-{target}{known}", Problem(name, target, bool(sa), bool(known))


PROBLEMS: Mapping[str, Problem] = MappingProxyType(dict(_problems()))
"""All tasks on speech."""


def problem(name: str, index: int) -> tuple[Table, Split]:
    """The table of a task, and split number ``index`` of its rows.

    Statistics and principal components are those of the training rows, so that the table depends
    on the split too.
    """
    wanted = PROBLEMS[name]
    found, sums = corpus(location(wanted.corpus), wanted.dialect_sentences)
    if wanted.known_speakers:
        rows = within_speakers(found, index)
        normalization = by_speaker(sums, rows.train, [each.speaker for each in found])
    else:
        rows = other_speakers(found, index)
        normalization = by_everyone(sums, rows.train)
    target = TARGETS[wanted.target]
    X: Array = np.delete(normalization.features(sums), target.hidden, axis=1)
    y = target(normalization.levels(sums), sums.covariance(rows.train))
    return Table(name, X, y, groups=np.array([each.speaker for each in found])), rows


def other_speakers(found: Sequence[Recording], index: int) -> Split:
    """Hold out the layout's test recordings, or all those of a random tenth of speakers."""
    parts = np.array([each.part for each in found])
    if np.any(parts != ""):
        return _held_out(parts == "test")
    names = np.array([each.speaker for each in found])
    speakers = np.unique(names)
    return _held_out(np.isin(names, speakers[splits.random_tenth(speakers[:, None], index).test]))


def within_speakers(found: Sequence[Recording], index: int) -> Split:
    """Hold out a random tenth of every speaker's recordings, rounded up, but not the last one."""
    names = np.array([each.speaker for each in found])
    test = np.zeros(len(names), dtype=np.bool_)
    rng = np.random.RandomState(index)
    for speaker in np.unique(names):
        own = rng.permutation(np.flatnonzero(names == speaker))
        test[own[max(1, int(0.9 * len(own))) :]] = True
    return _held_out(test)


def _held_out(test: BoolArray) -> Split:
    if test.all() or not test.any():
        raise DataError(
            f"{np.sum(~test)} training and {np.sum(test)} test recordings were found, and both are "
            "needed: name the folder that holds TRAIN and TEST, or one of several speakers."
        )
    return Split(np.flatnonzero(~test), np.flatnonzero(test))
