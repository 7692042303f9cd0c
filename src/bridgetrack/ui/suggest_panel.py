"""Estimated accuracy against clicks, with its interval.

The Suggest panel: the question, the answers on keys and buttons, and how far you are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyqtgraph as pg
from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import QCheckBox, QLabel, QListWidget

from bridgetrack.active.records import Point
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import EventRef
from bridgetrack.session.questions import JOB
from bridgetrack.ui.event_looks import LOOKS, short_words
from bridgetrack.ui.finder import shown_diameter
from bridgetrack.ui.overlay import percent
from bridgetrack.ui.question_pictures import TwoFrames, picture_steps
from bridgetrack.ui.shortcuts import Shortcut, shortcut
from bridgetrack.ui.widgets import SPACE, Notice, Panel, Work, button, heading, row, text

_LINE = "#56b4e9"
_LONE = np.array([-0.15, 0.15])
"""Where the band of a single point begins and ends, in clicks."""


class AccuracyPlot(pg.PlotWidget):
    """A line with a band; hidden while there is nothing to plot."""

    def __init__(self) -> None:
        super().__init__(background=None)
        self.setFixedHeight(130)
        self.setMouseEnabled(x=False, y=False)
        self.setMenuEnabled(False)
        self.hideButtons()
        self.setLabel("bottom", "clicks")
        self.setLabel("left", "right events, %")
        self.setToolTip("The line is the estimate; the truth lies in the band with 95 %")
        none = pg.mkPen(None)
        self._low, self._high = self.plot(pen=none), self.plot(pen=none)
        self.addItem(pg.FillBetweenItem(self._low, self._high, brush=pg.mkBrush(86, 180, 233, 70)))
        self._line = self.plot(
            pen=pg.mkPen(_LINE, width=2), symbol="o", symbolSize=5, symbolBrush=_LINE,
            symbolPen=none,
        )  # fmt: skip
        self.hide()

    def show_points(self, points: Sequence[Point]) -> None:
        """Draw a progress curve."""
        rows = [
            (p.clicks, 100 * p.accuracy, 100 * p.low, 100 * p.high)
            for p in points
            if p.accuracy is not None and p.low is not None and p.high is not None
        ]
        table = np.asarray(rows, dtype=np.float64).reshape(-1, 4)
        self.setVisible(len(table) > 0)
        if not len(table):
            return
        clicks, accuracy, low, high = table.T
        wide, of = (clicks, slice(None)) if len(table) > 1 else (clicks[0] + _LONE, [0, 0])
        self._low.setData(wide, low[of])
        self._high.setData(wide, high[of])
        self._line.setData(clicks, accuracy)
        self.setXRange(0, max(float(clicks[-1]), 10.0), padding=0.02)
        self.setYRange(max(float(low.min()) - 5, 0.0), 100, padding=0.08)


PICTURES = "pictures of the question"
"""Name of the background work."""


class SuggestPanel(Panel):
    """The model asks; this panel shows what keys on the image do, and what came of it."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.questions, self.annotator = self.session.questions, self.state.annotator
        self.hint = text()
        self.column.addWidget(self.hint)
        self.go = self._button("suggest", "Suggest next", "suggest")
        self.column.addWidget(self.go)
        self.question = heading("")
        self.question.setWordWrap(True)
        self.column.addWidget(_roomy(self.question, 2))
        self.reason = text()
        self.column.addWidget(_roomy(self.reason, 3))
        self.frames = self._two_frames()
        self.column.addWidget(self.frames)
        self.about = text()
        self.column.addWidget(self.about)
        self.choices = self._choices()
        self.column.addWidget(self.choices)
        self.yes = self._button("accept", "Yes", "yes")
        self.no = self._button("reject", "No", "no")
        self.unsure = self._button("unsure", "Unsure", "unsure")
        self.column.addWidget(row(self.yes, self.no, self.unsure))
        self.other = self._button("turn", "Other frame")
        self.undo = self._button("undo", "Undo", "undo")
        self.leave = button(
            "Stop", "Stop; everything is kept, and you can go on at any time",
            self.annotator.stop_asking, key=shortcut("cancel"), icon="stop",
        )  # fmt: skip
        self.column.addWidget(row(self.other, self.undo, self.leave))
        self.blink = QCheckBox("Blink between the two frames")
        self.blink.setChecked(self.state.question_view.blinking)
        self.blink.setToolTip("Off: T shows the other frame")
        self.blink.toggled.connect(self.state.question_view.set_blinking)
        self.column.addWidget(self.blink)
        self.notice = Notice()
        self.column.addWidget(self.notice)
        self.column.addWidget(heading("How far you are"))
        self.verdict = text()
        self.effort = text()
        self.plot = AccuracyPlot()
        for part in (self.verdict, self.effort, self.plot):
            self.column.addWidget(part)
        self.use = button(
            "Track with what it learned",
            "Use the model learned from your answers so far; Train makes it better still",
            self.questions.use_model,
            icon="go",
        )
        self.column.addWidget(self.use)
        self.work = Work(self, JOB)
        self.column.addWidget(self.work)
        self.column.addStretch(1)
        self._pictured: Suggestion | None = None
        self._later = QTimer(self)
        self._later.setSingleShot(True)
        self._later.timeout.connect(self._on_change)
        for signal in (
            self.questions.changed,
            self.annotator.mode_changed,
            self.session.movie_changed,
            self.session.scene_changed,
            self.session.answers_changed,
        ):
            self.listen(signal, self._soon)
        self.listen(self.session.message, self.notice.say)
        self._on_change()

    # ------------------------------------------------------------------ parts

    def _button(self, name: str, words: str, icon: str = "") -> Any:
        key = shortcut(name)
        return button(words, key.words, self._doer(key), key=key, icon=icon)

    def _doer(self, key: Shortcut) -> Callable[[], None]:
        return lambda: key.act(self.annotator)

    def _two_frames(self) -> TwoFrames:
        made = TwoFrames()
        made.picked.connect(self.state.question_view.go_to)
        self.listen(self.state.viewer.dims.events.current_step, self._on_frame)
        return made

    def _choices(self) -> QListWidget:
        made = QListWidget()
        made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        made.setFixedHeight(88)
        made.setWordWrap(True)
        made.setToolTip("Click what is right, or press its number")
        made.itemClicked.connect(lambda item: self.annotator.choose_answer(made.row(item) + 1))
        return made

    # ------------------------------------------------------------------ state

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """Look for the first questions before they are wanted."""
        super().showEvent(event)
        self.questions.prepare()

    def _soon(self) -> None:
        """Follow once, when the next question is in view."""
        self._later.start(0)

    def _on_frame(self, _: Any = None) -> None:
        self.frames.mark(self.state.canvas.frame)

    def _picture(self, asked: Suggestion | None) -> None:
        """Cut both frames out in the background."""
        source, scene = self.session.movie, self.session.scene
        if asked is self._pictured or source is None or scene is None:
            return
        self._pictured = asked
        self.frames.show_pictures(())
        if asked is not None:
            size = shown_diameter(scene.detections)
            self.session.run(
                PICTURES, lambda: picture_steps(source, asked, size), self.frames.show_pictures
            )

    def _on_change(self) -> None:
        asked = self.questions.current if self.questions.engaged else None
        self.hint.setText(self.annotator.question_hint)
        self.question.setText("" if asked is None else asked.question)
        self.reason.setText("" if asked is None else f"Why this one: {asked.reason}.")
        self.about.setText("" if asked is None else _about(asked))
        words = []
        if asked is not None:
            events = (asked.event, *asked.alternatives)
            for k, (event, belief) in enumerate(zip(events, asked.beliefs, strict=True), 1):
                sign = LOOKS[event.event].sign
                words.append(f"{k}  {sign}  {_words(event, asked)}: {percent(belief)}")
        self.choices.clear()
        self.choices.addItems(words)
        self._picture(asked)
        self._on_frame()
        for part in (self.question, self.reason, self.frames, self.about, self.choices):
            part.setVisible(asked is not None)
        answering = asked is not None and self.annotator.asking
        # The question and the buttons say it all.
        self.hint.setVisible(not answering or bool(self.questions.problem))
        for part in (self.yes, self.no, self.unsure, self.other):
            part.setEnabled(answering)
        self.leave.setEnabled(self.questions.engaged)
        self.undo.setEnabled(self.session.can_undo)
        self.go.setEnabled(self.session.movie is not None)
        self._show_report()

    def _show_report(self) -> None:
        report = self.questions.report
        self.effort.setText(f"{report.effort} {report.accuracy}")
        self.verdict.setText(f"✓ {report.verdict}" if report.stop else report.verdict)
        self.verdict.setStyleSheet("QLabel { font-weight: bold; }" if report.stop else "")
        self.verdict.setVisible(bool(report.verdict))
        self.plot.show_points(report.points)
        self.use.setEnabled(bool(report.points) and not self.session.busy("track"))


def _roomy(label: QLabel, lines: int) -> QLabel:
    """Room for so many lines, so that the buttons below stay under the mouse."""
    label.setMinimumHeight(lines * label.fontMetrics().lineSpacing() + SPACE)
    label.setAlignment(Qt.AlignmentFlag.AlignTop)
    return label


def _about(asked: Suggestion) -> str:
    """What the list tells, as the words before it."""
    frame, label = asked.slot[1]
    if asked.slot[0] == "history":
        return f"Where cell {label} of frame {frame} comes from:"
    return f"What becomes of cell {label} of frame {frame}:"


def _words(event: EventRef, asked: Suggestion) -> str:
    """An event as a predicate of the cell asked about; sisters tell divisions apart."""
    history = asked.slot[0] == "history"
    words = short_words(event, history)
    sisters = [str(c.label) for c in event.targets if c.cell != asked.slot[1]]
    return f"{words}, together with {' and '.join(sisters)}" if history and sisters else words
