"""The Segment panel: choose the movie and its cells, or find the cells."""

from __future__ import annotations

from typing import Any

from bridgetrack.ui.find_cells import FindCells
from bridgetrack.ui.panel import Notice, Panel, Work
from bridgetrack.ui.real_sample import HELA, download_into
from bridgetrack.ui.repair_box import RepairBox
from bridgetrack.ui.source_panel import ResumeBar, SourceChooser
from bridgetrack.ui.widgets import button, folded, heading, text


class SegmentPanel(Panel):
    """Movie and cells."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.add(heading("Movie and cells"))
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
        self.find = FindCells(self, self.source)
        self.add(folded("Find the cells in the movie", self.find))
        self.repair = RepairBox(self, self.source)
        self.add(folded("Repair the cells", self.repair))
        self.notice = self.add(Notice())
        self.column.addStretch(1)
        self.listen(self.session.scene_changed, self._on_scene)
        self.listen(self.session.movie_changed, self._on_scene)
        self.listen(self.session.message, self.notice.say)
        self.listen(self.state.viewer.layers.events.inserted, self._on_scene)
        self.listen(self.state.viewer.layers.events.removed, self._on_scene)
        self._on_scene()

    def _open_sample(self) -> None:
        self.state.viewer.open_sample("bridgetrack", "sample")

    def _open_real(self) -> None:
        download_into(self.state.viewer, HELA)

    def _on_scene(self, _: Any = None) -> None:
        scene = self.session.scene
        viewer = self.state.viewer
        nothing = viewer is not None and not len(viewer.layers)
        self.sample.setVisible(nothing)
        self.real.setVisible(nothing)
        if scene is None:
            found = self.source.labels.layer is not None
            self.summary.setText("" if found else "No cells yet: choose a layer, or find them.")
            return
        n, frames = len(scene.detections), scene.detections.geometry.n_frames
        words = f"{n} cells in {frames} frames, about {round(n / frames)} a frame."
        movie = self.session.movie
        if movie is not None and movie.found is not None:
            words += f" Found here {movie.found.words}."
        self.summary.setText(words)
