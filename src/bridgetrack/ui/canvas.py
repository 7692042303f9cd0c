"""The layers over the image: draws the overlay, and turns mouse and keys into actions.

The keys are listed here, each with its words; the buttons show the same.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from qtpy.QtOpenGLWidgets import QOpenGLWidget
from qtpy.QtWidgets import QWidget
from superqt.utils import qdebounced

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef
from bridgetrack.arrays import Array
from bridgetrack.regions.mend import Place
from bridgetrack.session.cells import shown_diameter
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.background import Links
from bridgetrack.ui.layers import camera_of, kind_of, look_at, paintable, role_of
from bridgetrack.ui.looks import PROPOSAL, rgba
from bridgetrack.ui.overlay import Drawing, SliceShown
from bridgetrack.ui.overlay_layers import OverlayLayers
from bridgetrack.ui.picking import Mode

_CELL, _ASKED = 40.0, 60.0
"""Least screen pixels across a cell that the view goes to, and across the first one asked about."""


class SliceInView:
    """Converts between the viewer's world and frames, planes and pixels of the segmentation."""

    def __init__(self, viewer: Any, session: Session) -> None:
        self._viewer = weakref.ref(viewer)
        self._session = session
        self._size = 10.0
        self._widget: weakref.ref[QWidget] | None = None  # the widget that the viewer draws on

    @property
    def viewer(self) -> Any:
        """The viewer; None once it is closed."""
        return self._viewer()

    @property
    def labels(self) -> Any:
        """The layer of the cells, None without a movie."""
        source = self._session.movie
        return None if source is None else source.layers[1]

    @property
    def frame(self) -> int:
        """The frame in view."""
        scene, viewer = self._session.scene, self.viewer
        if scene is None or viewer is None:
            return 0
        last = scene.detections.geometry.n_frames - 1
        return min(max(round(self._data_point()[0]), 0), max(last, 0))

    @property
    def plane(self) -> float | None:
        """The plane in view of a 3D movie, in pixels; None in 2D, or if all are in view."""
        scene, viewer = self._session.scene, self.viewer
        if scene is None or viewer is None or scene.detections.geometry.ndim == 2:
            return None
        if viewer.dims.ndisplay == 3:
            return None
        return self._data_point()[1]

    @property
    def depth(self) -> float:
        """Distance between planes of a 3D movie, in pixels along x."""
        labels = self.labels
        flat = labels is None or labels.ndim < 4
        return 1.0 if flat else float(labels.scale[1] / labels.scale[-1])

    @property
    def area(self) -> tuple[Place, Place] | None:
        """Opposite corners of the area in view, in pixels; in 3D through all planes."""
        labels = self.labels
        if labels is None:
            return None
        corners = np.reshape(self._edges, (2, 2))
        low, high = np.clip(np.rint(corners), 0, self._extent - 1).tolist()
        if labels.ndim == 4:
            return (0.0, *low), (float(labels.extent.data[1][1]), *high)
        return tuple(low), tuple(high)

    @property
    def _extent(self) -> Array:
        """Height and width of a frame in pixels, shape (2,)."""
        scene = self._session.scene
        if scene is not None and scene.detections.geometry.shape is not None:
            return np.asarray(scene.detections.geometry.shape[-2:], dtype=np.float64)
        return np.asarray(self.labels.extent.data[1][-2:], dtype=np.float64) + 1

    def show(
        self,
        frame: int,
        position: tuple[float, ...] | None,
        *,
        plane: float | None = None,
        across: float = _CELL,
    ) -> None:
        """Go to a frame and, if given, to a position in pixels.

        Cells are then at least `across` pixels wide on the screen. Without a position a 3D movie
        may go to another `plane`.
        """
        viewer, labels = self.viewer, self.labels
        if viewer is None or labels is None:
            return
        if self._session.scene is not None:
            last = self._session.scene.detections.geometry.n_frames - 1
            frame = min(max(frame, 0), max(last, 0))
        # The viewer may have more axes than the movie.
        axis = int(viewer.dims.ndim - labels.ndim)
        camera = camera_of(viewer)
        zoom = max(camera.zoom, across / (self._size * float(labels.scale[-1])))
        none = (plane or 0.0, 0.0, 0.0)[1 - labels.ndim :]
        inside = none if position is None else position
        world = [float(w) for w in labels.data_to_world((frame, *inside))]
        viewer.dims.set_point(axis, world[0])
        if labels.ndim == 4 and (position is not None or plane is not None):
            viewer.dims.set_point(axis + 1, world[1])
        if position is None:
            return
        look_at(viewer, world)
        camera.zoom = zoom

    def look_from(self, window: QWidget) -> None:
        """Set the window in which the viewer is."""
        mine = window.findChildren(QOpenGLWidget)
        self._widget = weakref.ref(mine[0]) if len(mine) == 1 else None

    @property
    def _pixel(self) -> float:
        """Size of a screen pixel, in pixels of the movie; 0 before it is shown."""
        if self._widget is None or self._widget() is None or self.labels is None:
            return 0.0
        return 1.0 / float(camera_of(self.viewer).zoom * self.labels.scale[-1])

    @property
    def _edges(self) -> tuple[float, ...]:
        """Top, left, bottom and right of the visible area in pixels; else of the frame."""
        viewer, labels = self.viewer, self.labels
        widget = None if self._widget is None else self._widget()
        if viewer is None or widget is None or viewer.dims.ndisplay != 2:
            return (0.0, 0.0, *self._extent.tolist())
        camera, point = camera_of(viewer), list(viewer.dims.point)
        half = np.array([widget.height(), widget.width()]) / 2 / camera.zoom
        corners: list[float] = []
        for side in (-1, 1):
            point[-2:] = (np.asarray(camera.center[-2:]) + side * half).tolist()
            corners += [float(p) for p in labels.world_to_data(point)[-2:]]
        return tuple(corners)

    def holds(self, position: tuple[float, ...]) -> bool:
        """Whether a position in pixels is on the screen, in or near the plane in view."""
        plane = self.plane
        if plane is not None and self.depth * abs(position[0] - plane) > self._size:
            return False
        top, left, bottom, right = self._edges
        return top <= position[-2] <= bottom and left <= position[-1] <= right

    def _data_point(self) -> tuple[float, ...]:
        """The point of the slice in view, in frames and pixels."""
        return tuple(float(p) for p in self.labels.world_to_data(self.viewer.dims.point))


