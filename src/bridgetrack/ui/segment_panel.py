"""The Segment panel: choose the movie and its cells, or find the cells."""

from __future__ import annotations

from typing import Any

from bridgetrack.ui.source_panel import ResumeBar, SourceChooser, measuring
from bridgetrack.ui.widgets import Notice, Panel, heading, text


class SegmentPanel(Panel):
    """Movie and cells."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.column.addWidget(heading("Movie and cells"))
        self.source = SourceChooser(self)
        self.column.addWidget(self.source)
        self.work = measuring(self)
        self.column.addWidget(self.work)
        self.summary = text()
        self.column.addWidget(self.summary)
        self.resume = ResumeBar(self)
        self.column.addWidget(self.resume)
        self.notice = Notice()
        self.column.addWidget(self.notice)
        self.column.addStretch(1)
        self.listen(self.session.scene_changed, self._on_scene)
        self.listen(self.session.source_changed, self._on_scene)
        self.listen(self.session.message, self.notice.say)
        self._on_scene()

    def _on_scene(self) -> None:
        scene = self.session.scene
        if scene is None:
            self.summary.setText("")
            return
        n, frames = len(scene.detections), scene.detections.geometry.n_frames
        self.summary.setText(f"{n} cells in {frames} frames, about {round(n / frames)} a frame.")
