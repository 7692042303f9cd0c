"""What answers say of masks: of candidates, of the masks of a frame, and answers about events.

What moves or divides is a cell, and debris is none.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import Anchored, anchor
from bridgetrack.annotations.annotation import VERIFIED, Kind, now
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers, Runs, pixels_of, runs_of
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import MendKind
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    likeness,
    no_regions,
    regions_of_labels,
)

SOURCE = "answer"
"""What candidates are called that people drew or mended."""

_SAME = 0.8  # overlap above which a candidate is the set of pixels that somebody said is wrong
_GONE = 0.5  # the same where nothing is right in its place
_RIGHT = 0.5  # overlap from which a candidate may be the cell
_BEST = 0.1  # by how much it may be worse than the best candidate
_TAKEN = 0.25  # of the smaller of two, from which one cuts or swallows the other
_ONE_CELL = (Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR, Event.SKIP)


@dataclass(frozen=True)
class _Said:
    """Sets of pixels of one frame that still stand, as rows × pixels."""

    right: sp.csr_matrix
    wrong: sp.csr_matrix
    limits: Array  # overlap from which a candidate is each of those wrong


def targets(regions: Regions, answers: MaskAnswers) -> Index:
    """What the answers say of every candidate.

    Parameters
    ----------
    regions
        Candidates.
    answers
        Answers about the movie that they are of.

    Returns
    -------
    numpy.ndarray
        1 where it is a cell that was answered (an overlap above 0.5, and within 0.1 of the best
        candidate), -1 where it cuts or swallows such a cell or is a set of pixels that was called
        wrong, 0 where it is nearly a cell or nothing was said; shape (R,).
    """
    if answers.geometry.shape != regions.shape:
        raise InputError(
            f"the answers about masks are of frames of {answers.geometry.shape} pixels, the "
            f"candidates of {regions.shape}; propose them from the movie that was answered"
        )
    said = np.zeros(len(regions), dtype=np.int64)
    for t, known in _standing(answers, set(np.unique(regions.frame).tolist())).items():
        rows = regions.rows(t)
        member, area = regions.membership(t), regions.area[rows]
        said[rows] = _judged(member, area, known)
    return said


def _judged(member: sp.csr_matrix, area: Index, known: _Said) -> Index:
    like, shared, smaller = _compared(member, area, known.right)
    best = like.max(axis=0, initial=0.0)
    near = like > _RIGHT
    right = (near & (like >= best - _BEST)).any(axis=1)
    spoils = ((shared > _TAKEN * smaller) & ~near).any(axis=1) | _wrong(member, area, known)
    return np.where(right, 1, np.where(spoils, -1, 0))


def _wrong(member: sp.csr_matrix, area: Index, known: _Said) -> Mask:
    """Which candidates are sets of pixels that were called wrong."""
    like, shared, smaller = _compared(member, area, known.wrong)
    # Where nothing is right in its place, no cut of it and nothing that swallows it is a cell.
    like = np.where(known.limits == _GONE, shared / smaller, like)
    return np.asarray((like > known.limits).any(axis=1))


def _compared(
    member: sp.csr_matrix, area: Index, sets: sp.csr_matrix
) -> tuple[Array, Array, Array]:
    """Overlap of every candidate with every set, pixels shared, and those of the smaller one."""
    size = np.asarray(sets.sum(axis=1)).ravel()
    shared = np.asarray((member @ sets.T).todense(), dtype=np.float64)
    union = area[:, None] + size - shared
    return shared / union, shared, np.minimum(area[:, None], size)


def as_candidates(answers: MaskAnswers, of: Collection[int] | None = None) -> Regions:
    """The cells that people drew, mended or called right, as candidates of the source `SOURCE`.

    They share no pixels, so that all of them can be chosen. Of all frames, or of some.
    """
    shape = answers.geometry.shape or ()
    parts = [no_regions(shape, (SOURCE,))]
    for t, known in sorted(_standing(answers, of).items()):
        n = known.right.shape[0]
        if n:
            parts.append(
                Regions(
                    shape,
                    np.full(n, t, dtype=np.int64),
                    known.right.indptr.astype(np.int64),
                    known.right.indices.astype(np.int64),
                    (SOURCE,),
                    np.zeros(n, dtype=np.int64),
                    np.ones((n, 1), dtype=np.int64),
                    np.ones(n),
                )
            )
    return concatenate(parts)


def _standing(answers: MaskAnswers, of: Collection[int] | None = None) -> dict[int, _Said]:
    """What no later answer takes back, by frame; of all frames or of some."""
    n_pixels = int(np.prod(answers.geometry.shape or ()))
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
        taken = np.zeros(n_pixels, dtype=bool)  # by what is right
        for answer in reversed(listed):
            cells = [pixels_of(runs) for runs in answer.right]
            others = [pixels_of(runs) for runs in answer.wrong]
            no_cells = [
                p for p in others if not any(likeness(p, cell) > _SAME for cell in (*cells, *right))
            ]
            # Of the same answer, what is right and what is wrong hold together.
            cells = [
                p
                for p in cells
                if not taken[p].any() and not any(likeness(p, q) > _GONE for q in wrong)
            ]
            for p in cells:
                taken[p] = True
            right += cells
            wrong += no_cells
            mended = answer.right and answer.kind != MendKind.CHECK
            limits += [_SAME if mended else _GONE] * len(no_cells)
        sides = _rows(right, n_pixels), _rows(wrong, n_pixels)
        found[t] = _Said(*sides, np.array(limits))
    return found


def honoured(labels: NDArray[Any], answers: MaskAnswers, frame: int) -> bool:
    """Whether the masks of a frame are as the answers about it say.

    Parameters
    ----------
    labels
        Labels of the frame, shape ([Z,] Y, X).
    answers
        Answers about its movie.
    frame
        Number of the frame.
    """
    known = _standing(answers, {frame})
    if frame not in known:
        return True
    there, said = regions_of_labels(labels, frame), known[frame]
    member, area = there.membership(frame), there.area
    like, _, _ = _compared(member, area, said.right)
    return bool((like == 1).any(axis=0).all() and not _wrong(member, area, said).any())


def _rows(sets: Sequence[Index], n_pixels: int) -> sp.csr_matrix:
    starts = np.concatenate([[0], np.cumsum([len(p) for p in sets])]).astype(np.int64)
    pixels = np.concatenate(sets) if sets else np.zeros(0, dtype=np.int64)
    return sp.csr_matrix((np.ones(len(pixels), np.int32), pixels, starts), (len(sets), n_pixels))


def with_events(
    masks: MaskAnswers, answers: AnnotationSet, detections: Detections, labels: Movie
) -> Steps[MaskAnswers]:
    """Answers about masks, with what confirmed events say of the masks as they are now.

    A cell that is there, moves, is missed or divides is right as it is drawn. A cell that merges
    or is cut is drawn wrongly there or in the next frame, so that nothing is said of it, unless
    its track is verified. A false detection is no cell.

    Parameters
    ----------
    masks
        What was said of masks; it goes before what is right by events.
    answers
        Answers about events.
    detections, labels
        The cells of the movie, and their masks.

    Yields
    ------
    Progress

    Returns
    -------
    MaskAnswers
        With other `held`.
    """
    right, none = _rows_said(anchor(answers, detections, labels))
    frames = np.unique(detections.frame[np.concatenate([right, none])]).tolist()
    held: list[MaskAnswer] = []
    for k, t in enumerate(frames):
        yield Progress("Looking at your answers", k / len(frames))
        drawn, when = label_frame(labels, t).reshape(-1), now()
        here = (rows[detections.frame[rows] == t] for rows in (right, none))
        cells, others = (tuple(_outlines(drawn, detections.label[rows])) for rows in here)
        if cells:
            held.append(MaskAnswer(f"right in {t}", t, MendKind.KEEP, when, right=cells))
        for runs in others:  # by its pixels: where they change, it teaches something else
            name = f"none in {t}: {zlib.crc32(repr(runs).encode()):08x}"
            held.append(MaskAnswer(name, t, MendKind.REMOVE, when, wrong=(runs,)))
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


def _outlines(drawn: NDArray[Any], labels: Index) -> Iterator[Runs]:
    """Pixels of some cells of a flat frame, of those that are there."""
    inside = np.flatnonzero(np.isin(drawn, labels))
    order = np.argsort(drawn[inside], kind="stable")
    starts = np.flatnonzero(np.diff(drawn[inside][order], prepend=-1))
    for pixels in np.split(inside[order], starts[1:]) if len(inside) else ():
        yield runs_of(pixels)
