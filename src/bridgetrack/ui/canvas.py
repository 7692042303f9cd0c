"""The layers that people point at: draws the overlay, and turns mouse and keys into intents."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from napari.layers import Points, Vectors

from bridgetrack.detections.size import equivalent_diameter
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.layers import camera_of, placed_like, tag
from bridgetrack.ui.overlay import Drawing, View, draw_answers, draw_ghost, draw_proposals
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.session import Session
from bridgetrack.ui.shortcuts import SHORTCUTS

_STILL = 4.0
"""Screen pixels that the pointer may move between press and release of a click."""


class Canvas:
    """The overlay of one viewer.

    Two layers: *Events* (arrows; active while annotating, so that it gets mouse and keys) and
    *Marks* (symbols). Both hold only what the frame in view needs.
    """

    def __init__(self, viewer: Any, session: Session, annotator: Annotator) -> None:
        self._viewer = weakref.ref(viewer)
        self._session = session
        self._annotator = annotator
        self._events: Vectors | None = None
        self._marks: Points | None = None
        self._size = 10.0
        self._point: tuple[float, ...] | None = None
        self._drawn: Drawing | None = None
        annotator.changed.connect(self.redraw)
        annotator.show.connect(self.show)
        session.scene_changed.connect(self._on_scene)
        viewer.dims.events.current_step.connect(self._on_frame)
        viewer.layers.events.removed.connect(self._on_removed)

    @property
    def viewer(self) -> Any:
        """The viewer; None once it is closed."""
        return self._viewer()

    @property
    def events_layer(self) -> Vectors | None:
        """The layer to point at, None until there is one."""
        return self._events

    @property
    def marks_layer(self) -> Points | None:
        """The layer with the symbols, None until there is one."""
        return self._marks

    def close(self) -> None:
        """Let go of the viewer."""
        self._annotator.changed.disconnect(self.redraw)
        self._annotator.show.disconnect(self.show)
        self._session.scene_changed.disconnect(self._on_scene)
        viewer = self.viewer
        if viewer is not None:
            viewer.dims.events.current_step.disconnect(self._on_frame)
            viewer.layers.events.removed.disconnect(self._on_removed)

    # ------------------------------------------------------------------ layers

    def activate(self) -> None:
        """Make the overlay the active layer, so that clicks and keys reach it."""
        viewer = self.viewer
        if viewer is None or self._session.scene is None:
            return
        self._ensure_layers()
        viewer.layers.selection.active = self._events

    @property
    def active(self) -> bool:
        """Whether clicks and keys reach the overlay."""
        viewer = self.viewer
        return (
            viewer is not None
            and self._events is not None
            and viewer.layers.selection.active is self._events
        )

    def _ensure_layers(self) -> None:
        viewer, labels = self.viewer, self._labels
        if viewer is None or labels is None:
            return
        where = placed_like(labels, plane=True)
        if self._marks is None:
            self._marks = Points(
                ndim=2, name="Marks", metadata=tag("marks"), face_color="transparent",
                border_width=0.12, size=10, opacity=1.0,
                text={"string": "{text}", "color": "white", "size": 11, "anchor": "center",
                      "translation": [0, 0]},
                features={"text": np.zeros(0, dtype=object)}, **where,
            )  # fmt: skip
            viewer.add_layer(self._marks)
        if self._events is None:
            self._events = Vectors(
                np.zeros((0, 2, 2)), ndim=2, name="Events", metadata=tag("events"),
                vector_style="arrow", edge_width=1.5, opacity=1.0, edge_color="white", **where,
            )  # fmt: skip
            self._bind(self._events)
            viewer.add_layer(self._events)
        self._drawn = None
        self.redraw()

    def _bind(self, layer: Vectors) -> None:
        layer.mouse_drag_callbacks.append(self._on_press)
        layer.mouse_move_callbacks.append(self._on_move)
        for shortcut in SHORTCUTS:
            for key in shortcut.keys:
                layer.bind_key(key, self._key(shortcut.act), overwrite=True)

    def _key(self, act: Callable[[Annotator], None]) -> Callable[[Any], None]:
        def pressed(_: Any) -> None:
            act(self._annotator)

        return pressed

    def _on_removed(self, event: Any) -> None:
        if event.value is self._events:
            self._events = None
        elif event.value is self._marks:
            self._marks = None

    def _on_scene(self) -> None:
        scene = self._session.scene
        if scene is None:
            return
        diameters = equivalent_diameter(scene.detections)
        scale = float(np.mean(scene.detections.geometry.scale[-2:]))
        self._size = float(np.median(diameters)) / scale if len(diameters) else 10.0
        for layer in (self._events, self._marks):
            if layer is not None and self._labels is not None:
                for name, value in placed_like(self._labels, plane=True).items():
                    setattr(layer, name, value)
        self._ensure_layers()
        self.activate()

    # ------------------------------------------------------------------ mouse

    def _on_move(self, _: Any, event: Any) -> None:
        self._point = self._place(event)
        self._annotator.hover(self.frame, self._point)

    def _place(self, event: Any) -> tuple[float, ...]:
        """Position of the pointer in pixels, with the plane in view in 3D."""
        assert self._events is not None
        flat = tuple(float(p) for p in self._events.world_to_data(event.position)[-2:])
        plane = self.plane
        return flat if plane is None else (plane, *flat)

    def _on_press(self, _: Any, event: Any) -> Iterator[None]:
        if event.button != 1 or event.modifiers:
            return
        start = np.asarray(event.pos, dtype=float)
        far = 0.0
        yield
        while event.type == "mouse_move":
            far = max(far, float(np.abs(np.asarray(event.pos, dtype=float) - start).max()))
            yield
        if far <= _STILL and self._events is not None:
            self._point = self._place(event)
            self._annotator.click(self.frame, self._point)

    # ------------------------------------------------------------------ frames

    @property
    def _labels(self) -> Any:
        """The segmentation layer; everything is drawn in its coordinates."""
        source = self._session.source
        return None if source is None else source.layers[1]

    def _axis(self) -> int:
        """The viewer's axis of time."""
        viewer, labels = self.viewer, self._labels
        return 0 if viewer is None or labels is None else int(viewer.dims.ndim - labels.ndim)

    def _data_point(self) -> tuple[float, ...]:
        """The point of the slice in view, in frames and pixels."""
        place = self._labels.world_to_data(self.viewer.dims.point)
        return tuple(float(p) for p in place)

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
        """The plane in view of a 3D movie, in pixels; None in 2D."""
        scene, viewer = self._session.scene, self.viewer
        if scene is None or viewer is None or scene.detections.geometry.ndim == 2:
            return None
        return self._data_point()[1]

    def show(self, frame: int, position: tuple[float, ...] | None) -> None:
        """Go to a frame and, where given, to a position in pixels."""
        viewer, labels = self.viewer, self._labels
        if viewer is None or labels is None:
            return
        axis = self._axis()
        inside = position if position is not None else (0.0,) * (labels.ndim - 1)
        inside = self._inwards(inside)
        world = [float(w) for w in labels.data_to_world((frame, *inside))]
        viewer.dims.set_point(axis, world[0])
        if position is None:
            return
        if labels.ndim == 4:
            viewer.dims.set_point(axis + 1, world[1])
        camera = camera_of(viewer)
        camera.center = (0.0, *world[-2:])
        extent = self._size * float(labels.scale[-1])
        camera.zoom = max(camera.zoom, 40.0 / extent)

    def _depth(self) -> float:
        """Distance of two planes of a 3D movie, in pixels along x."""
        labels = self._labels
        return (
            1.0 if labels is None or labels.ndim < 4 else float(labels.scale[1] / labels.scale[-1])
        )

    def _inwards(self, position: tuple[float, ...]) -> tuple[float, ...]:
        """A position near an edge is shown off-centre, so that the image fills the view."""
        shape = np.asarray(self._labels.data.shape[-2:], dtype=float)
        flat = np.asarray(position[-2:])
        moved = flat + 0.55 * (shape / 2 - flat)
        return (*position[:-2], *(float(p) for p in moved))

    def _on_frame(self) -> None:
        if self._events is None or self._session.scene is None:
            return
        if self._point is not None:
            plane = self.plane
            flat = self._point[-2:]
            self._point = flat if plane is None else (plane, *flat)
            self._annotator.hover(self.frame, self._point)
        self.redraw()

    # ------------------------------------------------------------------ drawing

    def redraw(self) -> None:
        """Draw what the frame in view needs."""
        scene = self._session.scene
        if self._events is None or self._marks is None or scene is None:
            return
        drawing, before = self._draw(), self._drawn
        self._drawn = drawing
        if before is None or before.arrow_state != drawing.arrow_state:
            self._set_arrows(self._events, drawing)
        if before is None or before.mark_state != drawing.mark_state:
            self._set_marks(self._marks, drawing)

    def _draw(self) -> Drawing:
        annotator, session = self._annotator, self._session
        width = float(self._labels.data.shape[-1]) if self._labels is not None else np.inf
        view = View(self.frame, self.plane, self._size, width, self._depth())
        drawing = Drawing()
        if session.annotations is not None:
            draw_answers(drawing, session.annotations.in_frame(view.frame), view)
        finder, picked = annotator.finder, annotator.picking
        if session.scene is None or finder is None:
            return drawing
        if annotator.picking.mode == Mode.REVIEW:
            row = annotator.hovered
            here = row >= 0 and int(session.scene.detections.frame[row]) == view.frame
            if here and annotator.proposals:
                outline = finder.outline(row)
                draw_proposals(drawing, annotator.proposals, view, outline)
        else:
            detections = session.scene.detections
            rows = [detections.row_of(*c.cell) for c in picked.sources]
            outlines = [finder.outline(r) for r in rows]
            draw_ghost(drawing, outlines, picked.targets, view)
        return drawing

    @staticmethod
    def _set_arrows(layer: Vectors, drawing: Drawing) -> None:
        layer.data = drawing.arrow_array()
        if drawing.arrows:
            layer.edge_color = np.asarray(drawing.arrow_colours)

    @staticmethod
    def _set_marks(layer: Points, drawing: Drawing) -> None:
        with layer.events.blocker_all():
            layer.data = drawing.point_array()
            if drawing.points:
                layer.symbol = drawing.symbols
                layer.size = np.asarray(drawing.sizes)
                layer.face_color = np.asarray(drawing.faces)
                layer.border_color = np.asarray(drawing.borders)
                layer.features = {"text": np.asarray(drawing.texts, dtype=object)}
        layer.refresh()
