"""What a fit keeps on disk, so that it can go on in another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from rwf.data.rows import Block
from rwf.data.scaling import Standardizer
from rwf.data.stream import PartialSums
from rwf.priors.base import LearnedPrior


@dataclass(frozen=True)
class FitState:
    """What is known before the pass over all rows.

    Args:
        units: of inputs and targets.
        known: the rows that were learned from, in standardised units.
        n_components: feature columns.
        learned: what the prior learned.
        n_rows: how many rows there are.
        seconds: wall-clock seconds by stage, so far.
        seed: of what is drawn after learning.
    """

    units: Standardizer
    known: Block
    n_components: int
    learned: LearnedPrior
    n_rows: int
    seconds: dict[str, float]
    seed: int


class Checkpointer(PartialSums, Protocol):
    """Keeps a fit where it outlives the process."""

    @property
    def state(self) -> FitState | None:
        """What an earlier process had learned, if there was one."""
        ...

    def begin(self, state: FitState) -> None:
        """Keep what was learned."""
        ...

    def finish(self) -> None:
        """The fit is complete, and nothing need be kept."""
        ...
