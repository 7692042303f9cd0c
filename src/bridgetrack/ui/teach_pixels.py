"""Teaching the pixels: three brushes, what they teach shown live, and where to paint next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from qtpy.QtWidgets import QVBoxLayout, QWidget
from superqt.utils import qdebounced

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import Movie
from bridgetrack.segmentation.pixels import CLASSES, PixelModel
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.segmentation.strokes import UncertainPlace
from bridgetrack.session.answers import autosave_path, strokes_path
from bridgetrack.session.kept_strokes import Strokes, load_strokes, save_strokes
from bridgetrack.session.teaching import Taught, next_place, teach
from bridgetrack.ui.layers import (
    camera_of,
    find_role,
    movie_of,
    name_of,
    path_of,
    placed_like,
    tag,
)
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.source_panel import painted_frames
from bridgetrack.ui.taught_file import JOB as OPENING
from bridgetrack.ui.taught_file import TaughtFile
from bridgetrack.ui.widgets import SPACE, brief, button, row, text

STROKES, PROBABILITY = "strokes", "probability"
ASIDE = "strokes aside"
"""Role of strokes on a movie chosen before that could not be kept."""

BRUSHES = (
    ("Cell", 2, "C", "Paint inside cells, from rim to rim"),
    ("Background", 1, "B", "Paint what is no cell, best close to cells"),
    ("Edge", 3, "R", "Paint along the rim where two cells touch"),
)
"""Words, value, key on the strokes' layer, and what it is for."""
NEXT_KEY = "G"

_COLOURS = {0: "transparent", 1: "#5b8ff9", 2: "#f6bd16", 3: "#e8684a", None: "magenta"}
_PAUSE = 150
"""Milliseconds after a stroke until it is learned from."""


