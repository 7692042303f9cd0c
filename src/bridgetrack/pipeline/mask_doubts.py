"""Where the masks of a movie may be wrong, and what would stand there instead.

Masks are chosen once more among candidates, with a bonus for those that are drawn. What is chosen
otherwise, and what would nearly be, are doubts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.models.model import Model
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.pipeline.joint import SAME, Doubt, FrameChoice, JointSettings
from bridgetrack.pipeline.mask_candidates import GivenMasks
from bridgetrack.pipeline.mask_changes import ChangeKind, MaskChange, changes, keep_numbers
from bridgetrack.pipeline.masks import MaskSettings, choose_masks
from bridgetrack.progress import Steps
from bridgetrack.regions.regions import labels_of, likeness
from bridgetrack.segmentation.settings import SegmentationSettings

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_AROUND = 2
"""Frames on either side that are looked at too, because the choice there counts here."""
_ALIKE = 0.8
"""Intersection over union above which two outlines are as good as one."""
_SHARED = 0.25
"""Share of a region that may lie in other cells; those keep it."""
_MANY = 40
"""Doubts of a frame at most."""


@dataclass(frozen=True)
class MaskDoubt:
    """Masks of a frame, and what may be right instead.

    Parameters
    ----------
    frame
        Where.
    shape
        Extent of the frame.
    drawn
        Pixels of the cells as they are, places in the flat frame, ascending.
    instead
        The same of what would stand there.
    chance
        How probably the alternative is right, 0 to 1.
    frames, events
        How many frames and events of the tracks would change with it.
    """

    frame: int
    shape: tuple[int, ...]
    drawn: tuple[Index, ...]
    instead: tuple[Index, ...]
    chance: float
    frames: int
    events: int

    @cached_property
    def concerned(self) -> Index:
        """All pixels that it is about, ascending."""
        return np.unique(np.concatenate([*self.drawn, *self.instead]))


def mask_doubts(
    image: Movie,
    labels: Movie,
    frames: range,
    segmentation: SegmentationSettings | None = None,
    settings: MaskSettings | None = None,
    given: GivenMasks | None = None,
    model: Model | None = None,
    *,
    channel: int | str = 0,
) -> Steps[tuple[MaskDoubt, ...]]:
    """Doubts about the masks of some frames, in order of time.

    Parameters
    ----------
    image, labels
        The movie, and its masks.
    frames
        Successive frames to look at.
    segmentation, given, model
        See `choose_masks`; the masks take the place of labels brought along.
    settings
        How to choose. Loyalty is what speaks for masks as they are drawn, in log-odds.
    channel
        Number or name of the channel that shows the cells.

    Yields
    ------
    Progress

    Returns
    -------
    tuple of MaskDoubt
    """
    settings = replace(settings or MaskSettings(), doubts=_MANY)
    given = replace(given or GivenMasks(), labels=(labels,))
    wide = range(max(0, frames.start - _AROUND), min(image.n_frames, frames.stop + _AROUND))
    found: list[MaskDoubt] = []

    def decided(choice: FrameChoice) -> None:
        if choice.frame in frames:
            frame = label_frame(labels, choice.frame)
            found.extend(_Frame(choice, frame, settings.trust).doubts())

    yield from choose_masks(
        image, decided, segmentation, settings, given, model, channel=channel, frames=wide
    )
    return tuple(found)


@dataclass(frozen=True)
class _Frame:
    """A frame as it is drawn, and as it was chosen now."""

    choice: FrameChoice
    labels: NDArray[np.integer]
    trust: float

    def doubts(self) -> Iterator[MaskDoubt]:
        for made in (*map(self._of_doubt, self.choice.doubts), *self._of_changes()):
            if made is not None and not _trifling(made):
                yield made

    def _chance(self, cost: float) -> float:
        """Costs in units of region score are log-odds, as that score is calibrated."""
        return float(1.0 / (1.0 + np.exp(cost / self.trust)))

    def _of_doubt(self, doubt: Doubt) -> MaskDoubt | None:
        """None where what was chosen is not what is drawn."""
        regions = self.choice.candidates.regions
        drawn = [self._drawn(regions.region_pixels(r)) for r in doubt.chosen.tolist()]
        known = tuple(p for p in drawn if p is not None)
        if len(known) < len(drawn):
            return None
        instead = tuple(regions.region_pixels(r) for r in doubt.instead.tolist())
        return self._made(known, instead, doubt.cost, doubt.frames, doubt.events)

    def _made(
        self, drawn: tuple[Index, ...], instead: tuple[Index, ...], cost: float, frames: int,
        events: int,
    ) -> MaskDoubt | None:  # fmt: skip
        """None where the alternative takes much of other cells; a few pixels are left to those."""
        mine = np.concatenate([np.zeros(0, dtype=np.int64), *drawn])
        flat, kept = self.labels.reshape(-1), []
        for pixels in instead:
            free = (flat[pixels] == 0) | np.isin(pixels, mine)
            if free.mean() < 1 - _SHARED:
                return None
            kept.append(pixels[free])
        return MaskDoubt(
            self.choice.frame, self.labels.shape, drawn, tuple(kept), self._chance(cost), frames,
            events,
        )  # fmt: skip

    def _drawn(self, pixels: Index) -> Index | None:
        """The cell drawn that a region is; None where it is none."""
        flat = self.labels.reshape(-1)
        met = np.bincount(flat[pixels])
        label = int(met.argmax())
        cell = np.flatnonzero(flat == label)
        return cell if label and likeness(cell, pixels) > _ALIKE else None

    def _of_changes(self) -> Iterator[MaskDoubt | None]:
        """What would be drawn otherwise."""
        t, candidates = self.choice.frame, self.choice.candidates
        chosen = labels_of(candidates.regions, self.choice.chosen, t)
        after = keep_numbers(self.labels, chosen)
        for change in changes(self.labels, after, t):
            drawn, instead = (
                tuple(np.flatnonzero(side.reshape(-1) == k) for k in numbers)
                for side, numbers in ((self.labels, change.before), (after, change.after))
            )
            if any(len(p) == 0 for p in (*drawn, *instead)):
                continue
            cost, frames, events = self._price(change, drawn, instead)
            yield self._made(drawn, instead, -cost, frames, events)

    def _price(
        self, change: MaskChange, drawn: tuple[Index, ...], instead: tuple[Index, ...]
    ) -> tuple[float, int, int]:
        """What it would cost to leave masks as drawn, and how many frames and events differ."""
        new, old = ({r for p in side for r in self._rows(p)} for side in (instead, drawn))
        for doubt in self.choice.doubts:
            if new <= set(doubt.chosen.tolist()) and old == set(doubt.instead.tolist()):
                return doubt.cost, doubt.frames, doubt.events
        margin = min((float(self.choice.margin[r]) for r in new or old), default=0.0)
        # Every cell more or less has a fate and a history.
        events = 0 if change.kind == ChangeKind.OUTLINE else 2 * abs(len(drawn) - len(instead))
        # All that would cost less is among the doubts.
        return max(margin, JointSettings.doubtful), 1, events

    def _rows(self, pixels: Index) -> list[int]:
        """The candidate that is a set of pixels."""
        like = self.choice.candidates.regions.likeness(self.choice.frame, pixels)
        best = int(like.argmax()) if len(like) else -1
        return [best] if best >= 0 and like[best] > SAME else []


def _trifling(doubt: MaskDoubt) -> bool:
    """Whether nothing but a few pixels of outlines would change."""
    return (
        doubt.events == 0
        and len(doubt.drawn) == len(doubt.instead)
        and all(max(likeness(p, q) for q in doubt.instead) > _ALIKE for p in doubt.drawn)
    )


def settled(doubt: MaskDoubt, answers: MaskAnswers) -> bool:
    """Whether people said already what is right there: most of it are pixels of one answer."""
    about = (a.pixels for a in answers if a.frame == doubt.frame)
    pixels = doubt.concerned
    return any(2 * len(np.intersect1d(pixels, p, assume_unique=True)) > len(pixels) for p in about)


def drawn_as(doubt: MaskDoubt, labels: NDArray[Any]) -> tuple[int, ...] | None:
    """Labels of the cells of a doubt; None where they are not drawn so any more."""
    flat, found = labels.reshape(-1), []
    for pixels in doubt.drawn:
        label = int(flat[pixels[0]])
        if not label or not (flat[pixels] == label).all() or (flat == label).sum() != len(pixels):
            return None
        found.append(label)
    rest = np.setdiff1d(doubt.concerned, np.concatenate([np.zeros(0, np.int64), *doubt.drawn]))
    return tuple(found) if not flat[rest].any() else None
