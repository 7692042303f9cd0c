"""Step 4: the tracks, their accuracy, and export."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from qtpy.QtCore import QSignalBlocker, Qt
from qtpy.QtWidgets import QCheckBox, QDockWidget, QFileDialog, QListWidget, QListWidgetItem

from bridgetrack.errors import plural
from bridgetrack.hypotheses.events import kind_words
from bridgetrack.io.results import FORMATS
from bridgetrack.pipeline.batch import TABLE, batch_steps
from bridgetrack.pipeline.inputs import RunInputs, RunOptions
from bridgetrack.pipeline.report import count_events, count_words, unclear_kinds, unclear_words
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.session.background import Factory, Report
from bridgetrack.tracks.colours import colourings
from bridgetrack.ui.looks import ColourBox
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import Column, bring_into_view, button, row, tell, text

EACH = 30
"""Number of events drawn each time."""


class TrackPanel(Panel):
    """Shows the result as soon as it is opened."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.summary = self.add(text(lines=3))
        self.unclear = self.add(UnclearBox(self))
        self.colour = ColourBox(self.state.looks)
        self.explore = button(
            "Table and plots…", "All tracks below the image, with lineage trees and plots",
            self.open_explorer,
        )  # fmt: skip
        self.check = AccuracyCheck(self)
        self.add(self.colour)
        self.add(row(self.explore, self.check.go))
        self.add(self.check)
        self.export = self.add(ExportBox(self))
        self.divide = self.add(QCheckBox("Cells divide"))
        self.divide.setToolTip("Untick it if your cells do not divide")
        self.divide.toggled.connect(self._on_divide)
        self.column.addStretch(1)
        self.follow(self._refresh, self.session.tracking_changed, self.session.movie_changed)
        self.follow(self._show_kinds, self.session.kinds_changed, self.session.movie_changed)

    def _on_divide(self, ticked: bool) -> None:
        self.session.settings.set_kinds(replace(self.session.kinds, divisions=ticked))

    def _show_kinds(self) -> None:
        """Show the kinds of events that occur; also after a change was refused."""
        with QSignalBlocker(self.divide):
            self.divide.setChecked(self.session.kinds.divisions)

    def show_tracks(self) -> None:
        """Show the tracks and all later ones; compute them if that was cancelled."""
        session = self.session
        self.state.results.show()
        if session.tracking is None and session.scene is not None and not session.busy("track"):
            session.tracker.track()

    def open_explorer(self) -> None:
        """Open the panel with all tracks below the image, or bring it to the front."""
        from bridgetrack.ui.explore_panel import NAME, ExplorePanel

        viewer, window = self.state.viewer, self.viewer_window
        for dock in window.findChildren(QDockWidget):
            if dock.findChild(ExplorePanel) is not None:
                dock.show()
                dock.raise_()
                return
        # Beside the lists of layers, which would leave plots too little height on a laptop.
        window.setCorner(Qt.Corner.BottomLeftCorner, Qt.DockWidgetArea.LeftDockWidgetArea)
        dock = viewer.window.add_dock_widget(ExplorePanel(viewer), name=NAME, area="bottom")
        window.resizeDocks([dock], [dock.sizeHint().height()], Qt.Orientation.Vertical)

    def _refresh(self) -> None:
        tracking = self.session.tracking
        self.unclear.refresh()
        if tracking is not None:
            self.summary.setText(f"{count_words(count_events(tracking.tracks))}.")
            self.colour.offer(colourings(tracking.tracks))
        else:
            self.summary.setText("")  # the head says what is missing


class UnclearBox(Column):
    """Asks whether a kind of event without any clear case occurs; hidden if all kinds are clear."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._session = panel.session
        self.words = self.add(text())
        self.none = self.add(
            button(
                "There are none", "Exclude all of them, and track the movie again",
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
        self._session.settings.set_kinds(replace(self._session.kinds, **{self._kind: False}))


class AccuracyCheck(Column):
    """A button that draws a sample of the tracks to judge, and the outcome."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel, self._questions = panel, panel.session.questions
        self.go = button(
            "Check accuracy",
            "Judge links drawn at random: Enter means right, Backspace wrong, U cannot tell, Z "
            "undoes. The result is a sentence for your methods section, added to every export",
            self.begin,
        )
        self.words = self.add(text())
        panel.follow(self._refresh, self._questions.check.changed, panel.session.tracking_changed)

    def begin(self) -> None:
        """Draw a sample, continue the one that was begun, or judge more."""
        with self._panel.session.telling():
            self._questions.check_sample(EACH)

    def _refresh(self) -> None:
        check = self._questions.check
        begun = check.sample is not None and check.holds
        words = "Check more" if check.finished else "Go on checking"
        self.go.setText(words if begun else "Check accuracy")
        self.go.setEnabled(self._panel.session.tracking is not None)
        tell(self.words, check.words)


