"""Questions about masks: one cell or two?

They are ranked by how many events of the tracks an answer puts right on average: the chance that
the alternative is right, times the events that change with it. An event that is asked about is
worth the chance that it is wrong, so both stand on one scale (`worth`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.errors import InputError
from bridgetrack.pipeline.mask_doubts import MaskDoubt, drawn_as
from bridgetrack.regions.mend import Mend, MendKind

Index = NDArray[np.int64]

_OUTLINE = 0.1
"""Events that an outline counts for: it changes no track, and measurements a little."""

_KINDS = {
    (1, 2): MendKind.CUT,
    (2, 1): MendKind.JOIN,
    (1, 0): MendKind.REMOVE,
    (0, 1): MendKind.GROW,
    (1, 1): MendKind.OUTLINE,
}
_ASKED = {
    MendKind.CUT: "Is this one cell, or two?",
    MendKind.JOIN: "Are these two cells, or one?",
    MendKind.REMOVE: "Is this a cell?",
    MendKind.GROW: "Is there a cell here that is not drawn?",
    MendKind.OUTLINE: "Which outline is better?",
}


@dataclass(frozen=True, eq=False)
class MaskQuestion:
    """Whether the masks at a place are right as they are drawn, or an alternative is.

    Parameters
    ----------
    doubt
        Both, and what depends on it.
    """

    doubt: MaskDoubt

    @property
    def frame(self) -> int:
        """The frame to look at."""
        return self.doubt.frame

    @property
    def last_frame(self) -> int:
        """The same: both sides are seen in one frame."""
        return self.doubt.frame

    @property
    def position(self) -> tuple[float, ...]:
        """Middle of what is asked about in pixels, ``(y, x)`` or ``(z, y, x)``."""
        index = np.unravel_index(self.doubt.concerned, self.doubt.shape)
        return tuple(float(i.mean()) for i in index)

    @property
    def kind(self) -> MendKind:
        """What the alternative does."""
        sides = len(self.doubt.drawn), len(self.doubt.instead)
        return _KINDS.get(sides, MendKind.PAINT)

    @property
    def question(self) -> str:
        """The question in plain words."""
        return _ASKED.get(self.kind, "Which of these masks are right?")

    @property
    def answers(self) -> tuple[str, str]:
        """What holds as drawn, and what holds instead, in words."""
        if self.kind == MendKind.OUTLINE:
            return "the outline as drawn", "the other outline"
        drawn, instead = (_cells(len(s)) for s in (self.doubt.drawn, self.doubt.instead))
        return f"{drawn}, as drawn", instead

    @property
    def beliefs(self) -> tuple[float, float]:
        """How probable the two are."""
        return 1.0 - self.doubt.chance, self.doubt.chance

    @property
    def value(self) -> float:
        """How many events an answer puts right on average."""
        return self.doubt.chance * (self.doubt.events or _OUTLINE)

    @property
    def reason(self) -> str:
        """Why it is asked, as a sentence without a full stop."""
        if not self.doubt.events:
            return "the tracks stay as they are, but not what is measured of the cell"
        n, frames = self.doubt.events, self.doubt.frames
        what = "1 event of the tracks depends" if n == 1 else f"{n} events of the tracks depend"
        return f"{what} on it" + (f", in {frames} frames" if frames > 1 else "")

    def holds_for(self, labels: NDArray[Any]) -> bool:
        """Whether the masks of its frame are still those that it asks about."""
        return drawn_as(self.doubt, labels) is not None

    def near(self, other: MaskQuestion) -> bool:
        """Whether another is about the same cells in this frame or one beside it."""
        if abs(self.frame - other.frame) > 1:
            return False
        shared = np.intersect1d(self.doubt.concerned, other.doubt.concerned, assume_unique=True)
        return 4 * len(shared) > min(len(self.doubt.concerned), len(other.doubt.concerned))

    def mend(self, labels: NDArray[Any], right: bool, free: int) -> Mend:
        """What an answer says and changes.

        Parameters
        ----------
        labels
            The frame as it is drawn.
        right
            Whether the masks are right as drawn.
        free
            A number that no cell ever had.

        Raises
        ------
        InputError
            Where the masks have changed since.
        """
        known, doubt = drawn_as(self.doubt, labels), self.doubt
        if known is None:
            raise InputError(
                f"frame {self.frame}: the masks have changed there since this was asked; look for "
                "other questions"
            )
        if right:
            none = np.zeros(0, dtype=np.int64)
            return Mend(
                MendKind.KEEP, self.frame, (), none, none, none, known, doubt.drawn, doubt.instead
            )
        flat, left = labels.reshape(-1), dict(zip(known, doubt.drawn, strict=True))
        after = np.zeros(flat.shape, dtype=np.int64)
        numbers = []
        for pixels in sorted(doubt.instead, key=len, reverse=True):
            shared = {k: len(np.intersect1d(pixels, p)) for k, p in left.items()}
            number = max(shared, key=lambda k: shared[k], default=0)
            if not shared.get(number):
                number, free = free, free + 1
            left.pop(number, None)
            after[pixels] = number
            numbers.append(number)
        pixels = doubt.concerned
        pixels = pixels[flat[pixels] != after[pixels]]
        before = flat[pixels].astype(np.int64)
        return Mend(
            self.kind, self.frame, (), pixels, before, after[pixels], tuple(numbers),
            tuple(sorted(doubt.instead, key=len, reverse=True)), doubt.drawn,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """The question as JSON values."""
        doubt = self.doubt
        return {
            "question": self.question,
            "reason": self.reason,
            "frame": self.frame,
            "position": [round(p, 2) for p in self.position],
            "as_drawn": self.answers[0],
            "instead": self.answers[1],
            "beliefs": [round(b, 4) for b in self.beliefs],
            "frames": doubt.frames,
            "events": doubt.events,
            "value": round(self.value, 6),
        }


def _cells(n: int) -> str:
    return {0: "no cell", 1: "one cell", 2: "two cells"}.get(n, f"{n} cells")


def mask_questions(doubts: Iterable[MaskDoubt]) -> list[MaskQuestion]:
    """Questions about doubts, those that put most right first."""
    return sorted(map(MaskQuestion, doubts), key=lambda q: -q.value)


def worth(asked: Suggestion) -> float:
    """How many events an answer to a question about an event puts right on average."""
    return 1.0 - asked.beliefs[0]
