"""Step 4: the tracks, how accurate they are, and files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qtpy.QtWidgets import QDockWidget, QWidget

from bridgetrack.evaluation.sample import SampleOptions
from bridgetrack.hypotheses.events import Event, EventKinds, kind_words
from bridgetrack.pipeline.summary import unclear_kinds, unclear_words
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.session.results import summary
from bridgetrack.ui.export_box import ExportBox
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.looks import ColourBox
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import Column, button, folded, heading, row, text

_KINDS = {
    "divisions": "Cells divide",
    "appearances": "Cells come into view",
    "disappearances": "Cells leave or die",
    "gaps": "Cells are missed in a frame or two",
    "splits": "Cells are cut in two",
    "merges": "Two cells are drawn as one",
    "specks": "Some masks are no cells",
}


class TrackPanel(Panel):
    """Shows what came out, as soon as it is opened."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.result = self.state.result_layer
        self.summary = self.add(text(lines=3))
        self.unclear = self.add(UnclearBox(self))
        self.colour = ColourBox(self.state.looks)
        self.explore = button(
            "Table and plots…", "All tracks below the image, with family trees and plots",
            self.open_explorer, icon="models",
        )  # fmt: skip
        self.add(row(self.colour, self.explore))
        self.check = CheckBox(self)
        self.add(self.check)
        self.export = ExportBox(self)
        self.add(self.export)
        self.kinds = SettingsForm(EventKinds, _KINDS)
        self.kinds.listen(self._on_kinds)
        self.more = self.add(folded("More", heading("What can happen"), self.kinds.native))
        self.column.addStretch(1)
        self.listen(self.state.looks.colour_changed, self.colour.follow)
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)
        self.follow(self._show_kinds, self.session.kinds_changed, self.session.movie_changed)

    def _on_kinds(self) -> None:
        self.session.set_kinds(self.kinds.applied_to(EventKinds()))

    def _show_kinds(self) -> None:
        """Show what can happen; also after what was ticked was refused."""
        self.kinds.show(self.session.kinds)

    def show_tracks(self) -> None:
        """Show the tracks and all that follow; find them where they were cancelled."""
        session = self.session
        self.result.show()
        self.state.coloured_cells.show()
        if session.tracking is None and session.scene is not None and not session.busy("track"):
            session.track()

    def open_explorer(self) -> None:
        """Open the panel with all tracks below the image, or bring it to the front."""
        from bridgetrack.ui.explore_panel import NAME, ExplorePanel

        window: QWidget = self
        while window.parentWidget() is not None:
            window = window.parentWidget()
        for panel in window.findChildren(ExplorePanel):
            dock = panel.parentWidget()
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
        self.unclear.show_for(tracking)
        if tracking is not None:
            self.summary.setText(summary(tracking.tracks))
            self.colour.offer(tracking.tracks)
        elif self.session.scene is None:
            self.summary.setText("Choose a movie with its cells first; see the step Cells.")
        else:
            self.summary.setText("The movie is being tracked.")


class UnclearBox(Column):
    """One sentence with a button; hidden where every kind is clear."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._session = panel.session
        self._kind: Event | None = None
        self.words = self.add(text())
        self.none = self.add(
            button(
                "There are none", "Leave all of them out, and track the movie again",
                self._leave_out,
            )
        )  # fmt: skip
        self.hide()

    def show_for(self, tracking: Tracking | None) -> None:
        """Speak of the first unclear kind of a tracking; of nothing where None."""
        found = {} if tracking is None else unclear_kinds(tracking)
        self._kind = next(iter(found), None)
        if self._kind is not None:
            words = unclear_words(self._kind, found[self._kind])
            self.words.setText(f"{words}. Are there any in this movie?")
        self.setVisible(self._kind is not None)

    def _leave_out(self) -> None:
        if self._kind is not None:
            kinds = replace(self._session.kinds, **{kind_words(self._kind): False})
            self._session.set_kinds(kinds)


EACH = 30
"""Events that are drawn each time."""


class CheckBox(Column):
    """A button, and what came of it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._questions = panel, panel.session.questions
        self.go = self.add(button(
            "Check accuracy",
            "Look at links drawn at random: Enter is right, Backspace wrong, U cannot tell, Z takes"
            " back. It ends in a sentence for your methods section, written with every export",
            self.begin, icon="suggest",
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