@dataclass(frozen=True)
class Shortcut:
    """A key of the canvas."""

    name: str  # used to find it, e.g. for its button
    keys: tuple[str, ...]  # in napari's words, none or some; the first is shown
    words: str  # what it does
    act: Callable[[Annotator], None]


_CHOICES = 5
"""Alternatives that have a key: as many as a question lists."""

_MODES = [
    Shortcut(mode.name, tuple(mode.key), mode.hint, partial(Annotator.start, mode=mode))
    for mode in Mode
    if mode.words
]
_NUMBERS = [
    Shortcut(f"choose_{k}", (f"{k}",), f"Alternative {k}", partial(Annotator.choose, number=k))
    for k in range(1, 1 + _CHOICES)
]

SHORTCUTS = (
    *_MODES,
    Shortcut("again", (), "Cut, join, add and remove cells in all frames where the image shows "
             "that masks are wrong. Your answers about masks are respected and used for learning",
             Annotator.choose_again),
    Shortcut("suggest", ("G",), "Go to the event for which an answer helps most",
             Annotator.suggest),
    Shortcut("accept", ("Enter",), "Yes, that is right", Annotator.accept),
    Shortcut("reject", ("Backspace",), "No, not this", Annotator.reject),
    Shortcut("unsure", ("U",), "I cannot tell; it is not asked again", Annotator.cannot_tell),
    Shortcut("undo", ("Z", "Control-Z"), "Undo the last answer", Annotator.undo),
    Shortcut("redo", ("R", "Control-Shift-Z"), "Redo what was undone", Annotator.redo),
    Shortcut("cancel", ("Escape",), "Cancel", Annotator.cancel),
    *_NUMBERS,
)  # fmt: skip
"""All keys of the canvas, and what buttons do as keys would."""


