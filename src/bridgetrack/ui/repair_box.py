"""Repairing cells that were brought along: a checkbox, and a list of what was changed."""

from __future__ import annotations

from typing import Any

import numpy as np
from qtpy.QtWidgets import QCheckBox, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from bridgetrack.pipeline.mask_changes import Change, ChangeKind
from bridgetrack.session.repair import Repaired, repair
from bridgetrack.ui.layers import placed_like, tag, tags_of
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.source_panel import SourceChooser
from bridgetrack.ui.widgets import SPACE, button, dress_table, text

_WORDS = {
    ChangeKind.CUT: "cut",
    ChangeKind.JOINED: "joined",
    ChangeKind.ADDED: "added",
    ChangeKind.DROPPED: "dropped",
    ChangeKind.OUTLINE: "outline",
}


class RepairBox(QWidget):
    """Repairs the cells chosen above into a layer of its own."""

    def __init__(self, panel: Panel, source: SourceChooser) -> None:
        super().__init__()
        self._panel, self._source = panel, source
        self._repaired: Repaired | None = None
        self._layers: tuple[Any, Any] = (None, None)  # the cells given, and the repaired ones
        self._listed: list[Change] = []
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        self.on = QCheckBox("Repair these cells by the image")
        self.on.setToolTip("Cut, join, add, drop where the image says so; makes a layer of its own")
        self.on.toggled.connect(self._on_toggled)
        box.addWidget(self.on)
        self.work = Work(panel, "repair")
        box.addWidget(self.work)
        self.words = text()
        box.addWidget(self.words)
        self.table = QTableWidget()
        dress_table(self.table, ("Frame", "Change", "Cells"), (56, 80, 0),
                    "Click a change to go there", self._on_click)  # fmt: skip
        self.table.setMinimumHeight(120)
        self.table.hide()
        box.addWidget(self.table)
        self.back = button(
            "Take the selected back", "These masks are as they were; Undo brings the change back",
            self.take_back, icon="undo",
        )  # fmt: skip
        self.back.hide()
        box.addWidget(self.back)
        panel.listen(panel.session.movie_changed, self._on_movie)
        self._on_movie()

    # ------------------------------------------------------------------ repairing

    def _on_movie(self) -> None:
        movie = self._panel.session.movie
        mine = movie is not None and movie.layers[1] is self._layers[1]
        fits = movie is not None and movie.labels is not None and movie.image is not None
        self.on.setEnabled(fits)
        if movie is not None and not mine and self.on.isChecked():
            # Other cells were chosen.
            self._set_checked(False)
        self._show()

    def _set_checked(self, on: bool) -> None:
        self.on.blockSignals(True)
        self.on.setChecked(on)
        self.on.blockSignals(False)

    def _on_toggled(self, on: bool) -> None:
        session = self._panel.session
        given, made = self._layers
        if not on:
            session.cancel("repair")
            if made is not None and self._source.labels.layer is made:
                self._source.labels.choose(given)
            return
        movie = session.movie
        if movie is None:
            return
        layer, model = movie.layers[1], session.model
        answers = None if session.masks is None else session.masks.answers
        session.run(
            "repair",
            lambda: repair(movie, model, answers),
            lambda found: self._add(found, layer),
            self._failed,
        )

    def _failed(self, error: Exception) -> None:
        self._set_checked(False)
        self.words.setText(str(error))

    def _add(self, found: Repaired, layer: Any) -> None:
        viewer = self._panel.state.viewer
        if viewer is None:
            return
        self._repaired, self._listed = found, list(found.changes)
        made = viewer.add_labels(
            found.labels,
            name=f"{layer.name} repaired",
            metadata=tag("labels", frame_interval=tags_of(layer).get("frame_interval")),
            opacity=layer.opacity,
            **placed_like(layer),
        )
        self._layers = layer, made
        self._source.labels.choose(made)
        layer.visible = False
        self._show()

    # ------------------------------------------------------------------ the list

    def _show(self) -> None:
        shown = self._repaired is not None and self.on.isChecked()
        self.table.setVisible(shown)
        self.back.setVisible(shown)
        if not shown:
            return
        counts = {kind: sum(c.kind == kind for c in self._listed) for kind in ChangeKind}
        told = ", ".join(f"{n} {_WORDS[kind]}" for kind, n in counts.items() if n)
        self.words.setText(told or "Nothing was changed.")
        self.table.setRowCount(len(self._listed))
        for k, change in enumerate(self._listed):
            cells = ", ".join(str(n) for n in change.before or change.after)
            for column, words in enumerate((str(change.frame), _WORDS[change.kind], cells)):
                self.table.setItem(k, column, QTableWidgetItem(words))

    def _on_click(self, k: int, _: int) -> None:
        self._panel.state.canvas.show(self._listed[k].frame, self._listed[k].place)

    def take_back(self) -> None:
        """Make the masks of the selected changes what they were."""
        session, found = self._panel.session, self._repaired
        rows = sorted({index.row() for index in self.table.selectedIndexes()})
        if found is None or session.movie is None or session.movie.labels is None:
            return
        done = []
        with session.telling():
            for k in rows:
                change = self._listed[k]
                present = np.asarray(session.movie.labels.channel_frame(change.frame))
                session.accept(found.back(change, present))
                done.append(k)
        self._listed = [c for k, c in enumerate(self._listed) if k not in done]
        self._show()
