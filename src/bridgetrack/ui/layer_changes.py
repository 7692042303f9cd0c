"""Following changes of the layers of a movie and its cells by users and other programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from qtpy.QtCore import QObject
from superqt.utils import qdebounced

from bridgetrack.arrays import Index
from bridgetrack.errors import BridgetrackError
from bridgetrack.ui.background import Links
from bridgetrack.ui.layers import detections_of, is_points
from bridgetrack.ui.state import ViewerState

_REST = 800
"""Milliseconds without painting after which the cells are measured again."""

Painted = tuple[int, Index, Index]
"""A frame, the places in it that were painted, and their labels before."""


class LayerChanges:
    """Watches the two layers that are open, as long as `parent` lives.

    `changed` is called if they now hold another movie: they were replaced, cropped or scaled;
    `problem` with the problem of points after a change, or an empty text.
    """

    def __init__(
        self,
        parent: QObject,
        state: ViewerState,
        changed: Callable[[], None],
        problem: Callable[[str], None],
    ) -> None:
        self._state, self._changed, self._problem = state, changed, problem
        self._watched: tuple[Any, Any] = None, None
        self._opened: list[Any] = []  # pixels and scale of what is open
        self._links = Links()
        self._step: Any = None
        self._painting = False
        self._frames: set[int] | None = set()  # that were painted; None if unknown
        self._pixels: list[Painted] = []
        self._follow_soon = qdebounced(self._follow, timeout=_REST, parent=parent)
        self._measure_soon = qdebounced(self._measure, timeout=_REST, parent=parent)

    def close(self) -> None:
        """Stop watching."""
        self._links.cut()

    def note_opened(self) -> None:
        """The layers are opened as they are now."""
        self._opened = _contents(*self._watched)

    def watch(self, image: Any, labels: Any) -> None:
        """Watch these layers from now on; each may be None."""
        if self._watched == (image, labels):
            return
        self._watched = image, labels
        self._links.cut()
        self._frames, self._painting = set(), False
        self._pixels.clear()
        for layer in (image, labels):
            if layer is not None:
                self._links.add(layer.events.scale, self._follow_soon)
                self._links.add(layer.events.units, self._follow_soon)
                on_data = self._measure_soon if is_points(layer) else self._follow_soon
                self._links.add(layer.events.data, on_data)
        if labels is not None and not is_points(labels):
            self._links.add(labels.events.paint, self._on_paint)
            self._links.add(labels.events.set_data, self._on_drawn)
            self._step = self._state.viewer.dims.current_step

    def _follow(self) -> None:
        """Call `changed` if the layers do not hold the opened data any more."""
        image, labels = self._watched
        if labels is not None and not _alike(_contents(image, labels), self._opened):
            self._changed()

    def _on_paint(self, event: Any) -> None:
        parts = painted_pixels(event, self._watched[1])
        if parts is None or self._frames is None:
            self._frames = None
        else:
            self._pixels += parts
            self._frames |= {t for t, *_ in parts}
        self._painting = True
        self._measure_soon()

    def _on_drawn(self, _: Any = None) -> None:
        """Notice an undo, or pixels changed in place; napari only signals that it draws again."""
        step = self._state.viewer.dims.current_step
        moved, self._step = step != self._step, step
        if not moved:
            self._measure_soon()

    def _note_painting(self) -> None:
        """Painting since the cells were last measured is an answer about them."""
        pixels, self._pixels = self._pixels, []
        masks = self._state.session.masks
        if masks is None:
            return
        for t in sorted({part[0] for part in pixels}):
            places = np.concatenate([p for k, p, _ in pixels if k == t])
            before = np.concatenate([b for k, _, b in pixels if k == t])
            known, first = np.unique(places, return_index=True)
            masks.note_painting(t, known, before[first])

    def _measure(self) -> None:
        session, labels = self._state.session, self._watched[1]
        movie = session.movie
        if movie is None or labels is None or movie.layers[1] is not labels:
            return
        if movie.labels is None:
            self._measure_points(labels)
            return
        self._note_painting()
        if self._painting:
            # Earlier strokes may have been undone at the same time.
            session.tracker.measure(touched=self._frames)
        elif session.busy("measure"):
            self._measure_soon()
        else:
            session.tracker.follow_masks()
        self._painting = False

    def _measure_points(self, points: Any) -> None:
        session = self._state.session
        assert session.movie is not None
        try:
            table = detections_of(points, session.movie.image)
        except BridgetrackError as error:
            self._problem(str(error))
            return
        self._problem("")
        session.tracker.measure(replace(session.movie, table=table))


def painted_pixels(event: Any, layer: Any) -> list[Painted] | None:
    """The pixels changed by a stroke, part by part; None if napari does not give them.

    Parts are tuples of indices, old and new values, or a box of the data, the pixels in it that
    changed, and their old values.
    """
    found: list[Painted] = []
    shape = layer.data.shape
    for part in event.value:
        if hasattr(part, "slice_key") and hasattr(part, "old_values"):
            ranges = [np.arange(*s.indices(n)) for s, n in zip(part.slice_key, shape, strict=True)]
            grid = np.meshgrid(*ranges, indexing="ij")
            kept = np.ones(grid[0].shape, dtype=bool) if part.mask is None else part.mask
            index, old = tuple(g[kept] for g in grid), np.ravel(part.old_values)
        elif isinstance(part, tuple) and not any(isinstance(i, slice) for i in part[0]):
            index = tuple(np.ravel(i).astype(np.int64) for i in part[0])
            old = np.broadcast_to(np.ravel(part[1]), index[0].shape)
        else:
            return None
        if len(index) != len(shape):
            return None
        places = np.ravel_multi_index(index[1:], shape[1:])
        for t in np.unique(index[0]).tolist():
            mine = index[0] == t
            found.append((t, places[mine], old[mine].astype(np.int64)))
    return found


def _contents(*layers: Any) -> list[Any]:
    """Content of layers whose change makes another movie; moved points do not."""
    there = [x for x in layers if x is not None]
    pixels = [x.data for x in there if not is_points(x)]
    return [*((tuple(x.scale), tuple(x.units)) for x in there), *pixels]


def _alike(now: list[Any], before: list[Any]) -> bool:
    return len(now) == len(before) and all(
        a is b or (isinstance(a, tuple) and a == b) for a, b in zip(now, before, strict=True)
    )