def shortcut(name: str) -> Shortcut:
    """The shortcut with this name."""
    return next(s for s in SHORTCUTS if s.name == name)


_LETTER = 9.0
"""Width of a letter in screen pixels, with some margin."""

_STILL = 4.0
"""Screen pixels that the pointer may move between press and release of a click."""


class Canvas(SliceInView):
    """The overlay of one viewer, drawn at the next turn of the event loop after a change.

    Clicks and keys work whichever layer is active, unless one of its tools is selected; keys of the
    layer itself are left to it. A click makes *Events* active, for which all keys are ours.
    """

    def __init__(self, viewer: Any, session: Session, annotator: Annotator) -> None:
        super().__init__(viewer, session)
        self._annotator = annotator
        self.overlay = OverlayLayers()
        self._point: tuple[float, ...] | None = None
        self._moving = self._zoomed = False  # to a question; whether its cells were zoomed to
        self._before: tuple[Any, ...] = ()  # the view before the first question
        self.redraw = qdebounced(self._redraw, timeout=0)
        annotator.area = lambda: self.area
        annotator.in_view = self.holds
        annotator.take_outline = self.take_outline
        self._links = Links()
        listen, camera = self._links.add, camera_of(viewer).events
        listen(annotator.changed, self.redraw)
        listen(annotator.show, self.show)
        listen(session.questions.look, self._on_question)
        listen(session.questions.changed, self._on_questions)
        listen(session.movie_changed, self._on_source)
        listen(session.scene_changed, self._on_scene)
        listen(session.masks_changed, self._on_masks)
        listen(viewer.dims.events.current_step, self._on_frame)
        for event in (viewer.dims.events.ndisplay, camera.zoom, camera.center):
            listen(event, self.redraw)
        listen(viewer.events.mouse_over_canvas, self._on_leave)
        listen(viewer.layers.events.removed, lambda event: self.overlay.forget(event.value))
        viewer.mouse_drag_callbacks.append(self._on_press)
        viewer.mouse_move_callbacks.append(self._on_move)
        self._bind(viewer)

    def close(self) -> None:
        """Remove our callbacks and keys from the viewer."""
        self.redraw.cancel()
        self._links.cut()
        viewer = self.viewer
        if viewer is None:
            return
        for known, act in (
            (viewer.mouse_drag_callbacks, self._on_press),
            (viewer.mouse_move_callbacks, self._on_move),
        ):
            if act in known:
                known.remove(act)
        for key in [key for shortcut in SHORTCUTS for key in shortcut.keys]:
            viewer.bind_key(key, None, overwrite=True)

    def activate(self) -> None:
        """Make the overlay the active layer, so that clicks and keys reach it."""
        if self.viewer is not None and self._session.scene is not None and self._lay():
            self.overlay.raise_in(self.viewer)
            self.viewer.layers.selection.active = self.overlay.events

    def _lay(self) -> bool:
        """Put the layers over the cells; not over cells that were deleted meanwhile."""
        viewer, labels = self.viewer, self.labels
        there = viewer is not None and labels is not None and labels in viewer.layers
        if there:
            self.overlay.put_over(viewer, labels, self._size, self._bind)
            self.redraw()
        return there

    def _on_source(self) -> None:
        """Make the layers while the cells are being measured."""
        self._before = ()
        if self.viewer is not None:
            self.overlay.draw(Drawing())  # removes drawings of the earlier movie
            self._lay()

    def _bind(self, keys_of: Any) -> None:
        for shortcut in SHORTCUTS:
            for key in shortcut.keys:
                act = partial(shortcut.act, self._annotator)
                keys_of.bind_key(key, lambda _, act=act: act(), overwrite=True)

    def _on_scene(self) -> None:
        scene = self._session.scene
        if scene is None:
            return
        self._size = shown_diameter(scene.detections)
        self._annotator.frame = self.frame
        if self._painting:
            self._lay()
        else:
            self.activate()

    def _on_masks(self, _: set[int]) -> None:
        labels = self.labels
        if labels is not None:
            labels.refresh()

    def take_outline(self, frame: int, place: Place) -> str:
        """Draw the cell at a place as in another visible Labels layer; returns the problem, if any.

        It is drawn as by the tools of napari: what is painted is an answer about masks.
        """
        viewer, own, masks = self.viewer, self.labels, self._session.masks
        at = (frame, *(round(p) for p in place))
        for other in reversed(list(viewer.layers)):
            if other is own or not other.visible or not _has_outlines(other, own):
                continue
            drawn, before = np.asarray(other.data[frame]), np.asarray(own.data[frame])
            if masks is None or not drawn[at[1:]]:
                continue
            label = before[at[1:]] or masks.new_label(frame)
            there = (drawn == drawn[at[1:]]) & np.isin(before, (0, label))
            with own.block_history():
                for mask, value in (((before == label) & ~there, 0), (there, label)):
                    where = np.nonzero(mask)
                    if len(where[0]):
                        own.data_setitem((np.full(len(where[0]), frame), *where), value)
            return ""
        return "No other visible layer of masks has a cell here."

    @property
    def _painting(self) -> bool:
        """Whether a tool of a layer is selected."""
        active = None if self.viewer is None else self.viewer.layers.selection.active
        return str(getattr(active, "mode", "pan_zoom")) != "pan_zoom"

    @property
    def has_numbers(self) -> bool:
        """Whether number keys answer: most layers use them for their own tools."""
        active = None if self.viewer is None else self.viewer.layers.selection.active
        if active is None or active is self.overlay.events:
            return True
        return "1" not in map(str, active.class_keymap)

    @property
    def _listening(self) -> bool:
        """Whether the pointer is ours; over a volume it has no position."""
        ready = self._session.scene is not None and self.overlay.events is not None
        return ready and self.viewer.dims.ndisplay == 2 and not self._painting

    def _on_move(self, _: Any, event: Any) -> None:
        if self._listening:
            self._point = self.place_of(event)
            self._annotator.hover(self.frame, self._point)

    def _on_leave(self) -> None:
        if self.viewer is not None and not self.viewer.mouse_over_canvas:
            self._point = None
            self._annotator.leave()

    def place_of(self, event: Any) -> tuple[float, ...]:
        """Position of the pointer in pixels, with the plane in view in 3D."""
        assert self.overlay.events is not None
        return self._in_plane(self.overlay.events.world_to_data(event.position))

    def _in_plane(self, point: Sequence[float]) -> tuple[float, ...]:
        """A point moved into the plane in view."""
        flat, plane = tuple(float(p) for p in point[-2:]), self.plane
        return flat if plane is None else (plane, *flat)

    def _on_press(self, _: Any, event: Any) -> Iterator[None]:
        held = [str(getattr(key, "name", key)) for key in event.modifiers]
        if event.button != 1 or held not in ([], ["Shift"]) or not self._listening:
            return
        start = np.asarray(event.pos, dtype=float)
        far = 0.0
        yield
        while event.type == "mouse_move":
            far = max(far, float(np.abs(np.asarray(event.pos, dtype=float) - start).max()))
            yield
        if far <= _STILL and self._listening:
            self.activate()
            self._point = self.place_of(event)
            self._annotator.click(self.frame, self._point, shift=bool(held))

    def _on_frame(self) -> None:
        if self.overlay.events is None or self._session.scene is None:
            return
        questions = self._session.questions
        if not self._moving and questions.asking and questions.current is not None:
            questions.away = True  # the user steps through the frames: do not move the view
        self._annotator.frame = self.frame
        if self._point is not None and self.viewer.dims.ndisplay == 2:
            self._point = self._in_plane(self._point)
            self._annotator.hover(self.frame, self._point)
        self.redraw()

    def _on_question(self, asked: Suggestion) -> None:
        if not self._before:
            camera, dims = camera_of(self.viewer), self.viewer.dims
            self._before = camera.center, camera.zoom, dims.current_step
        self.activate()
        self.show_asked(min(c.frame for c in asked.cells), asked.position)

    def show_asked(self, frame: int, position: tuple[float, ...] | None = None) -> None:
        """Show a frame of the question and, if given, centre a position in pixels."""
        asked = self._session.questions.current
        if asked is None:
            return
        cells = [c for c in asked.cells if c.frame == frame] or asked.cells
        plane = float(np.mean([c.position[0] for c in cells]))
        if position is not None:
            position = (plane, *position[-2:])[-len(position) :]
        self._moving = True
        try:
            self.show(frame, position, plane=plane, across=0.0 if self._zoomed else _ASKED)
            self._zoomed = self._zoomed or position is not None
        finally:
            self._moving = False

    def _on_questions(self) -> None:
        questions = self._session.questions
        self._zoomed = self._zoomed and questions.engaged
        if self._before and self.viewer is not None and (questions.ended or not questions.engaged):
            camera, (center, zoom, step) = camera_of(self.viewer), self._before
            self._before = ()
            self.viewer.dims.current_step = step
            camera.center, camera.zoom = center, zoom
        self.redraw()

    def _redraw(self) -> None:
        viewer, session = self.viewer, self._session
        if viewer is None or session.scene is None or self.labels is None:
            return
        dot, plane = self._pixel, self.plane
        view = SliceShown(
            self.frame, plane, self._size, self._edges, self.depth, _LETTER * dot,
            session.questions.name, self.outline,
        )  # fmt: skip
        # Words have a rim if it lies in the plane in view.
        rim = dot if viewer.dims.ndisplay == 2 else 0.0
        self.overlay.draw(self._drawn_in(view), rim, plane)

    def outline(self, cell: CellRef) -> Array:
        """Points along the border of a cell, shape (k, ndim); none before the movie is measured."""
        scene, finder = self._session.scene, self._annotator.finder
        if scene is None or finder is None:
            return np.zeros((0, 2))
        return finder.outline(scene.detections.row_of(*cell.cell))

    def _drawn_in(self, view: SliceShown) -> Drawing:
        annotator, session, drawing = self._annotator, self._session, Drawing(view)
        asked = session.questions.current
        if asked is not None and session.questions.asking:
            drawing.question(asked, session.questions.denied)
        elif asked is not None and session.questions.engaged:
            drawing.subject(asked)
        if session.annotations is not None:
            drawing.answers(session.annotations.in_frame(view.frame))
        finder, picking, row = annotator.finder, annotator.picking, annotator.outlined
        if finder is None:
            return drawing
        if picking.mode != Mode.REVIEW:
            if row >= 0 and not annotator.asking:
                drawing.pointed(finder.ref(row), picking.mode)
            drawing.picked(picking.source, picking.targets)
        elif row >= 0 and annotator.proposals:
            drawing.proposals(annotator.proposals)
        first = picking.place  # the first of two clicks on masks
        if first is not None and first[0] == view.frame:
            drawing.mark(first[1], "cross", 0.4 * view.size, rgba(PROPOSAL))
        return drawing


def _has_outlines(layer: Any, cells: Any) -> bool:
    """Whether a layer has masks of the frames that a layer of cells has, which can be painted."""
    kinds = {kind_of(layer), kind_of(cells)}
    alike = kinds == {"labels"} and layer.data.shape == cells.data.shape
    return alike and paintable(cells) and role_of(layer) != "coloured"
