"""The Annotate panel: kinds of events, the model's proposals, and the answers so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QButtonGroup,
    QFileDialog,
    QListWidget,
    QPushButton,
    QTableWidgetItem,
    QWidget,
)

from bridgetrack.annotations.annotation import (
    NOUN,
    Annotation,
    Kind,
    describe,
    short_answer,
    short_words,
)
from bridgetrack.annotations.mask_answers import MASKS, MaskAnswer, describe_masks
from bridgetrack.io.results import track_path
from bridgetrack.session.track_edits import JOB
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.layers import IMPORTED, find_role, path_of
from bridgetrack.ui.looks import LOOKS, MEND_SIGNS
from bridgetrack.ui.overlay import percent
from bridgetrack.ui.panel import Panel, Work
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.shortcuts import shortcut
from bridgetrack.ui.state import Answer
from bridgetrack.ui.widgets import (
    Column,
    KeyedTable,
    button,
    dress_table,
    folded,
    grid,
    heading,
    text,
)

_MODES = (
    (Mode.REVIEW, "Review"), (Mode.MOVE, "Connect"), (Mode.DIVIDE, "Divides"),
    (Mode.DISAPPEAR, "Leaves"), (Mode.APPEAR, "Appears"), (Mode.MERGE, "Merges"),
    (Mode.SPLIT, "Cut in two"), (Mode.FALSE, "Not a cell"), (Mode.SWAP, "Swap"),
    (Mode.BREAK, "Break"),
)  # fmt: skip
_MENDING = (
    (Mode.CUT, "Two cells"), (Mode.JOIN, "One cell"), (Mode.GROW, "New cell"),
    (Mode.REMOVE, "No cell"), (Mode.OUTLINE, "Outline"), (Mode.CHECK, "All right"),
)  # fmt: skip
_TRACKS = (
    (Mode.VERIFY, "Verify"), (Mode.FAMILY, "Verify family"), (Mode.DELETE, "Delete"),
)  # fmt: skip
_ACTIONS = (
    ("accept", "Yes", "yes"), ("reject", "No", "no"), ("undo", "Undo", "undo"),
    ("redo", "Redo", "redo"), ("history", "Where from?", "past"),
)  # fmt: skip


_TRACK_FILES = "Tracks (*.csv *.xml *track.txt zarr.json .zgroup .zattrs);;All files (*)"


class AnswersTable(KeyedTable):
    """Lists answers; a click calls `jump` with one."""

    def __init__(self, annotator: Annotator, jump: Callable[[Answer], None]) -> None:
        super().__init__(annotator)
        dress_table(self, ("", "Frame", "Answer"), (36, 56, 0), "Click an answer to go there",
                    self._on_click)  # fmt: skip
        self.setWordWrap(False)
        self.setMinimumHeight(60)
        self._jump = jump
        self._listed: list[Answer] = []
        self._words: list[tuple[str, ...]] = []

    @property
    def chosen(self) -> list[Answer]:
        """The answers selected."""
        return [self._listed[k] for k in sorted({i.row() for i in self.selectedIndexes()})]

    def fill(self, answers: Sequence[Answer]) -> None:
        """Show these answers; only rows that changed are touched."""
        self._listed = list(answers[::-1])
        words = [self._words_of(answer) for answer in self._listed]
        if len(words) == len(self._words) + 1 and words[1:] == self._words:
            self.insertRow(0)
            self._words.insert(0, ())
        self.setRowCount(len(words))
        before, self._words = self._words, words
        for k, shown in enumerate(words):
            if k >= len(before) or shown != before[k]:
                self._set_row(k, *shown)

    def _words_of(self, answer: Answer) -> tuple[str, ...]:
        """A sign, the frame, the answer, and all of it in words."""
        if isinstance(answer, MaskAnswer):
            tip = describe_masks(answer.frame, answer.kind)
            return MEND_SIGNS[answer.kind], str(answer.frame), MASKS[answer.kind], tip
        names, frame = self._annotator.names, answer.cells[0].frame
        sign = LOOKS[answer.events[0].event].sign
        sign = sign if answer.kind == Kind.CONFIRM else f"¬ {sign}"
        tip = describe(answer)
        return sign, str(frame), short_answer(answer, names), tip

    def _set_row(self, k: int, sign: str, frame: str, words: str, tip: str) -> None:
        for column, value in enumerate((sign, frame, words)):
            item = QTableWidgetItem(value)
            item.setToolTip(tip)
            self.setItem(k, column, item)

    def _on_click(self, k: int, _: int) -> None:
        self._jump(self._listed[k])


class AnnotatePanel(Panel):
    """Answers by pointing; this panel shows what keys and clicks on the image do."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.annotator = self.state.annotator
        self.hint = self.add(text(lines=3))
        self.column.addWidget(self._modes())
        self.column.addWidget(folded("Edit tracks", self._tracks()))
        self.add(heading("Mend the masks"))
        self.column.addWidget(self._mending())
        self.again = self.key_button("again", "Choose the masks again", "restart")
        self.column.addWidget(self.again)
        self.add(heading("What the model thinks of this cell"))
        self.proposals = QListWidget()
        self.proposals.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.proposals.setFixedHeight(96)
        self.proposals.setWordWrap(True)
        self.proposals.setToolTip("Click one, or press its number while pointing at the cell")
        self.proposals.itemClicked.connect(
            lambda item: self.annotator.choose(self.proposals.row(item) + 1)
        )
        self.column.addWidget(self.proposals)
        self.column.addWidget(self._actions())
        # What comes and goes is below the buttons, which stay where they are.
        self.choosing = self.add(Work(self, "choose"))
        self.add(heading("Your answers"))
        self.counts = self.add(text())
        self.table = AnswersTable(self.annotator, self.state.visit)
        self.column.addWidget(self.table, 1)
        self.remove = self.add(button(
            "Delete the selected answers", "They can be brought back by Undo", self._delete,
            icon="delete",
        ))  # fmt: skip
        session, annotator = self.session, self.annotator
        self.listen(annotator.mode_changed, self._on_mode)
        self.follow(self._show_proposals, annotator.changed, session.movie_changed)
        self.follow(self._list_answers, session.answers_changed, session.tracking_changed)
        self._on_mode()

    # ------------------------------------------------------------------ parts

    def _modes(self) -> QWidget:
        self.modes = {m: self._mode_button(m, words) for m, words in (*_MODES, *_TRACKS, *_MENDING)}
        group = QButtonGroup(self)
        for made in self.modes.values():
            group.addButton(made)
        return grid([self.modes[mode] for mode, _ in _MODES], 3, last=3)

    def _tracks(self) -> QWidget:
        box = Column()
        box.add(grid([self.modes[mode] for mode, _ in _TRACKS], 2, last=2))
        self.take_over = box.add(button(
            "Import corrected tracks…", "Tracks of this movie from a CSV, GEFF, TrackMate's XML or "
            "a Cell Tracking Challenge folder: what differs becomes answers", self._ask_tracks,
            icon="open", hot="Alt+O",
        ))  # fmt: skip
        box.add(Work(self, JOB))
        return box

    def _ask_tracks(self) -> None:
        shown = find_role(self.state.viewer.layers, IMPORTED)
        file = None if shown is None else path_of(shown)
        start = self.beside_movie() if file is None else str(file)
        name, _ = QFileDialog.getOpenFileName(self, "Tracks of this movie", start, _TRACK_FILES)
        if name:
            with self.session.telling():
                self.session.edits.take_over(track_path(Path(name)))

    def _mending(self) -> QWidget:
        return grid([self.modes[mode] for mode, _ in _MENDING], 3)

    def _mode_button(self, mode: Mode, words: str) -> QPushButton:
        key = shortcut(mode.value)
        icon = "break" if mode == Mode.BREAK else ""
        made = button(words, key.words, self._starter(mode), key=key, checkable=True, icon=icon)
        if mode.event is not None:
            made.setText(f"{LOOKS[mode.event].sign} {made.text()}")
        return made

    def _starter(self, mode: Mode) -> Any:
        def start() -> None:
            self.state.canvas.activate()
            self.annotator.start(mode)

        return start

    def _actions(self) -> QWidget:
        self.actions = {name: self.key_button(name, words, icon) for name, words, icon in _ACTIONS}
        return grid(self.actions.values(), 3, last=2)

    # ------------------------------------------------------------------ state

    def _on_mode(self) -> None:
        if self.annotator.picking.mode in self.modes:
            self.modes[self.annotator.picking.mode].setChecked(True)
        self._show_proposals()

    def _show_proposals(self) -> None:
        self.hint.setText(self.annotator.hint)
        found = self.annotator.proposals
        words = []
        for k, p in enumerate(found, 1):
            sign = LOOKS[p.event.event].sign
            note = "ruled out by you" if p.excluded else percent(p.confidence)
            said = short_words(p.event, self.annotator.history, self.session.names)
            words.append(f"{k}  {sign}  {said}: {note}")
        if not words:
            words = [self._no_proposals()]
        shown = [self.proposals.item(k).text() for k in range(self.proposals.count())]
        if words != shown:
            self.proposals.clear()
            self.proposals.addItems(words)

    def _no_proposals(self) -> str:
        if self.session.tracking is None:
            return "Nothing yet."
        if self.annotator.picking.mode != Mode.REVIEW:
            return "Shown in Review (V)."
        return "Point at a cell." if self.annotator.hovered < 0 else "This is the last frame."

    def _list_answers(self) -> None:
        annotations, masks = self.session.annotations, self.session.masks
        given: list[Annotation] = list(annotations or ())
        said: list[MaskAnswer] = [] if masks is None else list(masks.answers)
        both: list[Answer] = [*given, *said]
        listed = sorted(both, key=lambda answer: answer.created or "")
        self.table.fill(listed)
        self.again.setEnabled(bool(said) and masks is not None and masks.has_image)
        counts = annotations.counts() if annotations is not None else {}
        parts = [f"{n} {NOUN[e][1] if n != 1 else NOUN[e][0].split(' ', 1)[1]}"
                 for e, n in counts.items() if n]  # fmt: skip
        rejected = sum(a.kind == Kind.REJECT for a in given)
        parts += [f"{rejected} rejected"] if rejected else []
        parts += [f"{len(said)} about masks"] if said else []
        empty = "None yet. Point at a cell and press Enter, or choose an event above."
        self.counts.setText(", ".join(parts) if parts else empty)
        for name, enabled in (("undo", self.session.can_undo), ("redo", self.session.can_redo)):
            self.actions[name].setEnabled(enabled)
        self.remove.setEnabled(bool(listed))

    def _delete(self) -> None:
        chosen = self.table.chosen
        events = [a.id for a in chosen if isinstance(a, Annotation)]
        masks = [a.id for a in chosen if isinstance(a, MaskAnswer)]
        with self.session.telling():
            self.session.remove(events, masks)
