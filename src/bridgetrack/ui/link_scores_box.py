"""Scores that another program gave to links, for the movie that is open."""

from __future__ import annotations

from pathlib import Path

from magicgui.widgets import FileEdit
from qtpy.QtWidgets import QFormLayout, QVBoxLayout, QWidget

from bridgetrack.session.link_scores import JOB
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.widgets import SPACE, button, row, text

_ABOUT = (
    "How probable links are by another program, such as Trackastra: a CSV table with frame, "
    "source, target and score (0 to 1), or a GEFF store (choose a file in it). Training learns "
    "what they are worth."
)


class LinkScoresBox(QWidget):
    """A file, and whether it is in use."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._given = panel, panel.session.link_scores
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        box.setSpacing(SPACE)
        about = text()
        about.setText(_ABOUT)
        # A folded section is as high as its contents say, which know no width to wrap words at.
        about.setMinimumHeight(5 * about.fontMetrics().lineSpacing())
        box.addWidget(about)
        self.file = FileEdit(nullable=True, name="scores")
        self.file.choose_btn.text = "…"  # the room is for the path
        form = QFormLayout()
        form.addRow("File", self.file.native)
        box.addLayout(form)
        self.use = button(
            "Use these scores", "Track with them; your answers stay", self._use, icon="yes"
        )
        self.drop = button(
            "Do without", "Track without scores of others", self._given.drop, icon="delete"
        )
        box.addWidget(row(self.use, self.drop))
        self.work = Work(panel, JOB, cancel=False)
        box.addWidget(self.work)
        self.words = text(lines=2)
        box.addWidget(self.words)
        panel.follow(self._refresh, self._given.changed, panel.session.movie_changed)

    def _use(self) -> None:
        value = self.file.value
        if value is None or str(value) in ("", "."):
            self.words.setText("Choose a file first, by the button with the dots.")
            return
        self._given.use(Path(str(value)))

    def _refresh(self) -> None:
        given, there = self._given, self._panel.session.movie is not None
        self.use.setEnabled(there)
        self.drop.setEnabled(given.path is not None)
        if given.path is not None:
            self.file.value = given.path
        none = "" if there else "Choose a movie with its cells first."
        self.words.setText(f"✕ {given.problem}" if given.problem else given.words or none)