class FormatList(QListWidget):
    """A tick box for each format; emits `itemChanged` with the changed line."""

    def __init__(self) -> None:
        super().__init__()
        self.setToolTip("What Export and Many movies… write")
        # In the dark theme an empty box is hardly seen.
        self.setStyleSheet("QListWidget::indicator:unchecked { border: 1px solid gray; }")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        for name, form in FORMATS.items():
            item = QListWidgetItem(f"{name.upper() if len(name) < 5 else name}: {form.words}", self)
            item.setToolTip(item.text())
            item.setFlags(Qt.ItemFlag.ItemIsEnabled)  # a click anywhere on a line ticks it
        self.itemClicked.connect(self._change)
        self.tick(())
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def showEvent(self, event: Any) -> None:  # noqa: N802
        """Set the height to that of its lines in the style of the window."""
        super().showEvent(event)
        self.setFixedHeight(self.sizeHintForRow(0) * len(FORMATS) + 2 * self.frameWidth() + 2)

    def _change(self, item: QListWidgetItem) -> None:
        on = item.checkState() == Qt.CheckState.Checked
        item.setCheckState(Qt.CheckState.Unchecked if on else Qt.CheckState.Checked)

    @property
    def ticked(self) -> tuple[str, ...]:
        """The formats that are ticked."""
        ticks = (self.item(k).checkState() for k in range(self.count()))
        on = Qt.CheckState.Checked
        return tuple(name for name, tick in zip(FORMATS, ticks, strict=True) if tick == on)

    def tick(self, formats: Collection[str]) -> None:
        """Tick these and no others; no signal is emitted."""
        with QSignalBlocker(self):
            for k, name in enumerate(FORMATS):
                on = name in formats
                self.item(k).setCheckState(Qt.CheckState.Checked if on else Qt.CheckState.Unchecked)


_BESIDE = (
    "Write the tracks in these formats, to a folder NAME_tracks {}; an earlier export there is "
    "replaced, unless something in it was changed"
)


def results_of(path: Path) -> Path:
    """The folder for the results of a movie, or of a folder of movies: beside it."""
    return path.with_name(f"{path.name if path.is_dir() else path.stem}_tracks")


class ExportBox(Column):
    """The formats, a button for the open movie and one for many, and their outcome."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel
        self._written: Tracking | None = None  # what the words below refer to
        self.formats = self.add(FormatList())
        self.save = button("Export", _BESIDE.format("beside the movie"), self.export)
        self.elsewhere = button("Export to…", _BESIDE.format("where you choose"), self.ask)
        self.many = button(
            "Many movies…",
            "Track every movie of a folder with the model in use, and write these formats. "
            "NAME_labels, NAME_masks or NAME_cells are the masks of NAME; others are segmented. "
            "The results are beside the folder",
            self.ask_many,
        )  # fmt: skip
        self.add(row(self.save, self.elsewhere, self.many))
        self.replaced, self.words = self.add(text()), self.add(text())
        kept = panel.session.settings
        self.formats.tick(kept.present.formats)
        self.formats.itemChanged.connect(lambda _: self._on_tick())
        panel.listen(kept.restored, lambda: self.formats.tick(kept.present.formats))
        panel.follow(self._refresh, panel.session.tracking_changed, panel.session.movie_changed)

    def _on_tick(self) -> None:
        self._panel.session.settings.write(formats=list(self.formats.ticked))
        self._refresh()

    def _refresh(self) -> None:
        tracking, movie = self._panel.session.tracking, self._panel.session.movie
        for each in (self.save, self.elsewhere):
            each.setEnabled(tracking is not None and bool(self.formats.ticked))
        if self._written is not None and self._written is not tracking:
            self._written = None
            self.words.clear()
        folder = None if movie is None or movie.path is None else results_of(movie.path)
        replaced = folder is not None and folder.exists() and self._written is None
        tell(self.replaced, f"Export replaces the earlier result in {folder}." if replaced else "")

    def export(self) -> None:
        """Write beside the movie; if it has no file, ask where to."""
        movie = self._panel.session.movie
        if movie is None or movie.path is None:
            self.ask()
        else:
            self.write(results_of(movie.path))

    def ask(self) -> None:
        """Ask where to write."""
        movie, start = self._panel.session.movie, self._panel.beside_movie()
        where = QFileDialog.getExistingDirectory(self, "Where to make the folder", start)
        if where and movie is not None:
            self.write(Path(where) / results_of(movie.path or Path(movie.name)).name)

    def write(self, folder: Path) -> None:
        """Write the chosen formats in the background, with all answers given so far."""
        session = self._panel.session
        if session.tracking is None:
            return
        formats = self.formats.ticked
        steps = session.tracker.exported(folder, formats)

        def done(notes: tuple[str, ...]) -> None:
            more = "".join(f"\n{n}" for n in notes)
            self.words.setText(f"Written to {folder.absolute()}: {', '.join(formats)}.{more}")
            self._written = session.tracking
            self._refresh()
            bring_into_view(self.words)

        # Continues if another movie is chosen meanwhile.
        self._run("export", "Writing the results", lambda: steps, done)

    def _run(self, job: str, what: str, work: Factory, done: Report) -> None:
        doer = self._panel.state.elsewhere
        if doer.busy(job):
            self.words.setText(f"{what} is still running; try again when it has finished.")
            return
        self.words.clear()
        doer.run(job, work, done, what=what)

    def ask_many(self) -> None:
        """Ask for a folder and track its movies; finished ones are kept if it is cancelled."""
        session, start = self._panel.session, self._panel.beside_movie()
        movies = QFileDialog.getExistingDirectory(self, "Folder of the movies", start)
        if not movies:
            return
        folder, out = Path(movies), results_of(Path(movies))
        model, without = session.model, session.kinds.words
        options = RunOptions(without=without, format=self.formats.ticked)
        given = RunInputs(folder, model=model, options=options, command="batch")
        work = partial(batch_steps, folder, out, given)
        self._run("batch", "Tracking many movies", work, lambda rows: self._show(rows, out))

    def _show(self, table: pd.DataFrame, out: Path) -> None:
        rows: list[Any] = list(table.itertuples())
        failed = [f"{row.movie} failed: {row.problem}" for row in rows if row.problem]
        n, where = len(rows) - len(failed), f"{TABLE} in {out} lists them, the least certain first."
        doubts = [f"{row.movie}: ⚠ {row.warnings}." for row in rows if row.warnings]
        self.words.setText("\n".join([f"{plural(n, 'movie')} tracked. {where}", *doubts, *failed]))
        bring_into_view(self.words)
