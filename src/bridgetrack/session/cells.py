"""Names of cells, their possible events, the words of questions, and finding cells by position."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from scipy import ndimage as ndi
from skimage.segmentation import find_boundaries

from bridgetrack.active.suggester import Proposal, ranked
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import cell_diameters, cell_refs
from bridgetrack.annotations.annotation import (
    Annotation,
    CellRef,
    EventRef,
    Name,
    by_label,
    short_words,
)
from bridgetrack.annotations.history import AnswerChange
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, plural
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import Movie
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.table import verified_tracks


class CellNames:
    """Names of cells: the number of the track, e.g. ``#12``; by the label where there are none.

    Two pieces of one cell in the same frame are ``#12a`` and ``#12b``; verified tracks have a tick.
    `tracking` is None before there are tracks.
    """

    def __init__(self, tracking: Tracking | None) -> None:
        self._tracking = tracking

    @cached_property
    def _of_row(self) -> tuple[Index, dict[int, str]]:
        """Track of every detection, 0 where it has none, and letters of pieces by their row."""
        assert self._tracking is not None
        nodes = self._tracking.tracks.nodes
        rows = nodes["id"].to_numpy(dtype=np.int64)
        track = np.zeros(len(self._tracking.scene.detections), dtype=np.int64)
        track[rows] = nodes["track_id"].to_numpy(dtype=np.int64)
        shared = nodes[nodes.duplicated(["frame", "track_id"], keep=False)].sort_values("id")
        place = shared.groupby(["frame", "track_id"]).cumcount()
        letters = zip(shared["id"].tolist(), place.tolist(), strict=True)
        return track, {int(row): chr(ord("a") + k % 26) for row, k in letters}

    @cached_property
    def _verified(self) -> frozenset[int]:
        return frozenset() if self._tracking is None else verified_tracks(self._tracking.tracks)

    def track(self, cell: CellRef) -> int:
        """Number of the track of a cell, 0 where it has none."""
        return self._found(cell)[0]

    def verified(self, cell: CellRef) -> bool:
        """Whether the track of a cell is verified."""
        return bool(self._verified) and self.track(cell) in self._verified

    def _found(self, cell: CellRef) -> tuple[int, str]:
        """Track and letter of a cell."""
        if self._tracking is None:
            return 0, ""
        try:
            row = self._tracking.scene.detections.row_of(*cell.cell)
        except InputError:  # an answer about a cell that does not exist any more
            return 0, ""
        track, letters = self._of_row
        return int(track[row]), letters.get(row, "")

    def __call__(self, cell: CellRef) -> str:
        """Name of a cell."""
        if self._tracking is None:
            return by_label(cell)
        track, letter = self._found(cell)
        if not track:
            # Labels are not the numbers of tracks, which may occur in the same sentence.
            return f"{by_label(cell)} (no track)"
        return f"#{track}{letter}{'✓' if track in self._verified else ''}"


def question_words(asked: Suggestion, name: Name = by_label) -> str:
    """The question, about the cell and in the words of its alternatives."""
    said = choice_words(asked.event, asked, name)
    return f"Is this right? {name(asked.asked)} in frame {asked.asked.frame} {said}."


def instead_words(asked: Suggestion, name: Name = by_label) -> str:
    """The question after a no."""
    cell = f"{name(asked.asked)} in frame {asked.asked.frame}"
    if asked.slot[0] == "history":
        return f"Where does {cell} come from instead?"
    return f"What happens to {cell} instead?"


def choice_words(event: EventRef, asked: Suggestion, name: Name = by_label) -> str:
    """An event as a predicate of the cell asked about; sisters tell divisions apart."""
    history = asked.slot[0] == "history"
    words = short_words(event, history, name)
    sisters = [c for c in event.targets if c.cell != asked.slot[1]]
    if not history or not sisters:
        return words
    called = [name(c) for c in sisters]
    if called == [name(c) for c in event.sources]:
        # The mother's track goes on as the sister so far; its number twice would say nothing.
        what = "is a sister of" if event.event == Event.DIVIDE else "is part of the same cell as"
        return f"{what} {called[0]} in frame {sisters[0].frame}"
    return f"{words}, together with {' and '.join(called)}"


def step_words(change: AnswerChange, words_of: Callable[[Annotation], str]) -> str:
    """The change made by a step, in words; `words_of` describes one answer about an event."""
    events = change.added or change.removed
    masks = change.masks_added or change.masks_removed
    frames = {answer.frame for answer in masks}
    parts = []
    if events:
        one = len(events) == 1
        parts.append(words_of(events[0]) if one else f"{len(events)} answers")
    if len(masks) == 1 and not masks[0].says_nothing:
        parts.append(masks[0].words)
    elif masks:
        parts.append(f"the masks of {plural(len(frames), 'frame')}")
    if "model" in change.settings:
        _, learned = change.settings.get("training", (None, None))
        parts.append("training" if learned else "the choice of the model")
    if "without" in change.settings:
        parts.append("what can happen in this movie")
    return " and ".join(parts)


def proposals(tracking: Tracking, row: int, *, limit: int = 6) -> list[Proposal]:
    """Possible events of the cell of a row, as `ranked`; none in the last frame."""
    scene, problem = tracking.scene, tracking.scene.problem
    slot = int(np.searchsorted(scene.slots, row))
    if slot == len(scene.slots) or scene.slots[slot] != row:
        return []
    columns = problem.by_slot[slot].indices
    price = problem.incidence[columns] @ tracking.solution.duals
    cost = np.maximum(price - tracking.scores[columns], 0.0)
    chosen = tracking.solution.chosen[columns]
    return ranked(scene, columns, cost, chosen, tracking.margins[columns], limit)


# ---------------------------------------------------------------------- where cells are

_KEPT, _TRACED = 4, 32
"""Frames and outlines that are kept."""


class CellFinder:
    """Finds cells by their masks, or, where centroids alone are known, by discs around these.

    Frames looked at last are kept in memory.
    """

    def __init__(self, labels: Movie | None, detections: Detections) -> None:
        self._detections, self._masks = detections, labels is not None
        self._radius = shown_diameter(detections) / 2
        if labels is not None:
            self._read = lru_cache(maxsize=_KEPT)(labels.channel_frame)
        # Pixels along a cell's border, shape (k, ndim); in 3D those of its middle slice.
        self.outline = lru_cache(maxsize=_TRACED)(self._trace if self._masks else self._disc)

    def row_at(self, t: int, point: tuple[float, ...]) -> int:
        """Row of the cell at a point in pixels of frame `t`, -1 where there is none."""
        if not 0 <= t < self._detections.geometry.n_frames:
            return -1
        if not self._masks:
            return self._nearest(t, point)
        pixels = self._read(t)
        at = tuple(round(p) for p in point)
        if not all(0 <= a < n for a, n in zip(at, pixels.shape, strict=True)):
            return -1
        label = int(pixels[at])
        try:
            return self._detections.row_of(t, label) if label else -1
        except InputError:
            return -1

    def _nearest(self, t: int, point: tuple[float, ...]) -> int:
        """As `row_at`, where cells are discs."""
        rows, scale = self._detections.rows(t), self._detections.geometry.scale_array
        away = self._detections.position[rows] - np.asarray(point) * scale
        far = np.linalg.norm(away, axis=1) / scale[-2:].mean()
        best = int(np.argmin(far)) if len(far) else -1
        return rows.start + best if len(far) and far[best] <= self._radius else -1

    def ref(self, row: int) -> CellRef:
        """A reference to a cell by its row."""
        return cell_refs(self._detections, np.array([row]))[0]

    def _trace(self, row: int) -> Array:
        t, label = int(self._detections.frame[row]), int(self._detections.label[row])
        inside = self._read(t) == label
        found = ndi.find_objects(inside.view(np.uint8))
        if not found:
            return np.zeros((0, inside.ndim))
        [box] = found
        low = [side.start for side in box]
        return np.argwhere(_border(inside[box])).astype(np.float64) + low

    def _disc(self, row: int) -> Array:
        """Points along the disc of a cell, shape (k, ndim)."""
        angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
        ring = np.tile(np.array(self.ref(row).position), (len(angle), 1))
        ring[:, -2] += self._radius * np.sin(angle)
        ring[:, -1] += self._radius * np.cos(angle)
        return ring


def _border(mask: Mask) -> Mask:
    """Pixels of a mask that have a neighbour in the plane outside of it."""
    if mask.ndim > 2:
        return np.stack([_border(plane) for plane in mask])
    padded = np.pad(mask, 1)
    return np.asarray(find_boundaries(padded, mode="inner")[1:-1, 1:-1])


def shown_diameter(detections: Detections) -> float:
    """Diameter of drawn cells in pixels; half the usual distance if no sizes are known."""
    if not len(detections):
        return 10.0
    usual = float(np.median(cell_diameters(detections)) / np.mean(detections.geometry.scale[-2:]))
    return usual if detections.has_masks else max(usual, 6.0)
