"""Step 4: the tracks, how accurate they are, and files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QCheckBox, QDockWidget

from bridgetrack.evaluation.sample import SampleOptions
from bridgetrack.hypotheses.events import kind_words
from bridgetrack.pipeline.summary import unclear_kinds, unclear_words
from bridgetrack.session.results import summary
from bridgetrack.ui.export_box import ExportBox
from bridgetrack.ui.looks import ColourBox
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import Column, button, row, text

EACH = 30
"""Events that are drawn each time."""


class TrackPanel(Panel):
    """Shows what came out, as soon as it is opened."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.summary = self.add(text(lines=3))
        self.unclear = self.add(UnclearBox(self))
        self.colour = ColourBox(self.state.looks)
        self.explore = button(
            "Table and plots…", "All tracks below the image, with family trees and plots",
            self.open_explorer,
        )  # fmt: skip
        self.add(row(self.colour, self.explore))
        self.check = self.add(CheckBox(self))
        self.export = self.add(ExportBox(self))
        self.divide = self.add(QCheckBox("Cells divide"))
        self.divide.setToolTip("Where they do not in this movie, no division is proposed")
        self.divide.toggled.connect(self._on_divide)
        self.column.addStretch(1)
        self.listen(self.state.looks.colour_changed, self.colour.follow)
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)
        self.follow(self._show_kinds, self.session.kinds_changed, self.session.movie_changed)

    def _on_divide(self, ticked: bool) -> None:
        self.session.set_kinds(replace(self.session.kinds, divisions=ticked))

    def _show_kinds(self) -> None:
        """Show what can happen; also after what was ticked was refused."""
        with QSignalBlocker(self.divide):
            self.divide.setChecked(self.session.kinds.divisions)

    def show_tracks(self) -> None:
        """Show the tracks and all that follow; find them where they were cancelled."""
        session = self.session
        self.state.results.show()
        if session.tracking is None and session.scene is not None and not session.busy("track"):
            session.track()

    def open_explorer(self) -> None:
        """Open the panel with all tracks below the image, or bring it to the front."""
        from bridgetrack.ui.explore_panel import NAME, ExplorePanel

        for panel in self.window().findChildren(ExplorePanel):
            dock: Any = panel.parentWidget()
            while dock is not None and not isinstance(dock, QDockWidget):
                dock = dock.parentWidget()
            if dock is not None:
                dock.show()
                dock.raise_()
                return
        viewer = self.state.viewer
        viewer.window.add_dock_widget(ExplorePanel(viewer), name=NAME, area="bottom")

    def _refresh(self) -> None:
        tracking = self.session.tracking
        self.unclear.refresh()
        if tracking is not None:
            self.summary.setText(summary(tracking.tracks))
            self.colour.offer(tracking.tracks)
        elif self.session.scene is None:
            self.summary.setText("Choose a movie with its cells first; see the step Cells.")
        else:
            self.summary.setText("The movie is being tracked.")


class UnclearBox(Column):
    """Asks whether there are any of an event that is nowhere clear; hidden where all are clear."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._session = panel.session
        self.words = self.add(text())
        self.none = self.add(
            button(
                "There are none", "Leave all of them out, and track the movie again",
                self._leave_out,
            )
        )  # fmt: skip
        self._kind = ""

    def refresh(self) -> None:
        """Ask about the first unclear kind of the present tracks."""
        tracking = self._session.tracking
        found = {} if tracking is None else unclear_kinds(tracking)
        for kind, why in list(found.items())[:1]:
            self._kind = kind_words(kind)
            self.words.setText(f"{unclear_words(kind, why)}. Are there any in this movie?")
        self.setVisible(bool(found))

    def _leave_out(self) -> None:
        self._session.set_kinds(replace(self._session.kinds, **{self._kind: False}))


class CheckBox(Column):
    """A button that draws a sample of the tracks to look at, and what came of it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._questions = panel, panel.session.questions
        self.go = self.add(button(
            "Check accuracy",
            "Look at links drawn at random: Enter is right, Backspace wrong, U cannot tell, Z takes"
            " back. It ends in a sentence for your methods section, written with every export",
            self.begin,
        ))  # fmt: skip
        self.words = self.add(text())
        panel.follow(self._refresh, self._questions.check.changed, panel.session.tracking_changed)

    def begin(self) -> None:
        """Draw a sample, go on with the one that was begun, or look at more."""
        check, options = self._questions.check, SampleOptions(EACH)
        if check.sample is not None and check.holds:
            more = 0 if check.sample.left else EACH
            options = replace(check.sample.options, count=len(check.sample.events) + more)
        with self._panel.session.telling():
            self._questions.check_sample(options)

    def _refresh(self) -> None:
        check = self._questions.check
        begun = check.sample is not None and check.holds
        words = "Check more" if check.finished else "Go on checking"
        self.go.setText(words if begun else "Check accuracy")
        self.go.setEnabled(self._panel.session.tracking is not None)
        self.words.setText(check.words)
        self.words.setVisible(bool(check.words))
