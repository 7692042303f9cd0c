"""Choosing the movie and its cells; the first step of every workflow."""

from __future__ import annotations

import weakref
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtCore import Signal
from qtpy.QtWidgets import QMessageBox, QWidget
from superqt.utils import qdebounced

from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import check_same_extent, looks_like_labels
from bridgetrack.pipeline.finding import how_found
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.project import cells_file, kept_cells, open_store, usual_folder
from bridgetrack.ui import layers
from bridgetrack.ui.file_menu import masks_of
from bridgetrack.ui.layer_changes import LayerChanges
from bridgetrack.ui.panel import Notice, Panel
from bridgetrack.ui.state import READING
from bridgetrack.ui.widgets import LayerChoice, form_in

_NO_CELLS = ("preview", layers.FOUND, "marks", "coloured")
"""Roles of layers of masks and points that show no cells to choose."""

_OTHERS = "choose the cells of this movie, or the movie that they were found in"
"""Advice about cells of another movie."""


class SourceChooser(QWidget):
    """Image and segmentation layers; opens the movie as soon as both fit.

    Emits `judged` when they were checked; `problem` says what is wrong, if anything.
    """

    judged = Signal()

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel
        form = form_in(self)
        self.image = LayerChoice("no image", "The movie; its intensities help the tracking")
        self.labels = LayerChoice(
            "choose, or find cells below",
            "The layer in which every cell has a number in every frame, or a point",
        )
        form.addRow("Movie", self.image)
        form.addRow("Cells", self.labels)
        self.notice = Notice()
        form.addRow(self.notice)
        self._last: Any = None  # the last image that was examined
        self.problem = ""
        self.left = ""  # message about the cells of another movie
        # the cells that each movie was open with last
        self._used: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._listed: weakref.WeakSet[Any] = weakref.WeakSet()
        self._asked: weakref.WeakSet[Any] = weakref.WeakSet()  # about the order of their axes
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()  # images whose cells were open
        self._masks: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        changes = self._changes = LayerChanges(
            self, panel.state, partial(self.open, again=True), self._problem
        )
        self.destroyed.connect(lambda _=None: changes.close())
        open_soon = self._open_soon = qdebounced(self.open, timeout=0, parent=self)
        for choice in (self.image, self.labels):
            # Earlier messages were about another movie; those about this one may follow soon.
            choice.chosen.connect(lambda _: panel.session.message.emit("info", ""))
            choice.chosen.connect(lambda _: open_soon())
        panel.listen(panel.state.elsewhere.progress, self._on_read)
        for event in ("inserted", "removed"):
            panel.listen(getattr(panel.state.viewer.layers.events, event), self._on_layers)
        self._on_layers()
        open_soon()

    def _on_layers(self, _: Any = None) -> None:
        """List the present layers, and choose those that are obviously a movie or its cells."""
        viewer = self._panel.state.viewer
        if viewer is None:
            return
        new = [layer for layer in viewer.layers if layer not in self._listed]
        self._listed = weakref.WeakSet(viewer.layers)
        for layer in new:
            self._panel.listen(layer.events.name, self._list)
        self._list()
        for choice, obvious in ((self.image, self._is_movie), (self.labels, self._are_cells)):
            found = [layer for layer in new if layer in choice and obvious(layer)]
            if choice.layer is None and found:
                choice.choose(found[-1])

    def _list(self, _: Any = None) -> None:
        viewer = self._panel.state.viewer
        if viewer is None:
            return
        self.image.offer({x: str(x.name) for x in viewer.layers if layers.kind_of(x) == "image"})
        shown = [x for x in viewer.layers if self._may_be_cells(x)]
        masks = {x: " (use as cells)" if layers.kind_of(x) == "image" else "" for x in shown}
        self.labels.offer({layer: f"{layer.name}{more}" for layer, more in masks.items()})

    def _may_be_cells(self, layer: Any) -> bool:
        if layers.kind_of(layer) == "image":
            return self._holds_masks(layer)
        return (
            layers.kind_of(layer) in ("labels", "points") and layers.role_of(layer) not in _NO_CELLS
        )

    def _is_movie(self, layer: Any) -> bool:
        return not self._holds_masks(layer)

    def _are_cells(self, layer: Any) -> bool:
        """Whether it is taken for cells unasked: no points of others, no cells of another movie."""
        known = bool(layers.role_of(layer)) or layers.kind_of(layer) == "labels"
        image, movie = self.image.layer, layers.tags_of(layer).get("of")
        return known and (movie is None or image is None or movie == layers.mark_of(image))

    def _holds_masks(self, layer: Any) -> bool:
        """Whether the pixels of an image layer look like cell numbers; examined once."""
        if layers.role_of(layer) == "image":
            return False  # examined when it was read
        if layer not in self._masks:
            try:
                self._masks[layer] = not layer.rgb and looks_like_labels(layers.movie_of(layer))
            except BridgetrackError:
                self._masks[layer] = False
        return self._masks[layer]

    def _on_read(self, work: str, step: Any) -> None:
        """Open cells that waited for what was read, which may have been their movie."""
        if (
            work == READING
            and step is None
            and self.image.layer is None
            and self.labels.layer is not None
        ):
            self._open_soon()

    def open(self, again: bool = False) -> None:
        """Open the chosen layers unless they are open already, or `again` if the scale changed."""
        image, labels = self.image.layer, self.labels.layer
        session, state = self._panel.session, self._panel.state
        if labels is not None and layers.kind_of(labels) == "image":
            self._use_as_cells(labels)
            return
        if self._takes_its_cells(image, labels):
            return  # this is called again with them
        if image is None and labels is not None and state.elsewhere.busy(READING):
            return  # this is called again with what is read now: it may be their movie
        self._ask_for_time(image, labels)
        self._changes.watch(image, labels)
        movie = session.movie
        is_open = movie is not None and movie.layers == (image, labels) and not again
        if labels is not None and is_open:
            return
        if labels is None:
            self._open_without_cells(image)
        else:
            layers.share_scale(image, labels)
            self._open_with_cells(image, labels)

    def _takes_its_cells(self, image: Any, labels: Any) -> bool:
        """Choose the cells of a movie that was chosen now, in place of those of another one."""
        viewer = self._panel.state.viewer
        if image is None or image is self._last or viewer is None:
            return False
        before, self._last, self.left = self._last, image, ""
        if before is None or layers.mark_of(before) == layers.mark_of(image):
            return False  # another channel
        theirs, own = (self._used.get(layers.mark_of(x)) for x in (before, image))
        for layer in (before, theirs):
            if layer is not None and layers.role_of(layer):
                layer.visible = False
        for layer in (image, own):
            if layer is not None:
                layer.visible = True
        viewer.reset_view()
        if labels is not None and labels is not theirs:
            return False
        if labels is not None and own not in self.labels:
            self.left = f" “{labels.name}” belongs to “{before.name}”; select it above to use it."
        self.labels.choose(own)
        return self.labels.layer is not labels

    def _ask_for_time(self, image: Any, labels: Any) -> None:
        """Ask once if the last axis of a movie seems to be time."""
        both = [x for x in (image, labels) if x is not None and not layers.is_points(x)]
        doubtful = [x for x in both if x not in self._asked and layers.seems_time_last(x)]
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
                layers.put_time_first(layer)

    def _open_without_cells(self, image: Any) -> None:
        """Close the movie, and look for cells that were found on the image earlier."""
        session, viewer = self._panel.session, self._panel.state.viewer
        self._problem("")
        before: Any = None if session.movie is None else session.movie.layers[1]
        told = session.forget()
        if before is not None and viewer is not None and before not in viewer.layers:
            words = (
                f"“{before.name}” was deleted from the window. Your answers are saved. To "
                "continue, open the cells again; if they were found or painted here, open the "
                "movie."
            )
            session.message.emit("warning", f"{told} {words}".strip())
        if image is not None and image not in self._known:
            self._known.add(image)
            self._restore(image)

    def _open_with_cells(self, image: Any, labels: Any) -> None:
        session = self._panel.session
        try:
            source = self._source(image, labels)
        except BridgetrackError as error:
            session.forget()  # the movie that was open before is not the one chosen now
            self._problem(str(error))
            return
        if image is not None:
            self._known.add(image)
        self._problem("")
        if not self._open_movie(source):
            session.forget()
        elif image is not None:
            self._used[layers.mark_of(image)] = labels

    def _open_movie(self, source: MovieAndCells) -> bool:
        """Open a movie, in the scale that was set for it; returns whether that worked."""
        session, (image, labels) = self._panel.session, source.layers
        self._changes.note_opened()
        project = layers.tags_of(labels).get("project")
        opened = session.open(source, Path(project) if project else None)
        scale = session.settings.scale_for(source) if opened else None
        if scale is None:
            return opened
        layers.set_scale(self._panel.state.viewer, image, labels, scale)
        self._panel.state.viewer.reset_view()
        return self._open_movie(self._source(image, labels))

    def _problem(self, words: str) -> None:
        self.problem = words
        self.notice.say("error" if words else "", words)
        self.judged.emit()

    def _source(self, image: Any, labels: Any) -> MovieAndCells:
        movie = None if image is None else layers.movie_of(image)
        first = image if image is not None else labels
        files = (None if image is None else layers.file_of(image), layers.file_of(labels))
        named = (movie, layers.name_of(first), layers.path_of(first), files, (image, labels))
        if layers.is_points(labels):
            return MovieAndCells(None, *named, table=layers.detections_of(labels, movie))
        cells, tags, path = layers.labels_of(labels), layers.tags_of(labels), layers.path_of(labels)
        if movie is not None:
            names = f"“{image.name}”", f"“{labels.name}”"
            check_same_extent(movie, cells, _OTHERS, names)
        return MovieAndCells(
            cells,
            *named,
            pixels=labels.data if layers.paintable(labels) else None,
            found=tags.get("found") or (None if path is None else how_found(path)),
            kept=bool(tags.get("kept")),
        )

    def _use_as_cells(self, layer: Any) -> None:
        """Make a layer of cells of an image whose pixels are cell numbers."""
        viewer: Any = self._panel.state.viewer
        path = layers.path_of(layer)
        more = {} if path is None else {"path": str(path)}

        def add(pixels: NDArray[Any]) -> None:
            if layer not in viewer.layers or self.labels.layer is not layer:
                return  # removed meanwhile, or other cells were chosen
            made = viewer.add_layer(layers.cells_over(layer, pixels, f"{layer.name} cells", **more))
            layer.visible = False
            if self.image.layer is layer:
                self.image.choose(None)
            self.labels.choose(made)

        def read() -> NDArray[Any]:
            return layers.whole_numbers(np.array(layer.data), str(layer.name))

        self._panel.state.read(str(layer.name), read, add)

    def _restore(self, image: Any) -> None:
        """Bring back the cells that this movie had last: found or painted here, or of a file."""
        try:
            movie = layers.movie_of(image)
        except BridgetrackError:
            return
        folder = usual_folder(layers.path_of(image), layers.name_of(image), movie.geometry)
        state, file = self._panel.state, cells_file(folder)
        kept = None if file is not None else kept_cells(folder, movie.geometry)

        def add(found: Any) -> None:
            if self.image.layer is not image or self.labels.layer is not None:
                self._known.discard(image)
                return  # another movie or other cells were chosen meanwhile
            if kept is not None:
                cells = layers.cells_over(image, found, "Cells found", found=kept[1], kept=True)
                found = [cells.as_layer_data_tuple()]
            self.labels.choose(next(iter(state.add_layers(found, image)), None))

        if file is not None:
            state.read(file.name, lambda: masks_of(file), add)
        elif kept is not None:
            pixels = kept[0].array[:, 0]
            state.read("the cells", lambda: np.asarray(pixels.compute()), add)

    def said_of_masks(self) -> Steps[MaskAnswers]:
        """Answers about the masks of the chosen image, given now or before.

        Raises
        ------
        InputError
            If their file is not valid, once it is read.
        """
        session, image = self._panel.session, self.image.layer
        open_now = session.movie is not None and session.movie.layers[0] is image
        if open_now and session.masks is not None:
            return session.masks.said()
        geometry = layers.movie_of(image).geometry
        folder = usual_folder(layers.path_of(image), layers.name_of(image), geometry)

        def steps() -> Steps[MaskAnswers]:
            yield Progress("Looking at your answers", 0.0)
            return open_store(folder, geometry).masks

        return steps()


def confirmed(parent: QWidget, title: str, words: str) -> bool:
    """Ask the user a yes-or-no question."""
    return QMessageBox.question(parent, title, words) == QMessageBox.StandardButton.Yes
