"""The Segment panel: choose the movie and its cells, or find the cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from magicgui.widgets import request_values
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QDialog, QDoubleSpinBox, QFileDialog, QWidget
from superqt.utils import qdebounced

from bridgetrack.annotations.files import ENDING
from bridgetrack.io.columns import guess_columns
from bridgetrack.io.tables import unknown_columns
from bridgetrack.pipeline.project import Scale
from bridgetrack.ui.file_menu import layers_of, table_of
from bridgetrack.ui.find_cells import FindCells
from bridgetrack.ui.layers import IMPORTED, LayerData, find_role, set_scale, tags_of
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import DIM, Section, button, form_in, text


class SegmentPanel(Panel):
    """Movie and cells."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.open = button(
            "Open…", "A movie (TIFF, any frame of a folder of them, OME-Zarr, .npy), masks in "
            "which every cell has a number, a table of cells, tracks of other programs, or a "
            "project (its folder NAME.bridgetrack)", self._ask,
        )  # fmt: skip
        self.source = self.add(SourceChooser(self))
        self.summary = self.add(text())
        self.sample = button(
            "Open the sample movie",
            "A simulated movie of dividing nuclei",
            lambda: self.state.viewer.open_sample("bridgetrack", "sample"),
        )
        self.column.addWidget(self.sample)
        self.find = FindCells(self, self.source)
        self.finding = self.add(Section("Find the cells in the movie", self.find))
        self.finding.open()
        self.scale = ScaleBox(self, self.source)
        self.more = self.add(Section("More", self.find.expert, self.scale))
        self.column.addStretch(1)
        self.listen(self.session.scene_changed, self._on_scene)
        self.listen(self.session.movie_changed, self._on_scene)
        self.listen(self.state.viewer.layers.events.inserted, self._on_scene)
        # Later: if the panel grows, napari would draw a layer that it is removing.
        removed = qdebounced(self._on_scene, timeout=0, parent=self)
        self.listen(self.state.viewer.layers.events.removed, removed)
        self._on_scene()

    def _ask(self) -> None:
        """Ask for a file and add its content; tracks without other cells are added with theirs."""
        path = ask_open(self, self.beside_movie())
        if path is None:
            return
        read = table_of if self.source.labels.layer is None else layers_of
        columns, unknown = None, unknown_columns(path)
        if unknown and (columns := ask_columns(self, unknown)) is None:
            return
        self.bring(path.name, lambda: read(path, columns))

    def bring(self, name: str, read: Callable[[], list[LayerData]]) -> None:
        """Read something in the background, add its layers and choose them.

        They are used even if something else was chosen before.
        """
        choice = {"image": self.source.image, "labels": self.source.labels}
        choice["points"] = self.source.labels

        def add(found: list[LayerData]) -> None:
            earlier = [x for x in (self.source.image.layer, self.source.labels.layer) if x]
            made = self.state.add_layers(found, self.source.image.layer)
            if made and all(tags_of(layer).get("project") for layer in made):
                # In place of the movie that is open; its layers stay, hidden.
                self.source.image.choose(None)
                for layer in earlier:
                    layer.visible = False
            first: dict[str, Any] = {}  # of several channels
            for layer, (*_, kind) in zip(made, found, strict=False):
                first.setdefault(kind, layer)
            for kind, layer in first.items():
                if kind in choice:
                    choice[kind].choose(layer)

        self.state.read(name, read, add)

    def _on_scene(self, _: Any = None) -> None:
        scene, viewer, movie = self.session.scene, self.state.viewer, self.session.movie
        self.sample.setVisible(viewer is not None and not len(viewer.layers))
        words = ""
        if scene is not None:
            n, frames = len(scene.detections), scene.detections.geometry.n_frames
            words = f"{n:,} cells in {frames} frames, about {round(n / frames)} a frame."
            if movie is not None and movie.found is not None:
                words += f" {movie.found.sentence}"
        elif self.source.labels.layer is None:
            words = f"No cells yet: choose a layer, or find them.{self.source.left}"
        self.summary.setText(f"{words} {self._of_tracks()}".strip())

    def _of_tracks(self) -> str:
        """How to continue with the tracks of another program, if there are any."""
        viewer = self.state.viewer
        layer = None if viewer is None else find_role(viewer.layers, IMPORTED)
        if layer is None:
            return ""
        return (
            f"“{layer.name}” contains tracks from another program. To start from them, use Import "
            "tracks… under Your answers in step 2."
        )


_KINDS = [
    "Movies, masks, tables, projects (*.tif *.tiff *.btf *.lsm *.npy zarr.json .zgroup .zattrs "
    ".zarray *.csv *.xml *.json)",
    "All files (*)",
]