class TeachPixels(QWidget):
    """Brushes for strokes, and what they teach."""

    def __init__(
        self,
        panel: Panel,
        image: Callable[[], Any],
        movie: Callable[[], Movie | None],
        decided: Callable[[Callable[[Movie, SegmentationSettings], None]], None],
    ) -> None:
        super().__init__()
        self._panel, self._image, self._movie = panel, image, movie
        self._once_decided = decided
        self._known = Taught({}, {})
        self._watched: Any = None
        self._touched: set[int] = set()
        self._of: Any = None
        self._start: PixelModel | None = None
        self.size: float | None = None  # of cells, where strokes of an earlier time tell
        self._path: Path | None = None  # where strokes on the image chosen are kept
        self._kept: Strokes | None = None  # what stands there
        self._forgotten: Strokes | None = None  # what was forgotten last of the image chosen
        self._problem = ""  # why they are not kept, empty where they are
        self._left = ""  # what is still to be told of those on another image
        self.changed: list[Callable[[], None]] = []
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        box.addWidget(text("Paint a few strokes on any frames; what they teach shows at once."))
        self.brushes = {
            value: button(f"{words}  [{key}]", f"{tip} (key {key})", self._taking(value),
                          checkable=True)
            for words, value, key, tip in BRUSHES
        }  # fmt: skip
        box.addWidget(row(*self.brushes.values()))
        self.next = button(
            f"Suggest where to paint next  [{NEXT_KEY}]",
            f"Go to the least certain pixels (key {NEXT_KEY})",
            self.suggest,
            icon="next",
        )
        self.again = button(
            "Use what was taught before", "Begin with an earlier movie's strokes", self._reuse,
            icon="past",
        )  # fmt: skip
        self.forget = button(
            "Forget the strokes", "Remove all strokes, and find cells without them", self.clear,
            icon="delete",
        )  # fmt: skip
        self.back = button(
            "Bring the strokes back", "Undo Forget: what was painted teaches again", self.unforget,
            icon="undo",
        )  # fmt: skip
        box.addWidget(self.next)
        box.addWidget(self.again)
        self.file = TaughtFile(panel, image, movie, self.begin_with)
        box.addWidget(self.file)
        box.addWidget(self.forget)
        box.addWidget(self.back)
        # What suits the movie is looked for before the first strokes can be learned from.
        self.work = Work(
            panel, "pixels", "next pixels", "settings", OPENING, cancel=False,
            beside=lambda: self._watched is None,
        )  # fmt: skip
        box.addWidget(self.work)
        self.words = text()
        box.addWidget(self.words)
        self._learn_soon = qdebounced(self.learn, timeout=_PAUSE, parent=self)
        panel.listen(panel.state.viewer.dims.events.current_step, self._on_frame)
        panel.listen(panel.state.viewer.layers.events.removed, self._on_removed)
        # Opening a movie ends all work on the one before, also what is learned for this one.
        panel.listen(panel.session.movie_changed, self._learn_soon)
        panel.state.guard.others.append(self._lost)
        self.on_image()

    # ------------------------------------------------------------------ state

    @property
    def model(self) -> PixelModel | None:
        """What was taught about the movie chosen, None where nothing was."""
        return self._known.model

    @property
    def strokes(self) -> Any:
        """The layer painted on, None until a brush was taken."""
        return find_role(self._panel.state.viewer.layers, STROKES)

    def _lost(self) -> str:
        """What closing the window would lose: strokes that cannot be kept."""
        self._keep()
        if not self._problem or self.strokes is None:
            aside = find_role(self._panel.state.viewer.layers, ASIDE)
            return "" if aside is None else f"The layer “{aside.name}” could not be kept; save it."
        return f"What you painted to teach the pixels cannot be kept: {self._problem}."

    def on_image(self) -> None:
        """Another movie was chosen: its strokes are its own, the model is offered."""
        image = self._image()
        for each in (*self.brushes.values(), self.forget):
            each.setEnabled(image is not None)
        if image is not self._of:
            if self._of is not None:
                for work in ("pixels", "next pixels", OPENING):
                    self._panel.session.cancel(work)
            self._keep()
            self._left = self._put_aside() or self._left
            self._unwatch()
            self._of, self._start, self.size = image, None, None
            self._path, self._kept, self._forgotten, self._problem = None, None, None, ""
            self._known, self._touched = Taught({}, {}), set()
            self.words.setText(self._left)
        self._refresh()

    def _put_aside(self) -> str:
        """Leave strokes that cannot be kept in a layer of their own; what is told of it."""
        layer, frames = self._watched, {*self._known.marks, *self._touched}
        if not self._problem or layer is None or not any(layer.data[t].any() for t in frames):
            return ""
        layer.metadata = {**layer.metadata, **tag(ASIDE)}
        layer.name = f"Strokes on {self._of.name}"
        layer.mode, layer.visible = "pan_zoom", False
        return (
            f"What you painted on “{self._of.name}” to teach the pixels cannot be kept and stays "
            f"in the hidden layer “{layer.name}”: {self._problem}."
        )

    def bring_back(self) -> str:
        """Show the strokes of the movie chosen in place of those of another one.

        What is there again of an earlier time, in words; nothing where it was there already.
        """
        image, viewer = self._image(), self._panel.state.viewer
        left, self._left = self._left, ""
        if left:
            self._panel.session.message.emit("warning", left)
        if image is None or image is not self._of or self._kept is not None or viewer is None:
            return ""
        try:
            geometry = movie_of(image).geometry
        except BridgetrackError:
            return ""  # told where somebody looks for its cells
        shape = (geometry.n_frames, *(geometry.shape or ()))
        path = strokes_path(autosave_path(path_of(image), name_of(image), geometry))
        self._drop_layers()
        self._refresh()
        self._kept = Strokes(shape)
        try:
            kept = load_strokes(path, shape)
        except BridgetrackError as error:  # the file stays, for somebody may mend it
            self._problem = str(error)
            self._panel.session.tell(error)
            return ""
        self._path, self._kept = path, kept
        self._show_strokes(kept)
        return "" if kept.empty else "what you painted to teach the pixels"

    def _show_strokes(self, kept: Strokes) -> None:
        """Begin with strokes as they were; what was painted since stays above them."""
        layer, viewer = self._watched, self._panel.state.viewer
        self._start, self.size = kept.start, kept.diameter if kept.start is None else None
        if kept.frames:
            if layer is None:
                active = viewer.layers.selection.active
                self._watch(self._add_layer(np.zeros(kept.shape, dtype=np.uint8)))
                viewer.layers.selection.active = active
            marks = self._watched.data
            for t, drawn in kept.frames.items():
                marks[t] = np.where(marks[t] > 0, marks[t], drawn)
            self._watched.refresh()
            self._touched |= set(kept.frames)
        self._learn_soon()

    def _keep(self) -> None:
        """Write down what is painted and what it began with, where that has changed."""
        layer, path, kept = self._watched, self._path, self._kept
        if path is None or kept is None or (layer is not None and layer.data.shape != kept.shape):
            return
        if layer is None:
            if self._start is not kept.start:
                self._write(replace(kept, start=self._start), path)
            return
        now = self._painted(kept)
        if not now.same(kept):
            self._write(now, path)

    def _painted(self, kept: Strokes) -> Strokes:
        """What is painted now and what it began with; what is `kept` knows of the movie."""
        layer, frames = self._watched, {*self._known.marks, *self._touched}
        drawn = {} if layer is None else {t: np.array(layer.data[t]) for t in sorted(frames)}
        learned = self._known.settings
        size = kept.diameter if learned is None else learned.diameter
        painted = {t: marks for t, marks in drawn.items() if marks.any()}
        return Strokes(kept.shape, painted, size, self._start)

    def _write(self, strokes: Strokes, path: Path) -> None:
        try:
            save_strokes(strokes, path)
        except BridgetrackError as error:
            if str(error) != self._problem:
                self._panel.session.tell(error)
            self._problem = str(error)
        else:
            self._kept, self._problem = strokes, ""

    def _refresh(self) -> None:
        kept = self._panel.session.pixels
        movie = self._movie() if kept is not None and self._image() is not None else None
        offered = (
            kept is not None and movie is not None and self.model is None
            and movie.geometry.ndim == kept.ndim
        )  # fmt: skip
        self.again.setVisible(offered)
        if offered and kept is not None:
            self.again.setText(f"Use what was taught on {brief(kept.name)}")
            self.again.setToolTip(f"Begin with the strokes on {kept.name}")
        self.next.setEnabled(self.model is not None)
        self.file.show_taught(self.model, self._start)
        there = (self.strokes, self.model, self._start)
        self.forget.setVisible(any(each is not None for each in there))
        self.back.setVisible(self._forgotten is not None)

    # ------------------------------------------------------------------ brushes

    def _taking(self, value: int) -> Callable[[], None]:
        return lambda: self.take(value)

    def take(self, value: int) -> None:
        """Take the brush of a class, by its value in strokes."""
        layer = self._layer()
        if layer is None:
            return
        self._panel.state.viewer.layers.selection.active = layer
        layer.selected_label = value
        layer.mode = "paint"
        self._show_brush()

    def _show_brush(self, _: Any = None) -> None:
        layer = self.strokes
        painting = layer is not None and str(layer.mode) == "paint"
        for value, each in self.brushes.items():
            each.setChecked(painting and layer.selected_label == value)

    def _layer(self) -> Any:
        """The layer for strokes, made where there is none yet."""
        movie, viewer = self._movie(), self._panel.state.viewer
        if movie is None:
            return None
        self.bring_back()  # strokes of another movie may still be there
        shape = (movie.n_frames, *(movie.geometry.shape or ()))
        layer = self.strokes
        if layer is not None and layer.data.shape != shape:
            viewer.layers.remove(layer)
            layer = None
        if layer is None:
            layer = self._add_layer(np.zeros(shape, dtype=np.uint8))
        if layer is not self._watched:
            self._watch(layer)
        self._refresh()
        return layer

    def _add_layer(self, marks: NDArray[np.uint8]) -> Any:
        from napari.utils import DirectLabelColormap

        layer = self._panel.state.viewer.add_labels(
            marks,
            name="Strokes",
            metadata=tag(STROKES),
            opacity=0.6,
            colormap=DirectLabelColormap(color_dict=_COLOURS),
            **placed_like(self._image()),
        )
        layer.brush_size = 5
        layer.preserve_labels = False
        return layer

    def _drop_layers(self) -> None:
        """Take away the strokes shown and what they taught."""
        viewer = self._panel.state.viewer
        for each in (self.strokes, find_role(viewer.layers, PROBABILITY)):
            if each is not None:
                viewer.layers.remove(each)

    def _watch(self, layer: Any) -> None:
        self._watched = layer
        layer.events.paint.connect(self._on_paint)
        layer.events.set_data.connect(self._on_drawn)
        layer.events.mode.connect(self._show_brush)
        layer.events.selected_label.connect(self._show_brush)
        for _, value, key, _ in BRUSHES:
            act = self._taking(value)
            layer.bind_key(key, lambda _, act=act: act(), overwrite=True)
        layer.bind_key(NEXT_KEY, lambda _: self.suggest(), overwrite=True)

    def _unwatch(self) -> None:
        """Learn nothing from the layer painted on any more: the movie chosen is another one."""
        layer, self._watched = self._watched, None
        if layer is None:
            return
        layer.events.paint.disconnect(self._on_paint)
        layer.events.set_data.disconnect(self._on_drawn)
        layer.events.mode.disconnect(self._show_brush)
        layer.events.selected_label.disconnect(self._show_brush)
        for key in (*(key for _, _, key, _ in BRUSHES), NEXT_KEY):
            layer.bind_key(key, None)

    def _on_removed(self, event: Any) -> None:
        if event.value is self._watched:
            self._watched, self._known, self._touched = None, Taught({}, {}), set()
            self._told()

    def _on_paint(self, event: Any) -> None:
        self._touched |= painted_frames(event, self._watched) or set()
        self._learn_soon()

    def _on_drawn(self, _: Any = None) -> None:
        """An undo, which napari tells as drawing only."""
        if self._watched is not None and str(self._watched.mode) != "pan_zoom":
            self._learn_soon()

    def clear(self) -> None:
        """Remove the strokes and what they taught, which `unforget` brings back."""
        self._panel.session.cancel("pixels")
        if self._kept is not None and not (now := self._painted(self._kept)).empty:
            self._forgotten = now
        self._known, self._start, self.size = Taught({}, {}), None, None
        self._drop_layers()
        if self._path is not None and self._kept is not None:
            self._write(Strokes(self._kept.shape), self._path)
        self._told()
        if self._forgotten is not None:
            self.words.setText("Forgotten. Until another movie is chosen it can be brought back.")

    def unforget(self) -> None:
        """Bring back what was forgotten last; what was painted since stays."""
        forgotten, self._forgotten = self._forgotten, None
        if forgotten is None or self._panel.state.viewer is None:
            return
        if self._start is not None:  # of another movie, and begun with since
            forgotten = replace(forgotten, start=self._start)
        self._show_strokes(forgotten)
        self._keep()
        self._refresh()

    # ------------------------------------------------------------------ learning

    def frame(self, movie: Movie) -> int:
        """The frame in view."""
        layer, viewer = self._image(), self._panel.state.viewer
        found = round(float(layer.world_to_data(viewer.dims.point)[0]))
        return min(max(found, 0), movie.n_frames - 1)

    def _marks(self, frame: int) -> dict[int, NDArray[np.uint8]]:
        """Copies of the frames with strokes; frames once painted are looked at again."""
        layer = self._watched
        if layer is None:
            return {}
        data = layer.data
        known = {frame, *self._known.marks, *self._touched}
        marks = {t: np.array(data[t], dtype=np.uint8) for t in sorted(known)}
        return {t: drawn for t, drawn in marks.items() if drawn.any() or t in self._known.marks}

    def learn(self, _: Any = None) -> None:
        """Learn from the strokes as they are now, and show what that says of the frame in view."""
        if self._movie() is not None and (self._watched is not None or self._start is not None):
            self._once_decided(self._learn)

    def _learn(self, movie: Movie, settings: SegmentationSettings) -> None:
        """Go on with what the panel shows of the cells."""
        image, known, start = self._image(), self._known, self._start
        if image is not self._of or (self._watched is None and start is None):
            return
        if start is not None:  # its pixels were described with a size that cannot be changed
            settings = replace(settings, diameter=start.diameter)
        frame = self.frame(movie)
        marks = self._marks(frame)
        if self._learned(marks, frame, settings):
            return
        self._panel.session.run(
            "pixels",
            lambda: teach(movie, marks, known, settings, start, frame),
            lambda found: self._on_taught(image, found),
            lambda error: self.words.setText(str(error)),
        )

    def _learned(
        self, marks: dict[int, NDArray[np.uint8]], frame: int, settings: SegmentationSettings
    ) -> bool:
        """Whether these strokes were learned from with these settings, and the frame is shown."""
        known = self._known
        if known.frame != frame or known.settings != settings:
            return False
        same = marks.keys() == known.marks.keys() and all(
            np.array_equal(known.marks[t], drawn) for t, drawn in marks.items()
        )
        return same and (known.model is not None or self._start is None)

    def look_again(self) -> None:
        """The settings shown have changed: what is painted teaches with these from now on."""
        if self._known.settings is not None or self._start is not None:
            self._learn_soon()

    def _on_taught(self, image: Any, found: Taught) -> None:
        if image is not self._of:
            return  # another movie was chosen meanwhile
        self._known = found
        self._keep()
        if found.model is not None:
            named = replace(found.model, name=str(image.name))
            self._known = replace(found, model=named)
        self._show_probability()
        self._told()

    def _told(self) -> None:
        model = self.model
        self._panel.session.teach(model, self._of)
        painted = {CLASSES[k - 1] for m in self._known.marks.values() for k in np.unique(m) if k}
        if model is not None and "cell" in model.classes:
            self.words.setText(
                f"Learned from {len(model.painted.classes):,} pixels. Paint where it is wrong, "
                "or find the cells."
            )
        elif painted:
            lacking = "cells" if "cell" not in painted else "the background"
            self.words.setText(f"Paint some of {lacking}, too.")
        else:
            self.words.setText("")
        self._refresh()
        for act in self.changed:
            act()

    def _on_frame(self, _: Any = None) -> None:
        if self.model is not None or self._start is not None:
            self._learn_soon()

    def _show_probability(self) -> None:
        viewer, known = self._panel.state.viewer, self._known
        shown = find_role(viewer.layers, PROBABILITY)
        if known.model is None or known.probability is None or "cell" not in known.model.classes:
            if shown is not None:
                viewer.layers.remove(shown)
            return
        cell = known.probability[known.model.classes.index("cell")]
        if shown is not None and shown.data.shape == cell.shape:
            shown.data = cell
            return
        if shown is not None:
            viewer.layers.remove(shown)
        active = viewer.layers.selection.active
        image = self._image()
        where = {name: value[1:] for name, value in placed_like(image).items()}
        viewer.add_image(
            cell,
            name="Cell probability",
            metadata=tag(PROBABILITY),
            colormap="green",
            blending="additive",
            opacity=0.4,
            contrast_limits=(0, 1),
            **where,
        )
        last = len(viewer.layers) - 1
        viewer.layers.move(last, viewer.layers.index(image) + 1)
        viewer.layers.selection.active = active

    # ------------------------------------------------------------------ helping

    def suggest(self) -> None:
        """Go to the least certain place."""
        movie, known = self._movie(), self._known
        if movie is None or known.model is None:
            return
        image, frame = self._image(), self.frame(movie)
        self._panel.session.run(
            "next pixels",
            lambda: next_place(movie, known, frame),
            lambda place: self._go(image, place),
        )

    def _go(self, image: Any, place: UncertainPlace) -> None:
        viewer = self._panel.state.viewer
        if viewer is None or image is not self._of:
            return
        world = [float(w) for w in image.data_to_world((place.frame, *place.point))]
        axis = int(viewer.dims.ndim - image.ndim)
        for k, value in enumerate(world[:-2]):
            viewer.dims.set_point(axis + k, value)
        camera = camera_of(viewer)
        camera.center = (0.0, *world[-2:])
        model = self._known.model
        size = 12 * (20.0 if model is None else model.diameter) * float(image.scale[-1])
        camera.zoom = max(camera.zoom, 600 / size)
        self.words.setText(f"These pixels are {place.doubt:.0%} uncertain: what are they?")

    def _reuse(self) -> None:
        movie, kept = self._movie(), self._panel.session.pixels
        if movie is not None and kept is not None:
            self.begin_with(kept.fitted_to(movie.geometry))

    def begin_with(self, start: PixelModel | None) -> None:
        """Add what is painted to what was taught elsewhere; with None it teaches alone."""
        self._panel.session.cancel("pixels")
        self.bring_back()  # what was kept of this movie stays, but for what that began with
        self._touched |= set(self._known.marks)
        self._start, self._known = start, Taught({}, {})
        self._keep()
        if start is None and self._watched is None:
            self._show_probability()
        self._told()
        self.learn()
