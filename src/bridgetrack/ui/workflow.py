"""The guided workflow: the panels as steps, each with what it needs and what is next."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QButtonGroup, QScrollArea, QStackedWidget, QWidget

from bridgetrack.ui.annotate_panel import AnnotatePanel
from bridgetrack.ui.segment_panel import SegmentPanel
from bridgetrack.ui.track_panel import TrackPanel
from bridgetrack.ui.train_panel import TrainPanel
from bridgetrack.ui.widgets import Panel, button, row, text

ENOUGH = 20
"""Answers after which training begins to pay."""


class WorkflowPanel(Panel):
    """Cells, Annotate, Train, Track: one at a time."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        viewer = self.desk.viewer
        self.segment = SegmentPanel(viewer)
        self.annotate = AnnotatePanel(viewer)
        self.train = TrainPanel(viewer)
        self.track = TrackPanel(viewer)
        self.steps: list[Panel] = [self.segment, self.annotate, self.train, self.track]
        names = ("1 Cells", "2 Annotate", "3 Train", "4 Track")
        tips = (
            "Choose the movie and its cells, or find the cells",
            "Tell what happens to some cells",
            "Learn from your answers",
            "Look at the tracks, correct and export them",
        )
        icons = ("cells", "annotate", "train", "track")
        self.tabs = [
            button(name, tip, self._opener(k), checkable=True, icon=icon)
            for k, (name, tip, icon) in enumerate(zip(names, tips, icons, strict=True))
        ]
        group = QButtonGroup(self)
        for tab in self.tabs:
            group.addButton(tab)
        self.column.addWidget(row(*self.tabs))
        self.next_words = text()
        self.column.addWidget(self.next_words)
        self.stack = QStackedWidget()
        for panel in self.steps:
            panel.column.setContentsMargins(0, 0, 0, 0)
            self.stack.addWidget(_scrolling(panel))
        self.column.addWidget(self.stack, 1)
        self.setMinimumWidth(320)
        for signal in (
            self.session.source_changed,
            self.session.scene_changed,
            self.session.answers_changed,
            self.session.model_changed,
            self.session.tracking_changed,
            self.desk.trainer.changed,
        ):
            self.listen(signal, self._say_next)
        self.open_step(0)

    def _opener(self, k: int) -> Any:
        return lambda: self.open_step(k)

    @property
    def step(self) -> int:
        """Number of the open step, from 0."""
        return int(self.stack.currentIndex())

    def open_step(self, k: int) -> None:
        """Open a step."""
        self.tabs[k].setChecked(True)
        self.stack.setCurrentIndex(k)
        if k in (1, 3):
            self.desk.canvas.activate()
        self._say_next()

    def _say_next(self) -> None:
        self.next_words.setText(
            next_step(
                self.step,
                movie=self.session.source is not None,
                ready=self.session.tracking is not None,
                answers=len(self.session.annotations or ()),
                trained=self.desk.trainer.training is not None,
            )
        )


def next_step(step: int, *, movie: bool, ready: bool, answers: int, trained: bool) -> str:
    """What a step needs or what comes next, in plain words."""
    if not movie:
        first = "Open a movie (File > Open Sample > Bridgetrack has one)"
        return f"{first}, then choose its cells." if step == 0 else f"{first}; see step 1."
    if not ready:
        return "The cells are being measured; this takes a moment."
    if step == 0:
        return "Ready. Next: tell what happens to some cells, in step 2."
    if step == 1 and answers < ENOUGH:
        return f"{answers} of about {ENOUGH} answers; mix easy and hard ones. Then train."
    if step == 1:
        return f"{answers} answers: enough to train in step 3; more make it better."
    if step == 2 and not answers:
        return "Training needs answers; give some in step 2."
    if step == 2:
        return "Learned. Next: look at the tracks in step 4." if trained else "Press Train."
    return "Correct what is wrong with the keys of step 2; the tracks follow at once."


def _scrolling(panel: QWidget) -> QScrollArea:
    """A panel that scrolls up and down, never sideways."""
    area = QScrollArea()
    area.setWidget(panel)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFrameShape(QScrollArea.Shape.NoFrame)
    return area
