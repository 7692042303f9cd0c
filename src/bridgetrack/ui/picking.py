"""Which cell lies under a point, and picking the cells of an event click by click."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from skimage.segmentation import find_boundaries

from bridgetrack.annotations.anchor import cell_refs
from bridgetrack.annotations.annotation import CellRef, EventRef
from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.table import Detections, cell_diameter
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import N_TARGETS, Event
from bridgetrack.movie import Movie
from bridgetrack.regions.mend import MendKind, Place


class Mode(StrEnum):
    """What a click means."""

    REVIEW = "review"
    SUGGEST = "suggest"
    MOVE = "move"
    DIVIDE = "divide"
    DISAPPEAR = "disappear"
    APPEAR = "appear"
    FALSE = "false"
    VERIFY = "verify"
    CUT = "cut"
    JOIN = "join"
    GROW = "grow"
    REMOVE = "remove"
    OUTLINE = "outline"
    CHECK = "check"

    @property
    def mends(self) -> MendKind | None:
        """How this mode mends masks, None where it does not."""
        return MendKind(self.value) if self in _MENDING else None

    @property
    def event(self) -> Event | None:
        """The event that this mode annotates, None where it annotates none."""
        others = (Mode.REVIEW, Mode.SUGGEST, Mode.VERIFY, *_MENDING)
        return None if self in others else Event.from_key(self.value)


_MENDING = (Mode.CUT, Mode.JOIN, Mode.GROW, Mode.REMOVE, Mode.OUTLINE, Mode.CHECK)


@dataclass(frozen=True)
class Picking:
    """Cells picked so far."""

    mode: Mode = Mode.REVIEW
    source: CellRef | None = None
    targets: tuple[CellRef, ...] = ()
    place: tuple[int, Place] | None = None  # frame and place of the first of two clicks on masks
    half: int = 0  # label of the cell that the first click was in one half of, 0 where in none

    @property
    def empty(self) -> bool:
        """Whether nothing is picked."""
        return self.source is None and self.place is None

    @property
    def hint(self) -> str:
        """What to do next, in plain words."""
        if self.empty:
            return _FIRST[self.mode]
        if self.half:
            return "Click in its other half: the cell is cut between the two. Esc: never mind."
        if self.mode == Mode.CUT:
            return "Click on the other side: the line between cuts. Esc: never mind."
        if self.mode == Mode.JOIN:
            return "Click the other piece. Esc: never mind."
        if self.targets:
            return "Click the second one."
        if self.mode == Mode.MOVE:
            return "Click the same cell here; the outline is where it was. Esc: never mind."
        return "Click both daughters, one after the other. Esc: never mind."


@dataclass(frozen=True)
class PickStep:
    """What a click leads to."""

    picking: Picking  # the new state
    event: EventRef | None = None  # now complete; None while cells are missing
    frame: int | None = None  # to show next, None to stay
    problem: str = ""  # why the click could not be used
    places: tuple[Place, ...] = ()  # where masks are to be mended; none while one is missing


_FIRST = {
    Mode.REVIEW: "Point at a cell to see what the model thinks. Enter says yes, Backspace no.",
    Mode.MOVE: "Click a cell, then the same cell one frame later.",
    Mode.DIVIDE: "Click the mother, then her two daughters one frame later.",
    Mode.DISAPPEAR: "Click a cell in the last frame in which it is seen.",
    Mode.APPEAR: "Click a cell in the first frame in which it is seen.",
    Mode.FALSE: "Click what is not a cell. Shift+click: nothing in its track is a cell.",
    Mode.VERIFY: "Click a cell whose track is right: it is locked. Again: it is released. With "
    "Shift: its whole family.",
    Mode.SUGGEST: "Is what is drawn right? Enter: yes. Bksp: no. A number: that one instead. "
    "U: cannot tell. G: another one. Esc: stop.",
    Mode.CUT: "Click two cells drawn as one; or Shift+click one, then click the other; or click "
    "beside them on both sides.",
    Mode.JOIN: "Click two pieces of one cell.",
    Mode.GROW: "Click a cell that is not drawn.",
    Mode.REMOVE: "Click what is drawn but is no cell.",
    Mode.OUTLINE: "Click a cell for its next outline. Shift+click: the outline that another layer "
    "of masks in view has here.",
    Mode.CHECK: "Correct what is wrong in view first. Then click the image or press Enter: every "
    "cell in view is right, and none is missing.",
}


def click(state: Picking, cell: CellRef) -> PickStep:
    """The state after a click on a cell, in an event mode.

    A click in the frame of the picked cell starts again from there; a later frame than the
    next closes a gap where the mode is *move*.
    """
    event, start = state.mode.event, state.source
    if event is None:
        return PickStep(state)
    if not N_TARGETS[event]:
        return _done(state, EventRef(event, (cell,)), None)
    if event == Event.APPEAR:
        return _done(state, EventRef(event, (), (cell,)), None)
    if start is None or cell.frame == start.frame:
        return PickStep(Picking(state.mode, cell), frame=cell.frame + 1)
    gap = cell.frame - start.frame
    if gap > 1 and event == Event.MOVE:
        return _done(state, EventRef(Event.SKIP, (start,), (cell,)), start.frame)
    if gap != 1:
        problem = "The next cell must be one frame later."
        return PickStep(state, frame=start.frame + 1, problem=problem)
    if any(t.cell == cell.cell for t in state.targets):
        return PickStep(state, problem="That cell is picked already; click the other one.")
    targets = (*state.targets, cell)
    if len(targets) < N_TARGETS[event]:
        return PickStep(replace(state, targets=targets))
    return _done(state, EventRef(event, (start,), targets), start.frame)


def point(state: Picking, frame: int, place: Place, label: int, *, half: bool = False) -> PickStep:
    """The state after a click in a mode that mends masks, on a cell or (label 0) beside all.

    With `half` it is in one of the two halves of a cell that is to be cut; the next click in that
    cell is in the other.
    """
    first = state.place if state.place is not None and state.place[0] == frame else None
    again = Picking(state.mode)
    if first is not None and state.half and label != state.half:
        return PickStep(state, problem="That is not in the same cell; click in its other half.")
    if half and not (first is not None and state.half):
        if not label:
            return PickStep(state, problem="There is no cell here; Shift+click one of the two.")
        return PickStep(replace(again, place=(frame, place), half=label))
    if first is not None:
        return PickStep(again, places=(first[1], place))
    if state.mode == Mode.JOIN and not label:
        return PickStep(again, problem="There is no cell here; click a piece of one.")
    if state.mode == Mode.JOIN or (state.mode == Mode.CUT and not label):
        return PickStep(replace(again, place=(frame, place)))
    return PickStep(again, places=(place,))


def cancel(state: Picking) -> PickStep:
    """Esc: forget what was picked; with nothing picked, go back to review."""
    if state.empty:
        return PickStep(Picking(Mode.REVIEW))
    back = None if state.source is None else state.source.frame
    return PickStep(Picking(state.mode), frame=back)


def _done(state: Picking, event: EventRef, frame: int | None) -> PickStep:
    return PickStep(Picking(state.mode), event, frame)


_KEPT, _TRACED = 4, 32
"""Frames and outlines that are kept."""


class CellFinder:
    """Finds cells by their masks; frames looked at last are kept in memory."""

    def __init__(self, labels: Movie, detections: Detections) -> None:
        self._labels = labels
        self._detections = detections
        self._read = lru_cache(maxsize=_KEPT)(labels.channel_frame)
        self._traced = lru_cache(maxsize=_TRACED)(self._trace)

    def frame(self, t: int) -> NDArray[np.integer]:
        """Labels of a frame, shape ([Z,] Y, X)."""
        return self._read(t)

    def row_at(self, t: int, point: tuple[float, ...]) -> int:
        """Row of the cell at a point in pixels of frame `t`, -1 where there is none."""
        if not 0 <= t < self._labels.n_frames:
            return -1
        pixels = self.frame(t)
        at = tuple(round(p) for p in point)
        if not all(0 <= a < n for a, n in zip(at, pixels.shape, strict=True)):
            return -1
        label = int(pixels[at])
        try:
            return self._detections.row_of(t, label) if label else -1
        except InputError:
            return -1

    def ref(self, row: int) -> CellRef:
        """A reference to a cell by its row."""
        return cell_refs(self._detections, np.array([row]))[0]

    def outline(self, row: int) -> Array:
        """Pixels along a cell's border, shape (k, ndim); in 3D those of its middle slice."""
        return self._traced(row)

    def _trace(self, row: int) -> Array:
        t, label = int(self._detections.frame[row]), int(self._detections.label[row])
        inside = self.frame(t) == label
        where = np.argwhere(inside)
        if not len(where):
            return np.zeros((0, inside.ndim))
        low = np.maximum(where.min(axis=0) - 1, 0)
        box = inside[tuple(slice(a, b + 2) for a, b in zip(low, where.max(axis=0), strict=True))]
        return np.argwhere(_border(box)).astype(np.float64) + low


