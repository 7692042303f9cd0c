"""The Suggest panel: the question, the answers on keys and buttons, and how far you are."""

from __future__ import annotations

from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import QListWidget
from superqt.utils import qdebounced

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Name
from bridgetrack.session.check import SampleQuestion
from bridgetrack.session.names import choice_words, question_words
from bridgetrack.session.proposals import shown_beliefs
from bridgetrack.session.questions import JOB
from bridgetrack.ui.looks import LOOKS
from bridgetrack.ui.overlay import percent
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.picking import shown_diameter
from bridgetrack.ui.plots import AccuracyPlot
from bridgetrack.ui.question_pictures import TwoFrames, picture_steps
from bridgetrack.ui.shortcuts import shortcut
from bridgetrack.ui.widgets import button, heading, row, text

_PICTURES = "pictures of the question"
"""Name of the work that cuts them out."""


class SuggestPanel(Panel):
    """The model asks; this panel shows what keys on the image do, and what came of it."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.questions, self.annotator = self.session.questions, self.state.annotator
        self.hint = self.add(text())
        # Room for the longest, so that the buttons below stay under the mouse.
        self.question = self.add(heading("", lines=2))
        self.reason = self.add(text(lines=3))
        self.frames = self.add(self._two_frames())
        self.about = self.add(text(lines=1))
        self.choices = self.add(self._choices())
        self.yes = self.key_button("accept", "Yes", "yes")
        self.no = self.key_button("reject", "No", "no")
        self.unsure = self.key_button("unsure", "Unsure", "unsure")
        self.add(row(self.yes, self.no, self.unsure))
        self.other = self.key_button("turn", "Other picture")
        self.undo = self.key_button("undo", "Undo", "undo")
        self.leave = button(
            "Stop", "Stop; everything is kept, and you can go on at any time",
            self.annotator.stop_asking, key=shortcut("cancel"), icon="stop",
        )  # fmt: skip
        self.add(row(self.other, self.undo, self.leave))
        # What changes with an answer is below the buttons that answer, which stay where they are.
        self.progress = self.add(heading("How far you are"))
        self.verdict = text()
        self.effort = text()
        self.plot = AccuracyPlot()
        for part in (self.verdict, self.effort, self.plot):
            self.column.addWidget(part)
        check = self.questions.check
        self.work = self.add(Work(self, JOB, beside=lambda: check.running))
        self.tracking = self.add(Work(self, "track", cancel=False))
        self.column.addStretch(1)
        self._pictured: tuple[Suggestion | None, tuple[str, ...]] = None, ()
        session = self.session
        # Once, when the next question is in view.
        self.follow(
            qdebounced(self._refresh, timeout=0, parent=self),
            self.questions.changed, self.annotator.mode_changed, session.movie_changed,
            session.scene_changed, session.answers_changed, session.tracking_changed,
        )  # fmt: skip
        self._refresh()

    # ------------------------------------------------------------------ parts

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

    def _on_frame(self, _: Any = None) -> None:
        self.frames.mark(self.state.canvas.frame)

    def _picture(self, asked: Suggestion | None) -> None:
        """Cut both frames out in the background; anew where cells are renamed."""
        source, scene, names = self.session.movie, self.session.scene, self.session.names
        called = _called(asked, names)
        before, names_before = self._pictured
        if source is None or scene is None or (asked is before and called == names_before):
            return
        self._pictured = asked, called
        if asked is not before:
            self.frames.show_pictures(())
        if asked is not None:
            size = shown_diameter(scene.detections)
            self.session.run(
                _PICTURES,
                lambda: picture_steps(source, asked, size, names),
                self.frames.show_pictures,
            )

    def _refresh(self) -> None:
        asked = self.questions.current if self.questions.engaged else None
        names = self.session.names
        self.hint.setText(self.annotator.question_hint)
        self.question.setText("" if asked is None else question_words(asked, names))
        self.reason.setText("" if asked is None else _reason(asked))
        self.about.setText("" if asked is None else _about(asked, names))
        words = []
        if asked is not None:
            events = (asked.event, *asked.alternatives)
            beliefs = shown_beliefs(asked)
            for k, (event, belief) in enumerate(zip(events, beliefs, strict=True), 1):
                sign = LOOKS[event.event].sign
                words.append(f"{k}  {sign}  {choice_words(event, asked, names)}: {percent(belief)}")
        self.choices.clear()
        self.choices.addItems(words)
        self._picture(asked)
        self._on_frame()
        for part in (self.question, self.reason, self.frames):
            part.setVisible(asked is not None)
        for part in (self.about, self.choices):
            # What the model thinks would sway whoever checks it.
            part.setVisible(asked is not None and not isinstance(asked, SampleQuestion))
        answering = asked is not None and self.annotator.asking
        # The question and the buttons say it all.
        self.hint.setVisible(not answering or bool(self.questions.problem))
        for part in (self.yes, self.no, self.unsure, self.other):
            part.setEnabled(answering)
        self.leave.setEnabled(self.questions.engaged)
        check = self.questions.check
        self.undo.setEnabled(check.can_take_back if check.running else self.session.can_undo)
        self._show_report()

    def _show_report(self) -> None:
        checking = self.questions.check.running
        for part in (self.progress, self.effort, self.plot):
            part.setVisible(not checking)
        if checking:
            for part in (self.verdict, self.work):
                part.hide()
            return
        report = self.questions.report
        self.effort.setText(f"{report.effort} {report.accuracy}")
        self.verdict.setText(f"✓ {report.verdict}" if report.stop else report.verdict)
        self.verdict.setStyleSheet("QLabel { font-weight: bold; }" if report.stop else "")
        self.verdict.setVisible(bool(report.verdict))
        self.plot.show_points(report.points)


def _reason(asked: Suggestion) -> str:
    """Why it is asked."""
    if isinstance(asked, SampleQuestion):
        return f"{asked.reason[0].upper()}{asked.reason[1:]}."
    return f"Why this one: {asked.reason}."


def _called(asked: Suggestion | None, names: Name) -> tuple[str, ...]:
    """What the cells in the pictures of a question are called."""
    if asked is None:
        return ()
    return tuple(names(cell) for e in (asked.event, *asked.alternatives) for cell in e.cells)


def _about(asked: Suggestion, name: Name) -> str:
    """What the list tells, as the words before it."""
    called, frame = name(asked.asked), asked.slot[1][0]
    if asked.slot[0] == "history":
        return f"Where {called} of frame {frame} comes from:"
    return f"What becomes of {called} of frame {frame}:"
