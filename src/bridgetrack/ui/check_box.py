"""How right the tracks are: a sample of their events, answered with one key each."""

from __future__ import annotations

from qtpy.QtWidgets import QVBoxLayout, QWidget

from bridgetrack.evaluation.sample import SampleOptions
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import button, row, text

_TITLES = {"count": "How many", "of": "Out of"}
_WORDS = {"links": "links", "divisions": "divisions", "events": "everything that happens"}
_ABOUT = (
    "Events of the tracks, drawn at random, to be looked at. It ends in a sentence for your "
    "methods section, which is written with every export."
)


class CheckBox(QWidget):
    """What to draw, a button, and what came of it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._questions = panel, panel.session.questions
        box = QVBoxLayout(self)
        box.setContentsMargins(0, 0, 0, 0)
        about = text()
        about.setText(_ABOUT)
        # A folded section is as high as its contents say, which know no width to wrap words at.
        line = about.fontMetrics().lineSpacing()
        about.setMinimumHeight(4 * line)
        box.addWidget(about)
        self.form = SettingsForm(SampleOptions, _TITLES, words=_WORDS)
        self.form.listen(self._refresh)
        box.addWidget(self.form.native)
        self.go = button(
            "Check a sample",
            "Look at events drawn at random: Enter is right, Backspace wrong, U cannot tell",
            self.begin,
            icon="suggest",
        )
        self.back = button(
            "Take back", "Look again at the event that you judged last", self.take_back, icon="undo"
        )
        box.addWidget(row(self.go, self.back))
        self.words = text()
        self.words.setMinimumHeight(4 * line)
        box.addWidget(self.words)
        panel.follow(self._refresh, self._questions.check.changed, panel.session.tracking_changed)
        self._refresh()

    @property
    def options(self) -> SampleOptions:
        """What the form says."""
        return self.form.applied_to(SampleOptions())

    def begin(self) -> None:
        """Draw a sample, or go on with the one that was begun."""
        with self._panel.session.telling():
            self._questions.check_sample(self.options)

    def take_back(self) -> None:
        """Judge the last event once more."""
        with self._panel.session.telling():
            self._questions.take_back()

    def _refresh(self) -> None:
        check = self._questions.check
        sample = check.sample
        begun = sample is not None and bool(sample.left) and check.holds
        begun = begun and sample is not None and self.options.of == sample.options.of
        self.go.setText("Go on" if begun else "Check a sample")
        self.go.setEnabled(self._panel.session.tracking is not None)
        self.back.setEnabled(check.can_take_back)
        self.words.setText(check.words)