class OpenDialog(QFileDialog):
    """Chooses a file, or a folder that is a project or a zarr store, by opening it."""

    def __init__(self, parent: QWidget | None, start: str = "") -> None:
        super().__init__(parent, "Open", start)
        self.setFileMode(QFileDialog.FileMode.ExistingFile)
        self.setNameFilters(_KINDS)
        self.setOption(QFileDialog.Option.DontUseNativeDialog)  # they only go into folders
        self.chosen: Path | None = None
        self.directoryEntered.connect(self._take)

    def _take(self, name: Any) -> bool:
        path = Path(name)
        if path.suffix not in (ENDING, ".zarr") or not path.is_dir():
            return False
        self.chosen = path
        QDialog.accept(self)
        return True

    def accept(self) -> None:
        """Accept the chosen file, or go into its folder."""
        names = self.selectedFiles()
        if not (names and self._take(names[0])):
            super().accept()


def ask_open(parent: QWidget, start: str = "") -> Path | None:
    """The file that the user chose to open; None if cancelled."""
    dialog = OpenDialog(parent, start)
    if dialog.exec() != QDialog.DialogCode.Accepted:
        return None
    return dialog.chosen or Path(dialog.selectedFiles()[0])


_ROLES = {
    "frame": "Frame", "y": "y", "x": "x", "z": "z, where there is one", "track": "Track, if any",
}  # fmt: skip
"""Roles of columns of a table, in words."""
_NONE = "–"


def ask_columns(parent: QWidget, header: Sequence[str]) -> dict[str, str] | None:
    """Roles of the columns of a table, chosen by the user; None if cancelled."""
    guessed, columns = guess_columns(header), [_NONE, *header]
    asked = {
        role: {"label": words, "value": guessed.get(role, _NONE), "options": {"choices": columns}}
        for role, words in _ROLES.items()
    }
    said = request_values(asked, title="What do these columns contain?", parent=parent)
    if said is None:
        return None
    return {role: column for role, column in said.items() if column != _NONE}


_TYPED = 1000
"""Milliseconds after the last number was typed until it is applied."""

_LARGEST = 1e6
_UNKNOWN = "not known"


class ScaleBox(QWidget):
    """Three numbers; all lengths and times follow after a moment."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        self._form = form_in(self)
        self.pixel = _number("Pixel size in x and y, in micrometres")
        self.plane = _number("Distance between planes, in micrometres")
        self.minutes = _number("Time between frames, in minutes")
        self._fields = self.pixel, self.plane, self.minutes
        titles = "Pixel, µm", "Between planes, µm", "Frame, minutes"
        soon = qdebounced(self.apply, timeout=_TYPED, parent=self)
        for title, field in zip(titles, self._fields, strict=True):
            self._form.addRow(title, field)
            field.valueChanged.connect(lambda _: soon())
        self.words = text(style=DIM)
        self._form.addRow(self.words)
        panel.listen(panel.session.movie_changed, self._on_movie)
        self._on_movie()

    @property
    def known(self) -> tuple[float, float, float]:
        """Known values of the open movie, in the order of the fields; 0 if unknown."""
        movie = self._panel.session.movie
        if movie is None:
            return 0.0, 0.0, 0.0
        geometry = movie.geometry
        minutes = geometry.frame_interval or 0.0
        if geometry.unit != "micrometer":
            return 0.0, 0.0, minutes
        return geometry.scale[-1], geometry.scale[0] if geometry.ndim == 3 else 0.0, minutes

    def _on_movie(self) -> None:
        movie, known = self._panel.session.movie, self.known
        self.setVisible(movie is not None)
        deep = movie is not None and movie.geometry.ndim == 3
        self._form.setRowVisible(self.plane, deep)
        for field, value in zip(self._fields, known, strict=True):
            if not field.hasFocus():  # the user is typing
                with QSignalBlocker(field):
                    field.setValue(value)
        where = "micrometres" if known[0] else "pixels"
        when = "minutes" if known[2] else "frames"
        self.words.setText(f"Tables and speeds are in {where} and {when}.")

    def apply(self) -> None:
        """Set the scale of both layers, and open the movie again with it; the answers stay."""
        movie, given = self._panel.session.movie, tuple(f.value() for f in self._fields)
        if movie is None or given == self.known:
            return
        pixel, plane, minutes = given
        side = pixel or 1.0
        space = (plane or side, side, side)[-movie.geometry.ndim :]
        scale = Scale(space, "micrometer" if pixel else "pixel", minutes or None)
        self._panel.session.settings.set_scale(scale)
        set_scale(self._panel.state.viewer, *movie.layers, scale)
        self._source.open(again=True)
        self._panel.state.viewer.reset_view()


def _number(tip: str) -> QDoubleSpinBox:
    made = QDoubleSpinBox()
    made.setRange(0.0, _LARGEST)
    made.setDecimals(4)
    made.setSpecialValueText(_UNKNOWN)
    made.setToolTip(tip)
    return made
