"""Choosing the movie and its cells; the first thing that every workflow needs."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QMessageBox, QWidget
from superqt.utils import qdebounced

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.arrays import Index
from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import Geometry
from bridgetrack.notes import plural
from bridgetrack.pipeline.finding import Finding, how_found
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.answers import autosave_path
from bridgetrack.session.kept import kept_cells
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.project import resume
from bridgetrack.ui.background import Links
from bridgetrack.ui.layer_choice import LayerChoice, Pairs
from bridgetrack.ui.layer_scale import take_scale
from bridgetrack.ui.layers import (
    check_extent,
    detections_of,
    file_of,
    is_points,
    labels_of,
    movie_of,
    name_of,
    path_of,
    placed_like,
    put_time_first,
    tag,
    tags_of,
    time_of,
    time_seems_last,
    whole_numbers,
)
from bridgetrack.ui.panel import Notice, Panel
from bridgetrack.ui.widgets import form_in

_REST = 800
"""Milliseconds without painting after which the cells are measured anew."""


class SourceChooser(QWidget):
    """Image and segmentation layers; opens the movie as soon as both make sense.

    Emits `parted` with the names of cells and of their movie where another movie was chosen.
    """

    parted = Signal(str, str)

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel
        self.pairs = Pairs()
        self._last: Any = None  # the image that was looked at last
        form = form_in(self)
        self.image = LayerChoice(panel, ("image",), "no image")
        self.image.setToolTip("The movie; its brightness helps to tell cells apart")
        self.labels = LayerChoice(
            panel, ("labels", "points", "image"), "choose, or make one below",
            ("preview", "marks", "coloured"),
            by_hand=("points", "image"),
            elsewhere=lambda cells: bool(self.pairs.movie_of(self.image.layer, cells)),
        )  # fmt: skip
        self.labels.setToolTip(
            "The layer in which every cell has a number in every frame, or a point"
        )
        form.addRow("Movie", self.image)
        form.addRow("Cells", self.labels)
        self.notice = Notice()
        form.addRow(self.notice)
        self._opened: tuple[Any, Any] | None = None
        self._asked: weakref.WeakSet[Any] = weakref.WeakSet()  # about the order of their axes
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()  # images whose cells were open
        self._as_opened: list[Any] = []  # pixels and scale of what is open
        self._watched: tuple[Any, Any] = None, None
        self._links = Links()  # to the layers watched
        self._step: Any = None
        self._painting = False
        self._frames: set[int] | None = set()  # that were painted; None where that is not known
        self._pixels: list[Painted] = []
        self._follow_soon = qdebounced(self._follow, timeout=_REST, parent=self)
        self._measure_soon = qdebounced(self._measure, timeout=_REST, parent=self)
        open_soon = qdebounced(self.open, timeout=0, parent=self)
        for choice in (self.image, self.labels):
            choice.chosen.connect(lambda _: open_soon())
        open_soon()

    def open_again(self) -> None:
        """Open what is chosen anew, after its scale has changed; the answers stay."""
        self._opened = None
        self.open(again=True)

    def open(self, again: bool = False) -> None:
        """Open what is chosen, unless it is open already."""
        image, labels = self.image.layer, self.labels.layer
        if labels is not None and type(labels).__name__ == "Image":
            self._use_as_cells(labels)
            return
        if self._takes_its_cells(image, labels):
            return  # to come back with them
        self._ask_for_time(image, labels)
        self._watch(image, labels)
        if self._opened != (image, labels):
            take_scale(self._panel.state.viewer, image, labels)
        if labels is None:
            self._open_without_cells(image)
        elif self._opened is None or self._opened != (image, labels):
            with self._panel.session.hearing() as warnings:
                back = self._open_with_cells(image, labels, again)
            if back and not warnings:
                words = f"There again, as you left them: {', '.join(back)}."
                self._panel.session.message.emit("info", words)

    def _ask_for_time(self, image: Any, labels: Any) -> None:
        """Ask once where a movie looks as if its last axis were time."""
        layers = [x for x in (image, labels) if x is not None and not is_points(x)]
        doubtful = [x for x in layers if x not in self._asked and time_seems_last(x)]
        self._asked.update(doubtful)
        if not doubtful:
            return
        *space, last = doubtful[0].data.shape
        words = (
            f"“{doubtful[0].name}” would be {space[0]} frames of {space[1]} × {last} pixels. "
            f"Is time the last axis ({last} frames of {space[0]} × {space[1]} pixels)?"
        )
        if confirmed(self, "Is time the last axis?", words):
            for layer in doubtful:
                put_time_first(layer)

    def _open_without_cells(self, image: Any) -> None:
        """Let go of the movie, and look for cells that were found on the image earlier."""
        session, viewer = self._panel.session, self._panel.state.viewer
        session.message.emit("info", "")
        self.notice.say("", "")
        before = None if session.movie is None else session.movie.layers[1]
        with session.hearing() as told:
            self._let_go()
        if before is not None and viewer is not None and before not in viewer.layers:
            words = (
                f"“{before.name}” was deleted from the window. Your answers are kept: open these "
                "cells again to go on, or the movie, where they were found or painted here."
            )
            session.message.emit("warning", " ".join([*told, words]))
        if image is not None and image not in self._known:
            self._known.add(image)
            self._restore(image)

    def _open_with_cells(self, image: Any, labels: Any, again: bool) -> tuple[str, ...]:
        """Open a movie; what is there again."""
        session = self._panel.session
        self._as_opened = _as_it_is(image, labels)
        try:
            source = self._source(image, labels)
        except BridgetrackError as error:
            session.message.emit("info", "")
            self._let_go()  # what was open before is not what is chosen now
            self.notice.say("error", str(error))
            return ()
        known = session.movie
        if known is not None and known.layers == (image, labels) and not again:
            self._opened = (image, labels)
            self.pairs.join(image, labels)
            return ()
        self._opened = (image, labels)
        if image is not None:
            self._known.add(image)
        self.notice.say("", "")
        project = tags_of(labels).get("project")
        file = Path(str(project)) if project else None
        done = session.open(source) if file is None else resume(session, source, file)
        if not done:
            self._let_go()  # what was open before is not what is chosen now
            return ()
        back = self._panel.state.settings.back
        self.pairs.join(image, labels)
        answers = (plural(session.resumed, "answer"),) if session.resumed else ()
        cells = ("the cells that you found or painted",) if source.kept else ()
        return () if again else (*answers, *cells, *back)

    def _let_go(self) -> None:
        """Nothing is open any more."""
        self._opened = None
        self._panel.session.forget()

    def _takes_its_cells(self, image: Any, labels: Any) -> bool:
        """Choose the cells of a movie that was chosen now, in place of those of another one."""
        if image is None or image is self._last:
            if labels is None and image is not None:
                self.pairs.part(image)
            return False
        self.pairs.show_instead(self._panel.state.viewer, self._last, image)
        self._last = image
        other, own = self.pairs.movie_of(image, labels), self.pairs.cells_of(image)
        if not other and (labels is not None or own not in self.labels):
            return False
        self.labels.choose(own)
        if other and self.labels.layer is None:
            self.parted.emit(str(labels.name), other)
        return self.labels.layer is not labels

    def _use_as_cells(self, layer: Any) -> None:
        """Make a layer of cells of an image whose pixels are cell numbers."""
        viewer: Any = self._panel.state.viewer
        path = path_of(layer)
        more = time_of(layer) | ({} if path is None else {"path": str(path)})

        def add(pixels: NDArray[Any]) -> None:
            wanted = layer in viewer.layers and self.labels.layer is layer
            if not wanted:
                return  # removed meanwhile, or other cells were chosen
            made = viewer.add_labels(
                pixels,
                name=f"{layer.name} cells",
                metadata=tag("labels", **more),
                opacity=0.3,
                **placed_like(layer),
            )
            layer.visible = False
            if self.image.layer is layer:
                self.image.choose(None)
            self.labels.choose(made)

        def read() -> NDArray[Any]:
            return whole_numbers(np.array(layer.data), str(layer.name))

        self._panel.state.files.read(str(layer.name), read, add)

    def _restore(self, image: Any) -> None:
        """Bring back the cells that were found or painted on this movie earlier."""
        try:
            movie = movie_of(image)
        except BridgetrackError:
            return
        answers = autosave_path(path_of(image), name_of(image), movie.geometry)
        kept, viewer = kept_cells(answers, movie.geometry), self._panel.state.viewer
        if kept is None or viewer is None:
            return

        def add(pixels: NDArray[Any]) -> None:
            if self.image.layer is not image or self.labels.layer is not None:
                self._known.discard(image)
                return  # another movie or other cells were chosen meanwhile
            made = viewer.add_labels(
                pixels,
                name="Cells found",
                metadata=tag("labels", found=kept.found, kept=True, **time_of(image)),
                opacity=0.3,
                **placed_like(image),
            )
            self.labels.choose(made)

        read = self._panel.state.files.read
        read("the cells", lambda: np.asarray(kept.labels.array[:, 0].compute()), add)

    def _source(self, image: Any, labels: Any) -> MovieAndCells:
        movie = None if image is None else movie_of(image)
        first = image if image is not None else labels
        points = is_points(labels)
        cells = None if points else labels_of(labels)
        if movie is not None and cells is not None:
            check_extent(image, movie, labels, cells)
        return MovieAndCells(
            cells,
            movie,
            name_of(first),
            path_of(first),
            (None if image is None else file_of(image), file_of(labels)),
            (image, labels),
            detections_of(labels, movie) if points else None,
            None if points else paintable(labels),
            tags_of(labels).get("found") or how_found_of(labels),
            bool(tags_of(labels).get("kept")),
        )

    def said_of_masks(self) -> Steps[MaskAnswers]:
        """What was said of the masks of the image chosen, now or before.

        Raises
        ------
        InputError
            Where the file that has it is not valid, once it is read.
        """
        session, image = self._panel.session, self.image.layer
        open_now = session.movie is not None and session.movie.layers[0] is image
        if open_now and session.masks is not None:
            return session.said_of_masks()
        geometry = movie_of(image).geometry
        kept = autosave_path(path_of(image), name_of(image), geometry)
        return _kept_answers(kept, geometry)

    def _watch(self, image: Any, labels: Any) -> None:
        """Follow what people and other programs do to the layers chosen."""
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
        if image is not None:
            self._links.add(image.events.data, self._follow_soon)
        if is_points(labels):
            self._links.add(labels.events.data, self._measure_soon)
        elif labels is not None:
            self._links.add(labels.events.data, self._follow_soon)
            self._links.add(labels.events.paint, self._on_paint)
            self._links.add(labels.events.set_data, self._on_drawn)
            self._step = self._panel.state.viewer.dims.current_step

    def _follow(self) -> None:
        """Open anew what was replaced, cropped or given another scale."""
        image, labels = self._watched
        if (image, labels) != (self.image.layer, self.labels.layer) or labels is None:
            return
        if not _alike(_as_it_is(image, labels), self._as_opened):
            self.open_again()

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
        """Notice an undo, or pixels that changed in place; napari only says that it draws anew."""
        step = self._panel.state.viewer.dims.current_step
        moved, self._step = step != self._step, step
        if not moved:
            self._measure_soon()

    def _note_painting(self) -> None:
        """What was painted since the cells were measured last is an answer about them."""
        pixels, self._pixels = self._pixels, []
        for t in sorted({part[0] for part in pixels}):
            places = np.concatenate([p for k, p, _ in pixels if k == t])
            before = np.concatenate([b for k, _, b in pixels if k == t])
            known, first = np.unique(places, return_index=True)
            self._panel.session.note_painting(t, known, before[first])

    def _measure(self) -> None:
        """Measure what was touched up."""
        session, labels = self._panel.session, self._watched[1]
        if session.movie is None or labels is None or session.movie.layers[1] is not labels:
            return
        if session.movie.labels is not None:
            self._note_painting()
            if self._painting:
                # Earlier strokes may have been undone at the same time.
                session.measure(touched=self._frames)
            elif session.busy("measure"):
                self._measure_soon()
            else:
                session.follow_masks()
            self._painting = False
            return
        try:
            table = detections_of(labels, session.movie.image)
        except BridgetrackError as error:
            self.notice.say("error", str(error))
            return
        self.notice.say("", "")
        session.measure(replace(session.movie, table=table))


def confirmed(parent: QWidget, title: str, words: str) -> bool:
    """Ask a person yes or no."""
    return QMessageBox.question(parent, title, words) == QMessageBox.StandardButton.Yes


def _kept_answers(path: Path, geometry: Geometry) -> Steps[MaskAnswers]:
    yield Progress("Looking at your answers", 0.0)
    return AutosavingStore(path, geometry).masks


def how_found_of(labels: Any) -> Finding | None:
    """How cells were found that ``bridgetrack segment`` left in a file; None for others."""
    path = path_of(labels)
    return None if path is None else how_found(path)


Painted = tuple[int, Index, Index]
"""A frame, the places in it that were painted, and their labels before."""


def painted_pixels(event: Any, layer: Any) -> list[Painted] | None:
    """What a stroke changed, part by part; None where napari does not say.

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


def _as_it_is(image: Any, labels: Any) -> list[Any]:
    """What makes another movie of layers where it changes; points that move are still these."""
    layers = [x for x in (image, labels) if x is not None]
    pixels = [x.data for x in layers if not is_points(x)]
    return [*((tuple(x.scale), tuple(x.units)) for x in layers), *pixels]


def _alike(now: list[Any], before: list[Any]) -> bool:
    pairs = zip(now, before, strict=True) if len(now) == len(before) else [(0, 1)]
    return all(a is b or (isinstance(a, tuple) and a == b) for a, b in pairs)


def paintable(layer: Any) -> NDArray[Any] | None:
    """The array of a Labels layer, where its pixels can be changed in place."""
    data = layer.data
    return data if isinstance(data, np.ndarray) and data.flags.writeable else None
