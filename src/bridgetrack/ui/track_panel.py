"""Step 4: the tracks, their doubtful events, files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from qtpy.QtCore import Qt, QTimer
from qtpy.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QDockWidget,
    QScrollArea,
    QTableWidgetItem,
    QWidget,
)

from bridgetrack.evaluation.sample import SampleOptions
from bridgetrack.hypotheses.events import Event, EventKinds, kind_words
from bridgetrack.pipeline.summary import unclear_kinds, unclear_words
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.session.proposals import proposals
from bridgetrack.session.results import doubtful_words, least_certain, summary
from bridgetrack.ui.background import EventLoopQueue
from bridgetrack.ui.export_box import BatchBox, ExportBox
from bridgetrack.ui.forms import SettingsForm
from bridgetrack.ui.looks import LOOKS, ColourBox
from bridgetrack.ui.overlay import percent
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.widgets import (
    DIM,
    Column,
    KeyedTable,
    button,
    dress_table,
    folded,
    heading,
    row,
    text,
)

_KINDS = {
    "divisions": "Cells divide",
    "appearances": "Cells come into view",
    "disappearances": "Cells leave or die",
    "gaps": "Cells are missed in a frame or two",
    "splits": "Cells are cut in two",
    "merges": "Two cells are drawn as one",
    "specks": "Some masks are no cells",
}


_LAID_OUT = 50
"""Milliseconds after which new words have their place."""


class TrackPanel(Panel):
    """Tracks the movie and shows what came out."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.result = self.state.result_layer
        self._queue = EventLoopQueue()
        self.destroyed.connect(self._queue.stop)
        self.go = self.add(
            button(
                "Track the movie",
                "Find all tracks with the present model",
                self.track,
                icon="go",
                hot="Alt+K",
            )
        )
        self.work = self.add(Work(self, "track", "correct"))
        self.summary = self.add(text(lines=3))
        self.unclear = self.add(UnclearBox(self))
        self.colour = self.add(ColourBox(self.state.looks))
        self.listen(self.state.looks.colour_changed, self.colour.follow)
        self.cells = QCheckBox("Colour the cells, too")
        self.cells.setToolTip("Show the masks in the colours of their tracks, over the cells")
        self.cells.setChecked(True)
        self.cells.toggled.connect(self._on_cells)
        self.column.addWidget(self.cells)
        self.explore = button(
            "Table and plots…", "All tracks below the image, with family trees and plots",
            self.open_explorer, icon="models",
        )  # fmt: skip
        self.export_now = button(
            "Export…", "Write the tracks as CSV tables, or in the formats ticked under Export",
            self._export, icon="export",
        )  # fmt: skip
        self.add(row(self.explore, self.export_now))
        self.add(heading("Look at these first"))
        self.left = self.add(text(style=DIM))
        self.doubts = self._table()
        self.column.addWidget(self.doubts, 1)
        self.check = CheckBox(self)
        self.add(folded("How accurate is it?", self.check))
        self.kinds = SettingsForm(EventKinds, _KINDS)
        self.kinds.listen(self._on_kinds)
        self.add(folded("What can happen", self.kinds.native))
        self.export = ExportBox(self)
        self.exporting = self.add(folded("Export", self.export))
        self.export.told.connect(lambda: QTimer.singleShot(_LAID_OUT, self._reveal_export))
        self.batch = BatchBox(self)
        self.add(folded("Many movies", self.batch))
        self._rows: list[tuple[int, bool]] = []  # cells, and whether their past is in question
        self._listed: dict[tuple[int, bool], int] = {}
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)
        self.follow(self._show_kinds, self.session.kinds_changed, self.session.movie_changed)
        self.follow(self._mark_selected, self.state.annotator.changed)
        self.listen(self.state.annotator.stepped, self._step)

    # ------------------------------------------------------------------ intents

    def _on_kinds(self) -> None:
        self.session.set_kinds(self.kinds.applied_to(EventKinds()))

    def _show_kinds(self) -> None:
        """Show what can happen; also after what was ticked was refused."""
        self.kinds.show(self.session.kinds)

    def track(self) -> None:
        """Show the tracks; they are ready unless the movie is being measured."""
        self.result.show()
        self._on_cells(self.cells.isChecked())
        if self.session.tracking is not None and not self.session.busy("track"):
            self._refresh()
        else:
            self.session.track()

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

    def _export(self) -> None:
        """Ask for a folder, write there, and show what came of it."""
        if not self.result.wanted:
            self.track()  # what is written is seen
        self._show_export()
        self.exporting.expand(animate=False)
        self.export.ask()

    def _reveal_export(self) -> None:
        """Scroll to what came of an export, once there is room for it."""
        area: QWidget | None = self
        while area is not None and not isinstance(area, QScrollArea):
            area = area.parentWidget()
        if area is not None:
            area.ensureWidgetVisible(self.export.words)

    def _on_cells(self, on: bool) -> None:
        if on and self.result.wanted:
            self.state.coloured_cells.show()
        elif not on:
            self.state.coloured_cells.hide()

    def _jump(self, k: int, _: int = 0) -> None:
        """Select what a row of the list is about."""
        if not 0 <= k < len(self._rows):
            return
        self.state.canvas.activate()
        self.state.annotator.set_mode(Mode.REVIEW)
        self.state.annotator.select(*self._rows[k])

    def _step(self, by: int) -> None:
        """Up and Down on the image."""
        if self.isVisible():
            self.doubts.step(by)

    # ------------------------------------------------------------------ state

    def _table(self) -> KeyedTable:
        table = KeyedTable(self.state.annotator)
        tip = "Click one, or press Down, to see it; then Enter for yes, Backspace for no"
        dress_table(
            table, ("Frame", "Event", "Certain"), (56, 0, 64), tip, lambda k, _: self._jump(k)
        )
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setMinimumHeight(120)
        return table

    def _mark_selected(self) -> None:
        """Highlight the row of the cell that keys are about; none where it is not listed."""
        annotator = self.state.annotator
        self.doubts.mark(self._listed.get((annotator.outlined, annotator.history), -1))

    def _refresh(self) -> None:
        tracking = self.session.tracking
        ready = self.session.scene is not None
        self.go.setEnabled(ready)
        self._queue.stop()
        if tracking is None or not self.result.wanted:
            words = "Press the button to see the tracks."
            if not ready:
                words = "Choose a movie with its cells first; see the step Cells."
            self.summary.setText(words)
            self.doubts.setRowCount(0)
            self.left.setText("")
            self._rows, self._listed = [], {}
            self.export_now.setEnabled(tracking is not None)
            self.unclear.show_for(None)
            self.export.set_tracking(None)
            return
        self.summary.setText(summary(tracking.tracks))
        self.unclear.show_for(tracking)
        self.colour.offer(tracking.tracks)
        self._queue.begin(self._list_doubts, self._show_export)

    def _show_export(self) -> None:
        self.export_now.setEnabled(self.session.tracking is not None)
        self.export.set_tracking(self.session.tracking)

    def _list_doubts(self) -> None:
        tracking = self.session.tracking
        if tracking is None:
            return
        found = least_certain(tracking.tracks)
        self.left.setText(doubtful_words(tracking.tracks, len(found)))
        self._rows = []
        self.doubts.setRowCount(len(found))
        columns = (found["sources"], found["targets"], found["event"])
        for k, (sources, targets, event) in enumerate(zip(*columns, strict=True)):
            first = int((sources or targets)[0])
            # What has no source is a question about a cell's past.
            self._rows.append((first, not sources))
            frame = int(tracking.scene.detections.frame[first])
            look = LOOKS[Event.from_key(str(event))]
            # The same number as beside the cell on the image.
            best = proposals(tracking, first, history=not sources, limit=1)
            sure = percent(best[0].confidence) if best else ""
            cells = (str(frame), f"{look.sign} {look.name}", sure)
            for column, value in enumerate(cells):
                item = QTableWidgetItem(value)
                if column != 1:
                    item.setTextAlignment(
                        Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
                    )
                self.doubts.setItem(k, column, item)
        self._listed = {key: k for k, key in reversed(list(enumerate(self._rows)))}
        self._mark_selected()


