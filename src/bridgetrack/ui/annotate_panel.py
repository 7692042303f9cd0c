"""The Annotate panel: kinds of events, the model's proposals, and the answers so far."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from qtpy.QtCore import Qt
from qtpy.QtWidgets import (
    QAbstractItemView,
    QButtonGroup,
    QGridLayout,
    QHeaderView,
    QListWidget,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from bridgetrack.annotations.annotation import Annotation, EventRef, Kind
from bridgetrack.annotations.words import NOUN, describe
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui import icons
from bridgetrack.ui.colours import LOOKS
from bridgetrack.ui.overlay import percent
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.shortcuts import Shortcut, shortcut
from bridgetrack.ui.widgets import SPACE, Notice, Panel, button, heading, text

_MODES = (
    (Mode.REVIEW, "Review"), (Mode.MOVE, "Connect"), (Mode.DIVIDE, "Divides"),
    (Mode.DISAPPEAR, "Leaves"), (Mode.APPEAR, "Appears"), (Mode.MERGE, "Merges"),
    (Mode.SPLIT, "Cut in two"), (Mode.FALSE, "Not a cell"), (Mode.SWAP, "Swap"),
    (Mode.SUGGEST, "Suggest next"),
)  # fmt: skip


class AnnotatePanel(Panel):
    """Answers by pointing; this panel shows what keys and clicks on the image do."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.annotator = self.desk.annotator
        self.hint = text()
        self.column.addWidget(self.hint)
        self.column.addWidget(self._modes())
        self.column.addWidget(heading("What the model thinks of this cell"))
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
        self.notice = Notice()
        self.column.addWidget(self.notice)
        self.column.addWidget(heading("Your answers"))
        self.counts = text()
        self.column.addWidget(self.counts)
        self.table = self._table()
        self.column.addWidget(self.table, 1)
        self.remove = button(
            "Delete the selected answers", "They can be brought back by Undo", self._delete,
            icon="delete",
        )  # fmt: skip
        self.column.addWidget(self.remove)
        self.listen(self.annotator.changed, self._on_pointing)
        self.listen(self.annotator.mode_changed, self._on_mode)
        self.listen(self.session.answers_changed, self._on_answers)
        self.listen(self.session.source_changed, self._on_pointing)
        self.listen(self.session.message, self.notice.say)
        self._on_mode()
        self._on_answers()

    # ------------------------------------------------------------------ parts

    def _modes(self) -> QWidget:
        box = QWidget()
        grid = QGridLayout(box)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(SPACE)
        self.modes: dict[Mode, QPushButton] = {}
        group = QButtonGroup(self)
        for k, (mode, words) in enumerate(_MODES):
            key = shortcut(mode.value)
            made = button(words, key.words, self._starter(mode), key=key, checkable=True)
            if mode.event is not None:
                made.setText(f"{LOOKS[mode.event].sign} {made.text()}")
            group.addButton(made)
            self.modes[mode] = made
            grid.addWidget(made, k // 3, k % 3, 1, 3 if mode == Mode.SUGGEST else 1)
        icons.mark(self.modes[Mode.SUGGEST], "suggest")
        return box

    def _starter(self, mode: Mode) -> Any:
        def start() -> None:
            self.desk.canvas.activate()
            if mode == Mode.SUGGEST:
                self.annotator.suggest()
                self._on_mode()
            else:
                self.annotator.set_mode(mode)

        return start

    def _actions(self) -> QWidget:
        box = QWidget()
        grid = QGridLayout(box)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setSpacing(SPACE)
        self.actions: dict[str, QPushButton] = {}
        parts = (
            ("accept", "Yes", "yes"), ("reject", "No", "no"), ("history", "Its past", "past"),
            ("break", "Break", "break"), ("undo", "Undo", "undo"), ("redo", "Redo", "redo"),
        )  # fmt: skip
        for k, (name, words, icon) in enumerate(parts):
            key = shortcut(name)
            made = button(words, key.words, self._doer(key), key=key, icon=icon)
            self.actions[name] = made
            grid.addWidget(made, k // 3, k % 3)
        return box

    def _doer(self, key: Shortcut) -> Callable[[], None]:
        return lambda: key.act(self.annotator)

    def _table(self) -> QTableWidget:
        table = QTableWidget(0, 3)
        table.setHorizontalHeaderLabels(["", "Frame", "Answer"])
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(24)
        table.setWordWrap(False)
        header = table.horizontalHeader()
        header.setSectionResizeMode(2, QHeaderView.ResizeMode.Stretch)
        for column, width in ((0, 36), (1, 56)):
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Fixed)
            header.resizeSection(column, width)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setMinimumHeight(60)
        table.setToolTip("Click an answer to go there")
        table.cellClicked.connect(self._jump)
        self._listed: list[Annotation] = []
        return table

    # ------------------------------------------------------------------ state

    def _on_mode(self) -> None:
        self.modes[self.annotator.picking.mode].setChecked(True)
        self._on_pointing()

    def _on_pointing(self) -> None:
        self.hint.setText(self.annotator.hint)
        found = self.annotator.proposals
        words = []
        for k, p in enumerate(found, 1):
            sign = LOOKS[p.event.event].sign
            note = "ruled out by you" if p.excluded else percent(p.confidence)
            words.append(f"{k}  {sign}  {short_words(p.event, self.annotator.history)}: {note}")
        if not words:
            words = [self._no_proposals()]
        shown = [self.proposals.item(k).text() for k in range(self.proposals.count())]
        if words != shown:
            self.proposals.clear()
            self.proposals.addItems(words)
        self.actions["accept"].setEnabled(True)

    def _no_proposals(self) -> str:
        if self.session.tracking is None:
            return "Nothing yet."
        if self.annotator.picking.mode != Mode.REVIEW:
            return "Shown in Review (V)."
        return "Point at a cell." if self.annotator.hovered < 0 else "This is the last frame."

    def _on_answers(self) -> None:
        annotations = self.session.annotations
        listed = list(annotations) if annotations is not None else []
        self._fill(listed)
        counts = annotations.counts() if annotations is not None else {}
        parts = [f"{n} {NOUN[e][n != 1].removeprefix('a ').removeprefix('an ')}"
                 for e, n in counts.items() if n]  # fmt: skip
        rejected = sum(a.kind == Kind.REJECT for a in listed)
        parts += [f"{rejected} rejected"] if rejected else []
        empty = "None yet. Point at a cell and press Enter, or choose an event above."
        self.counts.setText(", ".join(parts) if parts else empty)
        for name, enabled in (("undo", self._past()), ("redo", self._future())):
            self.actions[name].setEnabled(enabled)
        self.remove.setEnabled(bool(listed))

    def _past(self) -> bool:
        return self.session.answers is not None and bool(self.session.answers.history.past)

    def _future(self) -> bool:
        return self.session.answers is not None and bool(self.session.answers.history.future)

    def _fill(self, listed: list[Annotation]) -> None:
        """Show the answers, the latest on top; only rows that changed are touched."""
        listed = listed[::-1]
        if len(listed) == len(self._listed) + 1 and listed[1:] == self._listed:
            self.table.insertRow(0)
            self._set_row(0, listed[0])
        elif listed != self._listed:
            self.table.setRowCount(len(listed))
            for k, a in enumerate(listed):
                self._set_row(k, a)
        self._listed = listed

    def _set_row(self, k: int, annotation: Annotation) -> None:
        look = LOOKS[annotation.events[0].event]
        sign = look.sign if annotation.kind == Kind.CONFIRM else f"¬ {look.sign}"
        words, frame = describe(annotation), annotation.cells[0].frame
        for column, value in enumerate((sign, str(frame), _short(words, frame))):
            item = QTableWidgetItem(value)
            item.setToolTip(words)
            self.table.setItem(k, column, item)

    def _jump(self, k: int, _: int) -> None:
        self.desk.canvas.activate()
        self.annotator.go_to(self._listed[k].cells[0])

    def _delete(self) -> None:
        rows = {i.row() for i in self.table.selectedIndexes()}
        answers = self.session.answers
        if answers is not None and rows:
            answers.remove(*(self._listed[k].id for k in sorted(rows)))


def short_words(event: EventRef, history: bool) -> str:
    """An event as a predicate of the cell in question, e.g. ``divides into 4 and 7``."""
    before = " and ".join(str(c.label) for c in event.sources)
    after = " and ".join(str(c.label) for c in event.targets)
    fate = {
        Event.MOVE: f"moves to {after}",
        Event.DIVIDE: f"divides into {after}",
        Event.SPLIT: f"is cut into {after}",
        Event.MERGE: f"merges ({before} become {after})",
        Event.DISAPPEAR: "leaves",
        Event.FALSE: "is not a cell",
        Event.SKIP: f"moves to {after} over a gap",
        Event.APPEAR: "appears",
    }
    past = {
        Event.MOVE: f"comes from {before}",
        Event.DIVIDE: f"is a daughter of {before}",
        Event.SPLIT: f"is a piece of {before}",
        Event.MERGE: f"is {before} merged",
        Event.SKIP: f"comes from {before} over a gap",
    }
    return past.get(event.event, fate[event.event]) if history else fate[event.event]


def _short(words: str, frame: int) -> str:
    """As short as the table beside the frame's number needs it."""
    plain = words.removeprefix("the ").replace("disappearance", "leaving")
    return plain.replace(f" in frame {frame}", "").replace(" into cells ", " into ")
