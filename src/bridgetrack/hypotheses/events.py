"""The events that explain what happens to detections between frames.

Hypotheses of a movie as columns of a set-partitioning problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


class Event(IntEnum):
    """Kinds of hypotheses (design after 001, section 5.1, and 000, section 1.3.2)."""

    MOVE = 0
    DIVIDE = 1
    SPLIT = 2
    MERGE = 3
    APPEAR = 4
    DISAPPEAR = 5
    SKIP = 6
    FALSE = 7

    @property
    def key(self) -> str:
        """Name used in files, e.g. ``"move"``."""
        return self.name.lower()

    @classmethod
    def from_key(cls, key: str) -> Event:
        """The event with this name in files; KeyError where there is none."""
        return cls[key.upper()]


EventKey = Literal["move", "divide", "split", "merge", "appear", "disappear", "skip", "false"]
"""What `Event.key` can be, for the schemas of files."""

N_SOURCES = {
    Event.MOVE: 1,
    Event.DIVIDE: 1,
    Event.SPLIT: 1,
    Event.MERGE: 2,
    Event.APPEAR: 0,
    Event.DISAPPEAR: 1,
    Event.SKIP: 1,
    Event.FALSE: 1,
}
"""How many detections of the earlier frame an event names (a false detection names itself)."""

N_TARGETS = {
    Event.MOVE: 1,
    Event.DIVIDE: 2,
    Event.SPLIT: 2,
    Event.MERGE: 1,
    Event.APPEAR: 1,
    Event.DISAPPEAR: 0,
    Event.SKIP: 1,
    Event.FALSE: 0,
}
"""How many detections of the later frame an event names."""


@dataclass(frozen=True)
class Hypotheses:
    """Candidate events of a movie.

    The *slots* of a movie with n detections are numbered 0..2n-1: slot ``i`` is the fate of
    detection i, slot ``n + i`` its history. Fates in the last frame and histories in the first
    are not slots of the problem (``active`` is False there).

    Parameters
    ----------
    event
        Kind of each hypothesis, shape (H,), values of `Event`.
    sources, targets
        Rows of the detections named, shape (H, 2), -1 where there is none. The first entry is
        filled first; pairs are sorted. A false detection has its row in ``sources[:, 0]``.
    n_detections
        Number of detections n.
    active
        Which of the 2n slots must be covered exactly once, shape (2n,).
    """

    event: NDArray[np.int8]
    sources: NDArray[np.int64]
    targets: NDArray[np.int64]
    n_detections: int
    active: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.event)

    def of(self, event: Event) -> NDArray[np.int64]:
        """Indices of the hypotheses of one kind, shape (H_event,)."""
        return np.flatnonzero(self.event == event)

    def incidence(self) -> sp.csr_matrix:
        """Hypotheses x slots, 1 where a hypothesis covers an active slot, shape (H, 2n).

        This is the transpose of C in ``C y = 1`` (001, eq. 17-18).
        """
        n = self.n_detections
        false = self.event == Event.FALSE
        fates = self.sources
        histories = np.where(self.targets >= 0, self.targets + n, -1)
        own = np.where(false, self.sources[:, 0] + n, -1)[:, None]
        slots = np.concatenate([fates, histories, own], axis=1)
        rows = np.broadcast_to(np.arange(len(self))[:, None], slots.shape)
        keep = slots >= 0
        keep[keep] &= self.active[slots[keep]]
        cols = slots[keep]
        data = np.ones(len(cols), dtype=np.float64)
        shape = (len(self), 2 * n)
        return sp.csr_matrix((data, (rows[keep], cols)), shape=shape)
