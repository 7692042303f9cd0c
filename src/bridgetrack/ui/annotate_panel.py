"""Step 2: questions, answers that were clicked, and the answers so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qtpy.QtCore import QAbstractListModel, QModelIndex, QPointF, QRectF, QSize, Qt, Signal
from qtpy.QtGui import QColor, QFontMetricsF, QIcon, QImage, QPainter, QPainterPath, QPen, QPixmap
from qtpy.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QListView,
    QListWidget,
    QPushButton,
    QTabWidget,
    QToolButton,
    QWidget,
)
from superqt.utils import qdebounced

from bridgetrack.active.pictures import Picture, picture_steps
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Name, describe, short_words
from bridgetrack.hypotheses.events import FATES
from bridgetrack.io.results import track_path
from bridgetrack.regions.mend import MaskAnswer
from bridgetrack.session.cells import choice_words, instead_words, question_words, shown_diameter
from bridgetrack.ui.layers import IMPORTED, find_role, path_of
from bridgetrack.ui.looks import LOOKS, MEND_SIGNS
from bridgetrack.ui.overlay import percent
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import Answer
from bridgetrack.ui.widgets import Column, bring_into_view, button, grid, heading, row, text

_EVENTS = (Mode.MOVE, Mode.DIVIDE, Mode.DISAPPEAR, Mode.APPEAR, Mode.FALSE, Mode.VERIFY)
_MENDING = (Mode.CUT, Mode.JOIN, Mode.REMOVE, Mode.GROW, Mode.OUTLINE, Mode.CHECK)

_TRACK_FILES = "Tracks (*.csv *.xml *track.txt zarr.json .zgroup .zattrs);;All files (*)"

_COLOURS = {event: look.colour for event, look in LOOKS.items()}

_PICTURES = "pictures of the question"
"""Name of the work that cuts them out."""


_AFTER = 20
"""Milliseconds after the image in which the panel follows."""


class AnswersModel(QAbstractListModel):
    """Answers as lines, made when they are shown, with the full words as a tip."""

    def __init__(self, name: Name) -> None:
        super().__init__()
        self._name = name
        self.answers: list[Answer] = []
        self._unusual: set[str] = set()

    def show(self, answers: Sequence[Answer], unusual: Sequence[Answer]) -> None:
        """Show these answers, unusual ones first."""
        self.beginResetModel()
        self._unusual = {answer.id for answer in unusual}
        self.answers = sorted(answers, key=lambda answer: answer.id not in self._unusual)
        self.endResetModel()

    def rowCount(self, _: Any = None) -> int:  # noqa: N802
        """Number of answers."""
        return len(self.answers)

    def data(self, index: QModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """The line or the tip of an answer."""
        answer = self.answers[index.row()]
        shown = role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole)
        return self.words(answer) if shown else None

    def words(self, answer: Answer) -> str:
        """The sign and the answer."""
        if isinstance(answer, MaskAnswer):
            return f"{MEND_SIGNS[answer.kind]} {answer.words}"
        sign = ("⚠ " if answer.id in self._unusual else "") + LOOKS[answer.events[0].event].sign
        return f"{sign} {describe(answer, self._name)}"


class AnswersList(QListView):
    """Lists answers; a click calls `jump` with one."""

    def __init__(self, name: Name, jump: Callable[[Answer], None]) -> None:
        super().__init__()
        self.listed = AnswersModel(name)
        self.setModel(self.listed)
        self.setUniformItemSizes(True)  # thousands are there at once
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # keys stay with the image
        self.setToolTip("Click an answer to go there")
        self.setMinimumHeight(40)
        self.clicked.connect(lambda index: jump(self.listed.answers[index.row()]))

    @property
    def chosen(self) -> list[Answer]:
        """The answers selected."""
        rows = sorted(index.row() for index in self.selectionModel().selectedRows())
        return [self.listed.answers[k] for k in rows]


_SIDE, _SMALL = 132, 11
"""Screen pixels: the side of a picture if there are two, and the height of names."""


class FrameStrip(QWidget):
    """Shows pictures with their frames; emits `picked` with the frame that was clicked."""

    picked = Signal(int)

    def __init__(self, name: Name) -> None:
        super().__init__()
        self._name = name
        self.pictures: tuple[Picture, ...] = ()
        self.buttons: list[QToolButton] = []
        self._frame = -1
        self._line = QHBoxLayout(self)
        self._line.setContentsMargins(0, 0, 0, 0)
        self.setFixedHeight(_SIDE + 24)

    def show_pictures(self, pictures: tuple[Picture, ...]) -> None:
        """Show other pictures."""
        for old in self.buttons:
            self._line.removeWidget(old)
            old.deleteLater()
        self.pictures, self.buttons = pictures, [QToolButton() for _ in pictures]
        side = _SIDE if len(pictures) < 3 else 2 * _SIDE // len(pictures)
        for each, picture in zip(self.buttons, pictures, strict=True):
            each.setToolTip("A frame of the question; click to see it on the left")
            each.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextUnderIcon)
            each.setIconSize(QSize(side, side))
            each.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            each.setCheckable(True)
            each.clicked.connect(partial(self._on_click, picture.frame))
            self._line.addWidget(each)
        self.write_names()
        self.mark(self._frame)

    def write_names(self) -> None:
        """Write the present names of cells on the pictures."""
        for each, picture in zip(self.buttons, self.pictures, strict=True):
            each.setIcon(QIcon(_painted(picture, each.iconSize().width(), self._name)))

    def mark(self, frame: int) -> None:
        """Mark the frame in view."""
        self._frame = frame
        for each, picture in zip(self.buttons, self.pictures, strict=True):
            here = picture.frame == frame
            each.setChecked(here)
            each.setText(f"frame {picture.frame}{' (in view)' if here else ''}")

    def _on_click(self, frame: int, _: bool) -> None:
        self.picked.emit(frame)
        self.mark(self._frame)  # the click has toggled its tick


def _painted(picture: Picture, side: int, name: Name) -> QPixmap:
    """A picture with its names and numbers, which have a dark rim and do not overlap."""
    height, width = picture.pixels.shape[:2]
    image = QImage(picture.pixels.tobytes(), width, height, 3 * width, QImage.Format.Format_RGB888)
    smooth = Qt.TransformationMode.SmoothTransformation
    drawn = QPixmap.fromImage(image).scaled(QSize(side, side), transformMode=smooth)
    painter = QPainter(drawn)
    font = painter.font()
    font.setPixelSize(_SMALL)
    metrics, taken = QFontMetricsF(font), list[QRectF]()
    high = metrics.ascent() + 2
    for tag in picture.tags:
        words = tag.words(name)
        wide = metrics.horizontalAdvance(words) + 6
        x = min(max(tag.x * side - wide / 2, 0), side - wide)
        y = min(max(tag.y * side - high / 2, 0), side - high)
        lines = sorted(range(-8, 9), key=lambda k: (abs(k), -k))  # as near as there is room
        places = [QRectF(x, y + k * high, wide, high) for k in lines]
        inside = [place for place in places if place.top() >= 0 and place.bottom() <= side]
        room = min(inside, key=lambda place: sum(map(place.intersects, taken)))
        taken.append(room)
        path = QPainterPath()
        path.addText(room.bottomLeft() + QPointF(3, -3), font, words)
        painter.strokePath(path, QPen(QColor("#000000"), 3))
        painter.fillPath(path, QColor(tag.colour))
    painter.end()
    return drawn


class AnnotatePanel(Panel):
    """The question or the cell pointed at, and answers; shows the effect of keys on the image."""

    def __init__(self, napari_viewer: Any) -> None:
        super().__init__(napari_viewer)
        self.questions, self.annotator = self.session.questions, self.state.annotator
        # Room for the longest, so that the buttons below stay under the mouse.
        self.question = self.add(heading("", lines=2))
        self.hint = self.add(text(lines=3))
        self.frames = self.add(FrameStrip(self.questions.name))
        self.frames.picked.connect(self.state.canvas.show_asked)
        self.choices = self.add(self._choices())
        words = {"accept": "Yes", "reject": "No", "unsure": "Cannot tell"}
        self.actions = {name: self.key_button(name, said) for name, said in words.items()}
        self.stop = self.key_button("cancel", "Stop")
        answers = self.add(row(*self.actions.values(), self.stop))
        answers.setStyleSheet("QPushButton { padding-left: 2px; padding-right: 2px; }")  # narrow
        self.next = self.key_button("suggest", "Next doubtful event")
        self.undo = self.key_button("undo", "Undo")
        self.redo = self.key_button("redo", "Redo")
        self.add(row(self.next, self.undo, self.redo, wide=self.next))
        self.modes = {mode: self._mode_button(mode) for mode in (*_EVENTS, *_MENDING)}
        self.tabs = QTabWidget()
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.addTab(self._tools(_EVENTS), "What happens")
        self.tabs.addTab(self._tools(_MENDING), "Correct masks")
        self.tabs.addTab(self._answers(), "Your answers")
        self.column.addWidget(self.tabs, 1)
        self._pictured: Suggestion | None = None
        self._listen()
        self._show_question()

    def _listen(self) -> None:
        session, annotator = self.session, self.annotator
        viewer = self.state.viewer
        self.listen(viewer.dims.events.current_step, self._on_frame)
        self.listen(viewer.layers.selection.events.active, lambda _: self._show_cell())
        self.follow(
            # Once, after the next question was drawn on the image, which would otherwise wait.
            qdebounced(self._show_question, timeout=_AFTER, parent=self),
            self.questions.changed, annotator.mode_changed, session.movie_changed,
            session.scene_changed, session.answers_changed, session.tracking_changed,
        )  # fmt: skip
        self.follow(self._show_cell, annotator.changed, session.movie_changed)
        self.follow(
            self._list_answers,
            session.answers_changed, session.tracking_changed, session.trainer.changed,
        )  # fmt: skip

    def _choices(self) -> QListWidget:
        made = QListWidget()
        made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        made.setFixedHeight(88)
        made.setWordWrap(True)
        made.setToolTip("Click what is right, or press its number")
        made.itemClicked.connect(
            lambda item: self.annotator.choose(made.row(item) + 1 + self.questions.denied)
        )
        return made

    def _tools(self, modes: Sequence[Mode]) -> Column:
        tab = Column()
        tab.add(grid([self.modes[mode] for mode in modes], 3))
        if modes is _EVENTS:
            self.fates = tab.add(QComboBox())
            self.fates.addItems(["This cell…", *(words for _, words in FATES.values())])
            self.fates.setToolTip("How the track of the selected cell begins or ends")
            self.fates.activated.connect(self._on_fate)
        else:
            self.again = tab.add(self.key_button("again", "Choose the masks again"))
        tab.column.addStretch(1)
        return tab

    def _on_fate(self, place: int) -> None:
        self.fates.setCurrentIndex(0)
        if place:
            self.annotator.name_fate(list(FATES)[place - 1])

    def _mode_button(self, mode: Mode) -> QPushButton:
        made = self.key_button(mode.name, mode.title, checkable=True)
        made.clicked.connect(lambda _=False: self._on_mode())
        return made

    def _answers(self) -> QWidget:
        tab = Column()
        self.given = AnswersList(self.questions.name, self.state.visit)
        tab.column.addWidget(self.given, 1)
        self.remove = button(
            "Delete selected", "Answers that are deleted can be brought back by Undo",
            self._delete,
        )  # fmt: skip
        self.take_over = button(
            "Import tracks…", "Corrected tracks of this movie from a CSV, GEFF, TrackMate's XML or "
            "a Cell Tracking Challenge folder: every difference becomes an answer",
            self._ask_tracks,
        )  # fmt: skip
        tab.add(row(self.remove, self.take_over))
        return tab

    def _ask_tracks(self) -> None:
        shown = find_role(self.state.viewer.layers, IMPORTED)
        file = None if shown is None else path_of(shown)
        start = self.beside_movie() if file is None else str(file)
        name, _ = QFileDialog.getOpenFileName(self, "Tracks of this movie", start, _TRACK_FILES)
        if name:
            with self.session.telling():
                self.session.edits.take_over(track_path(Path(name)))

    @property
    def _asked(self) -> Suggestion | None:
        return self.questions.current if self.questions.engaged else None

    def _on_frame(self, _: Any = None) -> None:
        self.frames.mark(self.state.canvas.frame)

    def _picture(self, asked: Suggestion | None) -> None:
        """Cut the frames out in the background."""
        source, scene = self.session.movie, self.session.scene
        self.frames.write_names()  # names of cells may have changed
        if source is None or scene is None or asked is self._pictured:
            return
        self._pictured = asked
        self.frames.show_pictures(())
        if asked is not None:
            size = shown_diameter(scene.detections)
            work = partial(picture_steps, asked, source.cells, source.image, size, _COLOURS)
            self.session.run(_PICTURES, work, self.frames.show_pictures)

    def _on_mode(self) -> None:
        now = self.annotator.picking.mode
        for mode, each in self.modes.items():
            each.setChecked(mode == now)
        if now in self.modes and self.tabs.currentIndex() != 2:
            self.tabs.setCurrentIndex(0 if now.mends is None else 1)  # where its button is

    def _show_question(self) -> None:
        asked, name = self._asked, self.questions.name
        self._on_mode()
        denied = self.questions.denied
        words = instead_words if denied else question_words
        before, said = self.question.text(), "" if asked is None else words(asked, name)
        self.question.setText(said)
        for answer in ("accept", "reject"):
            self.actions[answer].setEnabled(not denied)
        self._picture(asked)
        self._on_frame()
        self.stop.setVisible(asked is not None)
        # The model's opinion would influence the user who checks it.
        self.choices.setVisible(asked is None or not asked.sampled)
        check = self.questions.check
        self.undo.setEnabled(check.can_take_back if check.running else self.session.can_undo)
        for part in (self.question, self.frames):
            part.setVisible(asked is not None)
        self.redo.setEnabled(self.session.can_redo)
        self._show_cell()
        if said not in ("", before):
            bring_into_view(self.stop)  # and all buttons that answer
            bring_into_view(self.question)  # if there is no room for both

    def _show_cell(self) -> None:
        asked, annotator = self._asked, self.annotator
        if asked is None or not annotator.asking or self.questions.problem:
            self.hint.setText(annotator.hint)
        else:
            self.hint.setText(_INSTEAD if self.questions.denied else _reason(asked))
        words = self._listed(asked)
        shown = [self.choices.item(k).text() for k in range(self.choices.count())]
        if words != shown:
            self.choices.clear()
            self.choices.addItems(words)

    def _listed(self, asked: Suggestion | None) -> list[str]:
        """Possible events as lines: sign, words, a note, and the number if its key would answer."""
        found, name = self.annotator.proposals, self.questions.name
        if asked is not None:
            events, notes = list(asked.listed), [percent(share) for share in asked.beliefs]
            words = [choice_words(event, asked, name) for event in events]
        else:
            events = [p.event for p in found]
            notes = ["ruled out" if p.excluded else percent(p.confidence) for p in found]
            words = [short_words(event, False, name) for event in events]
        lines = [
            f"{LOOKS[event.event].sign}  {said}: {note}"
            for event, said, note in zip(events, words, notes, strict=True)
        ]
        if self.state.canvas.has_numbers:
            lines = [f"{k}  {line}" for k, line in enumerate(lines, 1)]
        return lines if asked is None else lines[int(self.questions.denied) :]

    def _list_answers(self) -> None:
        annotations, masks = self.session.annotations, self.session.masks
        both: list[Answer] = list(annotations or ())
        both += [] if masks is None else list(masks.answers)
        latest = sorted(both, key=lambda answer: answer.created or "")[::-1]
        self.given.listed.show(latest, self.session.trainer.doubtful())
        self.again.setEnabled(masks is not None and masks.has_image)
        self.tabs.setTabText(2, f"Your answers ({len(both)})" if both else "Your answers")
        self.remove.setEnabled(bool(both))

    def _delete(self) -> None:
        with self.session.telling():
            self.session.edits.remove(self.given.chosen)


_INSTEAD = (
    "Click it or press its number. If it is not listed, use the buttons below (C, Y, L, A, F). "
    "Cannot tell: U. Wrong masks: K, J, N, E, O."
)


def _reason(asked: Suggestion) -> str:
    if asked.sampled:
        return f"{asked.reason[0].upper()}{asked.reason[1:]}."
    return f"Why this one: {asked.reason}."
