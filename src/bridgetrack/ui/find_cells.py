"""Finding the cells of a movie: sliders, a live preview, and a button for all frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from magicgui.widgets import ComboBox, create_widget
from numpy.typing import NDArray
from qtpy.QtWidgets import QCheckBox, QSlider, QWidget
from superqt.utils import qdebounced

from bridgetrack.errors import BridgetrackError
from bridgetrack.movie import Movie
from bridgetrack.pipeline.finding import CellSearch, Finding
from bridgetrack.progress import Progress, Steps
from bridgetrack.schema import options_of
from bridgetrack.segmentation import SegmentationSettings, available_backends, segment_frame
from bridgetrack.segmentation.builtin import complete_settings
from bridgetrack.segmentation.readings import SettingsEstimate
from bridgetrack.segmentation.settings import Appearance
from bridgetrack.ui import layers
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import DIM, Column, button, fitted, form_in, text

_WAYS = {"jointly": "together with their tracks", "plain": "fast: one segmentation per frame"}
"""How the built-in method chooses cells, in words."""

_PAUSE = 200
"""Milliseconds after the last move of a slider until the preview follows."""

_Then = Callable[[Movie, SegmentationSettings], None]


def _setting(settings: type[Any], name: str) -> Any:
    """A magicgui widget for a field of settings, with the limits of the command line."""
    [option] = options_of(settings, name)
    more: dict[str, Any] = {"tooltip": option.help}
    if option.choices:
        kind, more["choices"] = "ComboBox", list(option.choices)
    else:
        more |= {"min": option.least, "max": option.most}
        is_share = option.most == 1
        more |= {"readout": False, "step": 0.01} if is_share else {"step": 1.0}
        kind = "FloatSlider" if is_share else "FloatSpinBox"
    made = create_widget(option.default, name=name, widget_type=kind, options=more)
    for slider in made.native.findChildren(QSlider):  # a click beside the handle moves it a tenth
        slider.setPageStep(slider.maximum() // 10)
    return made


def preview(
    movie: Movie, frame: int, settings: SegmentationSettings, backend: str
) -> Steps[NDArray[Any]]:
    """Cells of one frame."""
    yield Progress("Preview", 0.0)
    image, scale = movie.channel_frame(frame), movie.geometry.scale
    return segment_frame(image, settings, scale=scale, backend=backend)


class FindCells(Column):
    """Sliders with a live preview, and a button for all frames."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        # Estimated settings, with the layer and the method that they are for.
        self._decided: tuple[tuple[Any, ...], SettingsEstimate] | None = None
        self._search: CellSearch | None = None
        self._looked_in: Any = None  # its layer
        self._shown = 0  # frames of it that are shown
        self._own_size = False  # whether the user set the size of its cells
        self.size, self.faint, self.split = (
            _setting(Appearance, name) for name in ("diameter", "faint", "split")
        )
        self.size.native.setDecimals(1)
        self.size.min -= 0.1  # a value that means automatic
        self.size.native.setSpecialValueText("automatic")
        looks = form_in(self.add(QWidget()))
        looks.addRow("Cell size, pixels", self.size.native)
        looks.addRow("Faint cells", self.faint.native)
        looks.addRow("Split touching cells", self.split.native)
        self.estimate = self.add(text(style=DIM))
        self.live = self.add(QCheckBox("Live preview on this frame"))
        self.live.setToolTip("Show the cells of the frame in view as the sliders move")
        self.go = self.add(button(
            "Find cells in all frames",
            "Look for the cells of every frame; they are added as a new layer",
            self.run,
        ))  # fmt: skip
        self.words = self.add(text())
        self.expert = self._experts()
        panel.listen(panel.session.progress, self._show_found)
        panel.listen(panel.session.progress, self._show_busy)
        self._preview_soon = qdebounced(self._show_preview, timeout=_PAUSE, parent=self)
        self._listen()
        self._on_image()

    def _experts(self) -> QWidget:
        others = [name for name in available_backends() if name != "builtin"]
        ways = [*((words, way) for way, words in _WAYS.items()), *((n, n) for n in others)]
        tip = "How cells are found; cellpose if it is installed"
        self.method = ComboBox(name="method", choices=ways, tooltip=tip)
        self.foreground = _setting(SegmentationSettings, "foreground")
        box = QWidget()
        form = form_in(box)
        for title, widget in (("Method", self.method), ("Cells are", self.foreground)):
            form.addRow(title, fitted(widget.native))
        return box

    def _listen(self) -> None:
        panel = self._panel
        self.size.changed.connect(self._on_size_set)
        for widget in (self.size, self.faint, self.split, self.foreground, self.method):
            widget.changed.connect(lambda _: self._preview_soon())
        self.live.toggled.connect(self._on_live)
        self._source.image.chosen.connect(lambda _: self._on_image())
        panel.listen(panel.state.viewer.dims.events.current_step, self._on_frame)
        panel.listen(panel.session.movie_changed, self._on_movie)

    def _on_image(self) -> None:
        """The search in the earlier movie does not apply to this one."""
        for work in ("settings", "preview"):
            self._panel.session.cancel(work)
        layer = self._source.image.layer
        self._show_size(0.0)
        self._own_size = False
        self.go.setEnabled(layer is not None)
        self.live.setEnabled(layer is not None)
        self.estimate.setText("")
        self.words.setText("" if layer is not None else "Choose a movie above first.")
        self._decided = None
        self._show_preview()

    def _on_movie(self) -> None:
        """Show the size with which the cells of the movie were found."""
        movie = self._panel.session.movie
        if movie is not None and movie.kept and movie.found is not None:
            known = movie.found.settings
            if known is not None and known.diameter is not None:
                self._show_size(known.diameter)
                self._own_size = True

    def _on_size_set(self, _: Any) -> None:
        """The user set the size, which no estimate changes from now on, or set it to automatic."""
        self._own_size = self.size.value > self.size.min
        if not self._own_size:
            self._decided = None  # by the size that was set

    def _show_size(self, diameter: float) -> None:
        with self.size.changed.blocked():
            self.size.value = min(max(diameter, self.size.min), self.size.max)

    def _finding(self) -> Finding:
        """The method set in the forms; the rest is estimated from the movie."""
        way = str(self.method.value)
        # A network's cells are taken as they are.
        choose: Literal["jointly", "plain"] = "jointly" if way == "jointly" else "plain"
        size = self.size.value if self._own_size else None
        said = SegmentationSettings(diameter=size, foreground=self.foreground.value)
        return Finding(said, choose, "builtin" if way in _WAYS else way)

    @property
    def _way(self) -> tuple[Any, ...]:
        """Inputs for which the estimated settings are valid."""
        return self._source.image.layer, self._finding().chooses, self.foreground.value

    def _settings(self, decided: SegmentationSettings) -> SegmentationSettings:
        """The settings of the forms, applied to the estimated ones."""
        looks = Appearance(faint=self.faint.value, split=self.split.value)
        size = self.size.value if self._own_size else decided.diameter
        shown = replace(looks.applied_to(decided), diameter=size)
        return complete_settings([], shown) if self._own_size else shown

    def _with_settings(self, work: str, then: _Then) -> None:
        """Call `then` once the settings are estimated by the named work."""
        layer = self._source.image.layer
        if layer is None:
            return
        way, finding = self._way, self._finding()
        try:
            movie = layers.movie_of(layer)
            if self._decided is not None and self._decided[0] == way:
                then(movie, self._settings(self._decided[1].settings))
                return
        except BridgetrackError as error:
            self.words.setText(str(error))
            return

        def known(found: SettingsEstimate) -> None:
            if (self._way, self._finding()) == (way, finding):
                self._decided = way, found
                self._show_decided(found)
            self._with_settings(work, then)  # settings changed meanwhile are kept

        self._panel.session.run(work, lambda: finding.decided(movie), known, self._failed)

    def _show_decided(self, found: SettingsEstimate) -> None:
        """Show the estimated settings, and doubts about them."""
        if not self._own_size:
            self._show_size(found.settings.diameter or 0.0)
        doubts = (f"⚠ {words[0].upper()}{words[1:]}." for words in found.doubts)
        self.estimate.setText(" ".join([f"Cells look {found.readings[0].words}.", *doubts]))

    def _failed(self, error: Exception) -> None:
        self.words.setText(str(error))

    def _on_live(self, on: bool) -> None:
        if on:
            self._show_preview()
            return
        self._panel.session.cancel("preview")
        viewer = self._panel.state.viewer
        shown = layers.find_role(viewer.layers, "preview")
        if shown is not None:
            viewer.layers.remove(shown)

    def _on_frame(self, _: Any = None) -> None:
        if self.live.isChecked():
            self._preview_soon()

    def _show_preview(self) -> None:
        if self.live.isChecked():
            self._with_settings("preview", self._preview)

    def _preview(self, movie: Movie, settings: SegmentationSettings) -> None:
        layer: Any = self._source.image.layer
        viewer = self._panel.state.viewer
        frame = round(float(layer.world_to_data(viewer.dims.point)[0]))
        frame = min(max(frame, 0), movie.n_frames - 1)
        backend = self._finding().backend
        self._panel.session.run(
            "preview",
            lambda: preview(movie, frame, settings, backend),
            lambda labels: self._show(labels, layer),
            self._failed,
        )

    def _show_busy(self, work: str, step: Any) -> None:
        """Show that a preview is being computed, until it is done."""
        if work == "preview":
            self.words.setText("" if step is None else "Computing the preview…")

    def _show(self, labels: NDArray[Any], layer: Any) -> None:
        viewer = self._panel.state.viewer
        self.words.setText(f"{int(labels.max())} cells in this frame.")
        shown = layers.find_role(viewer.layers, "preview")
        if shown is not None:
            shown.data = labels
            return
        where = layers.placed_like(layer, still=True)
        made = viewer.add_labels(labels, name="Preview", metadata=layers.tag("preview"), **where)
        made.contour = 1

    def run(self) -> None:
        """Find the cells of all frames in the background."""
        self._with_settings("settings", self._run)

    def _run(self, movie: Movie, settings: SegmentationSettings) -> None:
        layer: Any = self._source.image.layer
        session = self._panel.session
        finding, weights = replace(self._finding(), settings=settings), session.model
        said = self._source.said_of_masks()
        search = self._search = CellSearch(movie, finding, weights=weights)
        self._looked_in = layer

        def work() -> Steps[NDArray[Any]]:
            search.answers = yield from said
            return (yield from search.in_memory())

        session.run(
            "segment",
            work,
            lambda labels: self._add(layer, labels, search.finding),
            self._failed,
            what=f"The search for the cells of “{layer.name}”",
        )

    def _show_found(self, work: str, _: Any) -> None:
        """Show the frames of a search as they are found."""
        viewer, search = self._panel.state.viewer, self._search
        if work != "segment" or viewer is None or search is None:
            return
        shown = layers.find_role(viewer.layers, layers.FOUND)
        if not self._panel.session.busy("segment"):
            if shown is not None:
                viewer.layers.remove(shown)
        elif shown is None and search.counts:
            found = layers.cells_over(self._looked_in, search.labels, "Found so far", layers.FOUND)
            layers.add_below(viewer, found)
        elif shown is not None and len(search.counts) > self._shown:
            shown.refresh()
        self._shown = len(search.counts)

    def _add(self, layer: Any, labels: NDArray[Any], finding: Finding) -> None:
        """Show the result; cells of earlier searches that were in use stay, hidden."""
        viewer, source = self._panel.state.viewer, self._source
        if viewer is None:
            return
        if not labels.any():
            self.words.setText(
                "No cells were found. Set “Cell size” to the size of the cells, check a frame in "
                "the live preview, and search again."
            )
            return
        self.live.setChecked(False)
        used: Any = source.labels.layer
        movie = layers.mark_of(layer)
        for earlier in [x for x in viewer.layers if layers.tags_of(x).get("of") == movie]:
            if earlier is used:
                earlier.visible = False
            else:
                viewer.layers.remove(earlier)
        made = layers.cells_over(layer, labels, "Cells found", found=finding, of=movie)
        viewer.add_layer(made)
        if source.image.layer is layer:
            source.labels.choose(made)
            self.words.setText(
                "Done. Correct wrong masks in step 2 with a key and a click, or select the layer "
                f"“{made.name}” and paint."
            )
        else:
            made.visible = False
            self.words.setText(f"Cells of “{layer.name}” found. Select it as Movie to use them.")