class UnclearBox(Column):
    """One sentence with a button; hidden where every kind is clear."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._session = panel.session
        self._kind: Event | None = None
        self.words = self.add(text())
        self.none = self.add(
            button(
                "There are none",
                "Leave all of them out, and track the movie again",
                self._leave_out,
                hot="Alt+N",
            )
        )
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


_TITLES = {"count": "How many", "of": "Out of"}
_WORDS = {"links": "links", "divisions": "divisions", "events": "everything that happens"}
_ABOUT = (
    "Events of the tracks, drawn at random, to be looked at. It ends in a sentence for your "
    "methods section, which is written with every export."
)


class CheckBox(Column):
    """What to draw, a button, and what came of it."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._questions = panel, panel.session.questions
        self.add(text(_ABOUT, lines=4))
        self.form = SettingsForm(SampleOptions, _TITLES, words=_WORDS)
        self.form.listen(self._refresh)
        self.add(self.form.native)
        self.go = button(
            "Check a sample",
            "Look at events drawn at random: Enter is right, Backspace wrong, U cannot tell",
            self.begin,
            icon="suggest",
        )
        self.back = button(
            "Take back", "Look again at the event that you judged last", self.take_back, icon="undo"
        )
        self.add(row(self.go, self.back))
        self.words = self.add(text(lines=4))
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
