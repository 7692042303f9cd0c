"""What answers about events say of masks: what moves or divides is a cell, and debris is none."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import Anchored, anchor
from bridgetrack.annotations.annotation import VERIFIED, Kind, now
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers, Runs, runs_of
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.movie import Movie, label_frame
from bridgetrack.progress import Progress, Steps
from bridgetrack.regions.mend import MendKind

Index = NDArray[np.int64]

_ONE_CELL = (Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR, Event.SKIP)


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
    return replace(masks, held=tuple(held))


def _rows_said(anchored: Anchored) -> tuple[Index, Index]:
    """Rows of the cells that are right, and of those that are none."""
    events = anchored.events
    said = np.array([a.kind == Kind.CONFIRM for a in anchored.listed], dtype=bool)[anchored.owner]
    locked = np.array([a.source == VERIFIED for a in anchored.listed], dtype=bool)[anchored.owner]
    cells = np.concatenate([events.sources, events.targets], axis=1)
    false, whole = events.event == Event.FALSE, np.isin(events.event, _ONE_CELL)

    def named(which: NDArray[np.bool_]) -> Index:
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