def _border(mask: Mask) -> Mask:
    """Pixels of a mask that have a neighbour in the plane outside of it."""
    if mask.ndim > 2:
        return np.stack([_border(plane) for plane in mask])
    padded = np.pad(mask, 1)
    return np.asarray(find_boundaries(padded, mode="inner")[1:-1, 1:-1])


class PointFinder:
    """As `CellFinder`, for cells that are known by their centroids alone: each is a disc."""

    def __init__(self, detections: Detections) -> None:
        self._detections = detections
        scale = np.array(detections.geometry.scale)
        self._stretch = scale / scale[-2:].mean()
        self._radius = shown_diameter(detections) / 2
        self._place = detections.table[list(detections.geometry.axes)].to_numpy(dtype=np.float64)

    def row_at(self, t: int, point: tuple[float, ...]) -> int:
        """Row of the cell nearest to a point in pixels of frame `t`, -1 where none is near."""
        if not 0 <= t < self._detections.geometry.n_frames:
            return -1
        rows = np.arange(len(self._detections))[self._detections.rows(t)]
        if not len(rows):
            return -1
        away = np.linalg.norm((self._place[rows] - np.asarray(point)) * self._stretch, axis=1)
        best = int(np.argmin(away))
        return int(rows[best]) if away[best] <= self._radius else -1

    def ref(self, row: int) -> CellRef:
        """A reference to a cell by its row."""
        return cell_refs(self._detections, np.array([row]))[0]

    def outline(self, row: int) -> Array:
        """Points along the disc of a cell, shape (k, ndim)."""
        angle = np.linspace(0, 2 * np.pi, 32, endpoint=False)
        ring = np.repeat(self._place[row][None], len(angle), axis=0)
        ring[:, -2] += self._radius * np.sin(angle)
        ring[:, -1] += self._radius * np.cos(angle)
        return ring


def shown_diameter(detections: Detections) -> float:
    """Diameter in pixels to draw cells at; half the usual distance where a table knows no sizes."""
    geometry = detections.geometry
    if not len(detections):
        return 10.0
    diameter = cell_diameter(detections) / float(np.mean(geometry.scale[-2:]))
    if detections.has_masks or diameter > 2:
        return diameter
    crowded = int(np.bincount(detections.frame).argmax())
    place = detections.position[detections.rows(crowded)]
    if len(place) < 2:
        return 10.0
    near = cKDTree(place).query(place, k=2)[0][:, 1]
    return max(float(np.median(near)) / float(np.mean(geometry.scale[-2:])) / 2, 6.0)
