"""Repairing cells that were brought along, by a button."""

from __future__ import annotations

from typing import Any

from qtpy.QtWidgets import QVBoxLayout, QWidget

from bridgetrack.progress import Steps
from bridgetrack.session.mask_work import Repaired, repair
from bridgetrack.ui.layers import placed_like, tag, tags_of
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import SPACE, button, text


class RepairBox(QWidget):
    """Repairs the cells chosen above into a layer of its own; theirs stays, hidden."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        self.go = button(
            "Repair these cells by the image",
            "Cut, join, add and drop cells where the image says so; makes a layer of its own",
            self.begin,
            icon="go",
        )
        box.addWidget(self.go)
        self.work = Work(panel, "repair")
        box.addWidget(self.work)
        self.words = text()
        box.addWidget(self.words)
        panel.listen(panel.session.movie_changed, self._on_movie)
        self._on_movie()

    def _on_movie(self) -> None:
        movie = self._panel.session.movie
        fits = movie is not None and movie.labels is not None and movie.image is not None
        self.go.setEnabled(fits)

    def begin(self) -> None:
        """Repair the cells in the background."""
        session = self._panel.session
        movie, model = session.movie, session.model
        if movie is None or session.busy("repair"):
            return
        layer, said = movie.layers[1], session.said_of_masks()

        def work() -> Steps[Repaired]:
            answers = yield from said
            return (yield from repair(movie, model, answers))

        session.run(
            "repair",
            work,
            lambda found: self._add(found, layer),
            lambda error: self.words.setText(str(error)),
            unfinished=f"The repair of “{layer.name}” ended before it was done, as these cells or "
            "their movie are not open any more; they are as they were.",
        )

    def _add(self, found: Repaired, layer: Any) -> None:
        viewer = self._panel.state.viewer
        if viewer is None:
            return
        made = viewer.add_labels(
            found.labels,
            name=f"{layer.name} repaired",
            metadata=tag(
                "labels",
                frame_interval=tags_of(layer).get("frame_interval"),
                found=found.finding,
            ),
            opacity=layer.opacity,
            **placed_like(layer),
        )
        self._source.labels.choose(made)
        layer.visible = False
        self.words.setText(found.words)
