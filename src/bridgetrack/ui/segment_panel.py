"""The Segment panel: choose the movie and its cells, or find the cells."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qtpy.QtWidgets import QFileDialog
from superqt.utils import qdebounced

from bridgetrack.ui.file_layers import layers_of, masks_of, table_of
from bridgetrack.ui.find_cells import FindCells
from bridgetrack.ui.layers import IMPORTED, LayerData, find_role
from bridgetrack.ui.opening import JOB
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.real_sample import open_real_movie
from bridgetrack.ui.repair_box import RepairBox
from bridgetrack.ui.scale_box import ScaleBox
from bridgetrack.ui.source_panel import ResumeBar, SourceChooser
from bridgetrack.ui.widgets import button, folded, heading, row, text

_MOVIES = "Movies (*.tif *.tiff *.btf *.lsm *.npy zarr.json .zgroup .zattrs .zarray);;All files (*)"
_TABLES = "Tables and tracks (*.csv *.xml);;All files (*)"


_OFFER = 400
"""Milliseconds in which the cells of a movie may come along with it."""


class SegmentPanel(Panel):
    """Movie and cells."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self._left = ""  # what is said of cells that another movie left
        self.add(heading("Movie and cells"))
        openers = (
            ("Open movie…", "A TIFF, any frame of a folder of them, an OME-Zarr or .npy",
             lambda: self._ask("Open a movie", layers_of)),
            ("Open masks…", "A movie in which every cell has a number in every frame",
             lambda: self._ask("Open masks", masks_of)),
            ("Open table…", "A CSV table with a row per cell, or tracks of other programs",
             lambda: self._ask("Open a table", self._table, _TABLES)),
        )  # fmt: skip
        self.openers = [button(words, tip, act) for words, tip, act in openers]
        self.add(row(*self.openers))
        self.source = self.add(SourceChooser(self))
        self.work = self.add(Work(self, "measure", cancel=False))
        self.summary = self.add(text())
        self.sample = button(
            "Open the sample movie",
            "A simulated movie of dividing nuclei",
            self._open_sample,
            icon="sample",
        )
        self.real = button(
            "Download a real movie",
            "HeLa nuclei of the Cell Tracking Challenge; 182 MB, kept for the next time",
            self._open_real,
            icon="download",
        )
        self.column.addWidget(self.sample)
        self.column.addWidget(self.real)
        self.resume = self.add(ResumeBar(self))
        self.scale = ScaleBox(self, self.source)
        self.add(folded("Scale and time", self.scale))
        self.find = FindCells(self, self.source)
        self.finding = self.add(folded("Find the cells in the movie", self.find))
        self.repair = RepairBox(self, self.source)
        self.add(folded("Repair the cells", self.repair))
        self.column.addStretch(1)
        self.listen(self.session.scene_changed, self._on_scene)
        self.listen(self.session.movie_changed, self._on_scene)
        self.listen(self.state.viewer.layers.events.inserted, self._on_scene)
        # Later: where the panel grows, napari would draw a layer that it is taking away.
        removed = qdebounced(self._on_scene, timeout=0, parent=self)
        self.listen(self.state.viewer.layers.events.removed, removed)
        self.source.parted.connect(self._on_parted)
        self.source.image.chosen.connect(self._on_image)
        self._offered: weakref.WeakSet[Any] = weakref.WeakSet()
        offer = qdebounced(self._offer, timeout=_OFFER, parent=self)
        self.source.image.chosen.connect(lambda _: offer())
        offer()
        self._on_scene()

    def _offer(self) -> None:
        """Unfold what finds cells, once for every movie that comes without any."""
        image, cells = self.source.image.layer, self.source.labels.layer
        if image is None or cells is not None or image in self._offered:
            return
        self._offered.add(image)
        if not self.state.files.busy(JOB):
            self.finding.expand(animate=False)

    def _ask(
        self, title: str, read: Callable[[Path], list[LayerData]], kinds: str = _MOVIES
    ) -> None:
        """Ask for a file and add what it holds."""
        name, _ = QFileDialog.getOpenFileName(self, title, self.beside_movie(), kinds)
        if not name:
            return
        path = Path(name)
        self.bring(path.name, lambda: read(path))

    @property
    def _table(self) -> Callable[[Path], list[LayerData]]:
        """What reads a table: tracks without other cells come with theirs."""
        return table_of if self.source.labels.layer is None else layers_of

    def bring(self, name: str, read: Callable[[], list[LayerData]]) -> None:
        """Read something beside the window, add what it holds and choose it.

        What somebody opens here is meant, also where something was chosen before.
        """
        choice = {"image": self.source.image, "labels": self.source.labels}
        choice["points"] = self.source.labels

        def add(found: list[LayerData]) -> None:
            made = self.state.add_layers(found, self.source.image.layer)
            first: dict[str, Any] = {}  # of several channels
            for layer, (*_, kind) in zip(made, found, strict=False):
                first.setdefault(kind, layer)
            for kind, layer in first.items():
                if kind in choice:
                    choice[kind].choose(layer)

        self.state.files.read(name, read, add)

    def _on_parted(self, cells: str, movie: str) -> None:
        """The cells of a movie are not those of one opened after it."""
        self._left = f" “{cells}” are those of “{movie}”; choose them above to use them here, too."
        self._on_scene()

    def _open_sample(self) -> None:
        self.state.viewer.open_sample("bridgetrack", "sample")

    def _open_real(self) -> None:
        open_real_movie(self.state)

    def _on_image(self, _: Any) -> None:
        self._left = ""

    def _on_scene(self, _: Any = None) -> None:
        scene = self.session.scene
        viewer = self.state.viewer
        nothing = viewer is not None and not len(viewer.layers)
        self.sample.setVisible(nothing)
        self.real.setVisible(nothing)
        if scene is None:
            found = self.source.labels.layer is not None
            words = "" if found else f"No cells yet: choose a layer, or find them.{self._left}"
            self.summary.setText(f"{words} {self._of_tracks()}".strip())
            return
        n, frames = len(scene.detections), scene.detections.geometry.n_frames
        words = f"{n} cells in {frames} frames, about {round(n / frames)} a frame."
        movie = self.session.movie
        if movie is not None and movie.found is not None:
            words += f" {movie.found.sentence}"
        self.summary.setText(f"{words} {self._of_tracks()}".strip())

    def _of_tracks(self) -> str:
        """How to go on with the tracks of another program, where there are any."""
        viewer = self.state.viewer
        layer = None if viewer is None else find_role(viewer.layers, IMPORTED)
        if layer is None:
            return ""
        return (
            f"“{layer.name}” holds tracks that were made elsewhere. To begin with them and correct "
            "them: step 2, Edit tracks, Import corrected tracks."
        )
