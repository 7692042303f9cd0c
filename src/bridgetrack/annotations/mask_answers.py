"""Answers about masks: which sets of pixels are exactly one cell, and which are not.

If two answers contradict each other, only the later one counts. Masks that the program chose again
are kept in the same list, as changes without an answer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import Anchored, anchor
from bridgetrack.annotations.annotation import VERIFIED, Kind, is_time, now
from bridgetrack.annotations.annotation_set import AnnotationSet, AnswerSet
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import MaskAnswer, MendKind, cell_pixels, pixels_of
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    likeness,
    no_regions,
    regions_at,
    regions_of_labels,
    shared_pixels,
)

HIGHEST = 2**32 - 1
"""Largest label."""
_ID = re.compile(r"m(0|[1-9]\d{0,14})", re.ASCII)
_MENDING = (MendKind.CUT, MendKind.JOIN, MendKind.GROW, MendKind.REMOVE, MendKind.PAINT)


class MaskAnswers(AnswerSet[MaskAnswer]):
    """All answers about the masks of a movie, in the order in which they were given.

    Iteration goes over the answers alone, without masks that were chosen again, which are in `past`
    and are found by id, too. An `InputError` is raised if an id occurs twice, or an answer names
    pixels outside the movie.
    """

    noun, prefix = "answer about masks", "m"

    def __init__(
        self,
        geometry: Geometry,
        answers: Iterable[MaskAnswer] = (),
        last_id: int = 0,
        last_label: int = 0,
    ) -> None:
        self.last_label = last_label  # highest label ever given, also by answers that were removed
        # Answers about masks that follow from answers about events, see `with_events`; never saved.
        # Direct answers about masks take precedence over them.
        self.held: tuple[MaskAnswer, ...] = ()
        super().__init__(geometry, answers, last_id)

    def _check(self, answer: MaskAnswer) -> None:
        n_pixels = int(np.prod(self.geometry.shape or (), dtype=object))
        called = f"mask answer {answer.id[:80]}"
        if not _ID.fullmatch(answer.id):
            raise InputError(f"{called}: its id must be m and a number")
        if not is_time(answer.created):
            raise InputError(f"{called}: created is {answer.created[:80]!r}, not a time")
        if not all((*answer.right, *answer.wrong)):
            raise InputError(f"{called}: a set of pixels is empty")
        for runs in (*answer.right, *answer.wrong, answer.change):
            end = 0
            for start, length, *labels in runs:
                if start < end or length < 1 or not all(0 <= k <= HIGHEST for k in labels):
                    raise InputError(f"{called}: its runs of pixels are not in order")
                end = start + length
            if answer.frame >= self.geometry.n_frames or end > n_pixels:
                raise InputError(f"{called} names pixels outside the movie")
        self.last_label = max(self.last_label, *answer.labels, 0)

    @property
    def past(self) -> tuple[MaskAnswer, ...]:
        """The answers, and changes of masks without an answer."""
        return tuple(self._items.values())

    def __iter__(self) -> Iterator[MaskAnswer]:
        return (a for a in self._items.values() if not a.says_nothing)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    @property
    def checked(self) -> int:
        """Number of cells in areas that were checked and found right."""
        return sum(len(a.right) for a in self if a.kind == MendKind.CHECK)

    @property
    def mended(self) -> int:
        """Number of answers that added, removed, cut or joined cells."""
        return sum(a.kind in _MENDING for a in self)

    def holding(self, held: Iterable[MaskAnswer]) -> MaskAnswers:
        """The same with other `held`."""
        made = copy(self)
        made.held = tuple(held)
        return made

    def next_for(self, answers: Sequence[MaskAnswer]) -> tuple[MaskAnswer, ...]:
        """New answers, and changes of masks without one, with the next free ids and the time."""
        numbered = enumerate(answers, 1 + self.last_id)
        return tuple(replace(a, id=f"m{n}", created=now()) for n, a in numbered)


# ---------------------------------------------------------------------- what they say

SOURCE = "answer"
"""Source of candidates that people drew or corrected."""

_SAME = 0.8  # overlap above which a candidate equals a set of pixels that was called wrong
_GONE = 0.5  # the same if nothing is right in its place
_RIGHT = 0.5  # overlap from which a candidate may be the cell
_BEST = 0.1  # by how much it may be worse than the best candidate
_TAKEN = 0.25  # of the smaller of two, from which one cuts or contains the other
_ONE_CELL = (Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR, Event.SKIP)


@dataclass(frozen=True)
class _Said:
    """Sets of pixels of one frame by answers that are still valid."""

    right: Regions
    wrong: Regions
    limits: Array  # overlap from which a candidate is each of those wrong


def targets(regions: Regions, answers: MaskAnswers) -> Index:
    """Classes of candidates by the answers about their movie, shape (R,).

    1 for a cell confirmed by an answer (an overlap above 0.5, and within 0.1 of the best
    candidate), -1 for a candidate that cuts or contains such a cell or was called wrong, 0 for one
    that is nearly a cell or was not mentioned.
    """
    if answers.geometry.shape != regions.shape:
        raise InputError(
            f"the answers about masks belong to frames of {answers.geometry.shape} pixels, the "
            f"candidates to frames of {regions.shape}; propose them from the movie of the answers"
        )
    said = np.zeros(len(regions), dtype=np.int64)
    for t, known in _standing(answers, set(np.unique(regions.frame).tolist())).items():
        said[regions.rows(t)] = _judged(regions, t, known)
    return said


def _judged(regions: Regions, t: int, known: _Said) -> Index:
    like, shared, smaller = _compared(regions, known.right, t)
    best = like.max(axis=0, initial=0.0)
    near = like > _RIGHT
    right = (near & (like >= best - _BEST)).any(axis=1)
    spoils = ((shared > _TAKEN * smaller) & ~near).any(axis=1) | _wrong(regions, t, known)
    return np.where(right, 1, np.where(spoils, -1, 0))


def _wrong(regions: Regions, t: int, known: _Said) -> Mask:
    """Which candidates of a frame are sets of pixels that were called wrong."""
    like, shared, smaller = _compared(regions, known.wrong, t)
    # If nothing is right in its place, no part of it and nothing that contains it is a cell.
    like = np.where(known.limits == _GONE, shared / smaller, like)
    return np.asarray((like > known.limits).any(axis=1))


def _compared(regions: Regions, sets: Regions, t: int) -> tuple[Array, Array, Array]:
    """Overlap of every candidate of a frame with every set, pixels shared, and of the smaller."""
    rows = regions.rows(t)
    here = regions.select(np.arange(rows.start, rows.stop))
    area, size = here.area[:, None], sets.area
    shared = shared_pixels(here, sets).toarray().astype(np.float64)
    return shared / (area + size - shared), shared, np.minimum(area, size)


def as_candidates(answers: MaskAnswers, of: Collection[int] | None = None) -> Regions:
    """The cells that people drew, corrected or confirmed, as candidates of the source `SOURCE`.

    They share no pixels, so that all of them can be chosen. Those of all frames, or of some.
    """
    standing = sorted(_standing(answers, of).items())
    nothing = no_regions(answers.geometry.shape or (), (SOURCE,))
    return concatenate([nothing, *(known.right for _, known in standing)])


def _standing(answers: MaskAnswers, of: Collection[int] | None = None) -> dict[int, _Said]:
    """The answers that no later one contradicts, by frame; of all frames or of some."""
    shape = answers.geometry.shape or ()
    frames: dict[int, list[MaskAnswer]] = {}
    right_by_events = (a for a in answers.held if a.right)
    for a in (*right_by_events, *answers, *(a for a in answers.held if not a.right)):
        if of is None or a.frame in of:
            frames.setdefault(a.frame, []).append(a)
    found = {}
    for t, listed in frames.items():
        right: list[Index] = []
        wrong: list[Index] = []
        limits: list[float] = []
        taken = np.zeros(int(np.prod(shape)), dtype=bool)  # pixels of cells that are right
        for answer in reversed(listed):
            cells, others = (list(map(pixels_of, side)) for side in (answer.right, answer.wrong))
            # Right and wrong sets of the same answer are valid together.
            no_cells = [p for p in others if not _like_any(p, _SAME, (*cells, *right))]
            cells = [p for p in cells if not taken[p].any() and not _like_any(p, _GONE, wrong)]
            for p in cells:
                taken[p] = True
            right += cells
            wrong += no_cells
            mended = answer.right and answer.kind != MendKind.CHECK
            limits += [_SAME if mended else _GONE] * len(no_cells)
        found[t] = _Said(_sets(shape, t, right), _sets(shape, t, wrong), np.array(limits))
    return found


def _like_any(pixels: Index, limit: float, sets: Iterable[Index]) -> bool:
    return any(likeness(pixels, each) > limit for each in sets)


def honoured(labels: NDArray[Any], answers: MaskAnswers, frame: int) -> bool:
    """Whether the masks of a frame, shape ([Z,] Y, X), agree with the answers about it."""
    known = _standing(answers, {frame})
    if frame not in known:
        return True
    there, said = regions_of_labels(labels, frame), known[frame]
    like, _, _ = _compared(there, said.right, frame)
    return bool((like == 1).any(axis=0).all() and not _wrong(there, frame, said).any())


def _sets(shape: tuple[int, ...], t: int, sets: Sequence[Index]) -> Regions:
    """Sets of pixels of a frame as candidates that people drew."""
    starts = np.cumsum([0, *(len(p) for p in sets)], dtype=np.int64)
    pixels = np.concatenate([np.zeros(0, dtype=np.int64), *sets])
    return regions_at(shape, t, starts, pixels, SOURCE, np.ones(len(sets)))


def with_events(
    masks: MaskAnswers, answers: AnnotationSet, detections: Detections, labels: Movie
) -> Steps[MaskAnswers]:
    """Answers about masks, with those that follow from confirmed events for the present masks.

    The mask of a cell that moves, divides, appears, disappears or is missed is right. That of a
    cell that merges or is split is wrong there or in the next frame, so that nothing follows unless
    its track is verified. A false detection is no cell. Direct answers about masks take precedence.
    """
    right, none = _rows_said(anchor(answers, detections, labels))
    frames = np.unique(detections.frame[np.concatenate([right, none])]).tolist()
    held: list[MaskAnswer] = []
    for k, t in enumerate(frames):
        yield Progress("Looking at your answers", k / len(frames))
        drawn = label_frame(labels, t)
        here = (rows[detections.frame[rows] == t] for rows in (right, none))
        cells, others = (cell_pixels(drawn, detections.label[rows]) for rows in here)
        if cells:
            held.append(MaskAnswer.of(t, MendKind.KEEP, right=cells))
        if others:
            held.append(MaskAnswer.of(t, MendKind.REMOVE, wrong=others))
    return masks.holding(held)


def _rows_said(anchored: Anchored) -> tuple[Index, Index]:
    """Rows of the cells that are right, and of those that are none."""
    events = anchored.events
    said = np.array([a.kind == Kind.CONFIRM for a in anchored.listed], dtype=bool)[anchored.owner]
    locked = np.array([a.source == VERIFIED for a in anchored.listed], dtype=bool)[anchored.owner]
    cells = np.concatenate([events.sources, events.targets], axis=1)
    false, whole = events.event == Event.FALSE, np.isin(events.event, _ONE_CELL)

    def named(which: Mask) -> Index:
        found = np.unique(cells[said & which])
        return np.asarray(found[found >= 0])

    none = named(false)
    right = np.setdiff1d(named(whole), named(~whole & ~false))
    return np.setdiff1d(np.union1d(right, named(locked)), none), none
