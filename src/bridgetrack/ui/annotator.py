"""The meaning of hovering, clicks and keys: turns them into answers."""

from __future__ import annotations

import time
from collections.abc import Callable

from psygnal import Signal

from bridgetrack.active.suggester import Proposal
from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.errors import plural
from bridgetrack.hypotheses.events import FATES, N_TARGETS, Event
from bridgetrack.regions.mend import MendKind, Place
from bridgetrack.regions.score import FEW
from bridgetrack.session.cells import CellFinder, proposals
from bridgetrack.session.session import Session
from bridgetrack.ui.picking import Mode, Picking

_LONGEST = 600.0
"""Most seconds counted for an answer; more is a break."""

_AGAIN = "Choose the masks again"
"""Words of the button."""

GLANCE = 0.25
"""Least seconds that a question is in view before it can be answered: nobody is faster."""

_INSTEAD = "Marked as wrong. What happened instead? Press its number, or C, Y, L, A or F and click."

_CHOOSE = "Point at a cell, or click one, to see what the model predicts for it; then answer."

_LISTED = 5
"""Most possible events that are listed: as many as have a key."""

_FATE = (Mode.MOVE, Mode.DIVIDE, Mode.DISAPPEAR, Mode.FALSE)
_HISTORY = (Mode.APPEAR, Mode.FALSE)


class Annotator:
    """Follows the pointer and saves answers.

    Signals: `changed` when the overlay must be drawn again, `show` with (frame, position or None)
    when the view should go somewhere, `mode_changed`, `clicked` with the row of the cell.
    """

    changed = Signal()
    clicked = Signal(int)
    show = Signal(int, object)
    mode_changed = Signal()

    def __init__(self, session: Session) -> None:
        self._session, self._questions = session, session.questions
        self.picking = Picking()  # the meaning of clicks, and the cells picked so far
        # finds cells by position, once the movie is measured
        self.finder: CellFinder | None = None
        # row of the cell that keys and lists refer to, -1 if there is none: the one under the
        # pointer, or one selected in other ways until the pointer comes to another
        self.hovered = -1
        self._under, self._held = -1, False  # the cell under the pointer; selected in other ways
        self.frame = 0  # the frame in view
        self._here: tuple[float, ...] | None = None  # where the pointer is in it
        # corners of the view, and whether a position is on the canvas
        self.area: Callable[[], tuple[Place, Place] | None] = lambda: None
        self.in_view: Callable[[Place], bool] = lambda _: True
        # takes the outline of another layer at a place of a frame; returns why not
        self.take_outline: Callable[[int, Place], str] = lambda *_: "There are no other layers."
        self.proposals: list[Proposal] = []  # its possible events, best first
        self._since = time.monotonic()
        self._noted = -1  # row of the cell of the last answer
        session.movie_changed.connect(self._on_movie)
        session.scene_changed.connect(self._on_scene)
        session.answers_changed.connect(self._refresh)
        session.tracking_changed.connect(self._refresh)
        session.questions.wanted.connect(lambda: self.set_mode(Mode.SUGGEST))
        session.questions.check.ended.connect(self.stop_asking)

    @property
    def asking(self) -> bool:
        """Whether keys and clicks answer the model's question."""
        return self.picking.mode == Mode.SUGGEST

    @property
    def hint(self) -> str:
        """What to do next."""
        session, questions = self._session, self._questions
        if session.movie is None:
            return "Choose a movie with its cells first; see step 1."
        if session.scene is None:
            return "Measuring the cells; a moment please."
        if questions.problem and questions.engaged:
            return f"Learning from these answers failed: {questions.problem}"
        if not self.asking and questions.engaged:
            return f"{self.picking.hint} G goes back to the question."
        if not self.asking or questions.current is not None:
            return self.picking.hint
        if session.tracking is None or questions.busy:
            return "Looking for the next question; this takes a moment."
        return "Nothing is left to ask: every uncertain event has been answered."

    # ------------------------------------------------------------------ following

    def _on_movie(self) -> None:
        if self.asking:
            self.set_mode(Mode.REVIEW)
        self.picking = Picking(self.picking.mode)
        self.finder, self.hovered, self.proposals = None, -1, []
        self._under, self._held = -1, False
        self.changed.emit()

    def _on_scene(self) -> None:
        scene = self._session.scene
        if scene is None:
            return
        self.finder = CellFinder(scene.labels, scene.detections)
        self.hovered = self._under = -1
        self._held = False
        self._refresh()

    def _refresh(self) -> None:
        tracking = self._session.tracking
        if tracking is None or self.hovered < 0 or self.picking.mode != Mode.REVIEW:
            self.proposals = []
        else:
            self.proposals = proposals(tracking, self.hovered, limit=_LISTED)
        self.changed.emit()

    # ------------------------------------------------------------------ pointing and clicking

    def hover(self, frame: int, point: tuple[float, ...]) -> None:
        """The pointer moved, or another frame came under it."""
        self.frame, self._here = frame, point
        row = -1 if self.finder is None else self.finder.row_at(frame, point)
        entered, self._under = row != self._under, row
        if row < 0 and self._held:
            return
        if (entered or not self._held) and row != self.hovered:
            self.point_at(row)

    def leave(self) -> None:
        """The pointer left the image: keys refer to a cell that was chosen, or to none."""
        self._here, self._under = None, -1
        if not self._held and self.hovered >= 0:
            self.point_at(-1)

    def point_at(self, row: int) -> None:
        """Behave as if the pointer were on a cell."""
        self.hovered, self._held = row, False
        self._refresh()

    def select(self, row: int) -> None:
        """Show a cell, to which keys refer until the pointer comes to another one."""
        scene = self._session.scene
        if scene is None or self.finder is None or not 0 <= row < len(scene.detections):
            return
        cell = self.finder.ref(row)
        self.go_to(cell)
        self.frame = cell.frame
        self.hovered, self._held = row, True
        self._refresh()

    def go_to(self, cell: CellRef) -> None:
        """Show a cell."""
        self.show.emit(cell.frame, cell.position)

    def click(self, frame: int, point: tuple[float, ...], *, shift: bool = False) -> None:
        """A click in the image, plain or with Shift; see the hints for what each means."""
        if shift and self.picking.mode not in (Mode.OUTLINE, Mode.FALSE, Mode.VERIFY):
            return
        if self.finder is None:
            self._say(self.hint)
            return
        self.hover(frame, point)
        row = self._under
        if row >= 0:
            self.clicked.emit(row)
        if row != self.hovered:
            self.point_at(row)  # a click on nothing clears the choice
        if self.picking.mode.mends is not None:
            self._mend_at(frame, point, shift)
        elif self.asking:
            self._answer_with(row)
        elif self.picking.mode == Mode.REVIEW:
            self._held = row >= 0  # chosen until the pointer comes to another cell
        elif row >= 0:
            self._pick(row, shift)
        elif not self.picking.empty:
            self._say(f"There is no cell here. {self.hint}")

    @property
    def outlined(self) -> int:
        """Row of the cell that is outlined in the frame in view, which Enter takes; else -1."""
        scene, row = self._session.scene, self.hovered
        if scene is None or self.finder is None or not 0 <= row < len(scene.detections):
            return -1
        if int(scene.detections.frame[row]) != self.frame:
            return -1
        pointed = row == self._under and self._here is not None and self.in_view(self._here)
        seen = pointed or self.in_view(self.finder.ref(row).position)
        return row if seen else -1

    def _pick(self, row: int, shift: bool = False) -> None:
        """Take a cell, or with Shift all of its track or lineage, for the present mode."""
        if self.finder is None:
            return
        cell, edits, mode = self.finder.ref(row), self._session.edits, self.picking.mode
        if mode != Mode.VERIFY and not shift:
            self._take(cell)
            return
        with self._session.telling():
            if mode == Mode.FALSE:
                edits.delete(cell)
            elif shift:
                edits.verify_lineage(cell)
            else:
                edits.verify(cell)
        self._refresh()

    def _take(self, cell: CellRef) -> None:
        """Pick a cell; an event that is complete is an answer."""
        start = self.picking.source
        with self._session.telling():
            event = self.picking.click(cell)
            if event is None and self.picking.source is not start:
                self._look(cell.frame + 1)
            elif event is not None and start is not None:
                self._look(start.frame)
            if event is not None:
                self._note(Kind.CONFIRM, event, "click")
        self._refresh()

    def _look(self, frame: int) -> None:
        """Go to a frame, in which nothing is chosen yet."""
        self.hovered = -1
        self.show.emit(frame, None)

    def _answer_with(self, row: int) -> None:
        """Answer a click on a cell with the first listed event that leads there."""
        scene, asked = self._session.scene, self._question()
        if scene is None or asked is None or row < 0:
            return
        cell = int(scene.detections.frame[row]), int(scene.detections.label[row])
        if cell == asked.slot[1]:
            return
        listed = enumerate(asked.listed, 1)
        numbers = [k for k, event in listed if cell in [c.cell for c in event.cells]]
        if self._questions.denied and 1 in numbers:
            numbers.remove(1)
        if numbers:
            self.choose(numbers[0])
        else:
            self._say(
                "This cell is in none of the listed events. Press C or Y to click other cells."
            )

    # ------------------------------------------------------------------ modes

    def set_mode(self, mode: Mode) -> None:
        """Begin annotating another kind of event."""
        before, picked = self.picking.mode, self.picking.source
        self.picking = Picking(mode)
        if picked is not None:
            self._look(picked.frame)
        questions = self._questions
        if mode == Mode.REVIEW and questions.engaged:
            # Esc while the answer is clicked goes back to the question; at the question it ends.
            if before not in (Mode.SUGGEST, Mode.REVIEW) and questions.current is not None:
                self.set_mode(Mode.SUGGEST)
                return
            questions.engaged = False
        questions.take_keys(self.asking)
        self.mode_changed.emit()
        self._refresh()

    def start(self, mode: Mode) -> None:
        """A key or a button: sets the meaning of the next click, or of Enter on the outlined cell.

        It answers nothing by itself. During a question it refers to the cell asked about.
        """
        row = self._asked_about(mode) if self.asking else -1
        self.set_mode(mode)
        if row < 0 or self.finder is None or mode.event is None:
            return
        cell = self.finder.ref(row)
        if mode == Mode.APPEAR or not N_TARGETS[mode.event]:
            self.show.emit(cell.frame, None)
            self.frame = cell.frame
            self.point_at(row)  # Enter takes it
            self._held = True
        else:
            self._take(cell)

    def _asked_about(self, mode: Mode) -> int:
        """Row of the cell asked about, if an event of this kind can begin with it; else -1."""
        scene, asked = self._session.scene, self._questions.current
        if scene is None or asked is None:
            return -1
        fits = _HISTORY if asked.slot[0] == "history" else _FATE
        return scene.detections.row_of(*asked.slot[1]) if mode in fits else -1

    def cancel(self) -> None:
        """Esc: forget the picked cells; without any, go back to review."""
        self.set_mode(Mode.REVIEW if self.picking.empty else self.picking.mode)

    # ------------------------------------------------------------------ masks

    def _label(self, frame: int, point: tuple[float, ...]) -> int:
        """Label of the mask at a place as it is now, 0 if there is none."""
        masks = self._session.masks
        return 0 if masks is None else masks.label_at(frame, point)

    def _mend_here(self) -> None:
        """As a click at the pointer, or on the cell that is outlined elsewhere."""
        place, row = self._here, self.outlined
        if row >= 0 and self.finder is not None:
            cell = self.finder.ref(row)
            if place is None or self._label(self.frame, place) != cell.label:
                place = cell.position
        if self.picking.mode == Mode.CHECK:
            self._check_view(self.frame)
        elif place is None:
            self._say(self.hint)
        else:
            self._mend_at(self.frame, place)

    def _check_view(self, frame: int) -> None:
        session, area = self._session, self.area()
        with session.telling():
            made = session.mend(MendKind.CHECK, frame, *(area or ()))
            checked = session.masks.answers.checked if session.masks else 0
            self._say(_checked_words(len(made.right), checked), "info")
        self._refresh()

    def _mend_at(self, frame: int, point: tuple[float, ...], other: bool = False) -> None:
        if self.picking.mode == Mode.CHECK:
            self._check_view(frame)
            return
        if other:
            with self._session.telling():
                problem = self.take_outline(frame, point)
                if problem:
                    self._say(problem)
            return
        session, kind = self._session, self.picking.mode.mends
        with session.telling():
            label = self._label(frame, point)
            places = self.picking.point(frame, point, label)
            if places and kind is not None:
                name = session.names(CellRef(frame, label, point))
                said = session.mend(kind, frame, *places).words
                if kind == MendKind.REMOVE:
                    said = f"frame {frame}: {name} is not a cell"
                self._say(f"Saved: {said}.", "info")
        self._refresh()

    def choose_again(self) -> None:
        """Choose all masks again with the answers about some."""
        with self._session.telling():
            self._session.choose_again()

    # ------------------------------------------------------------------ the model asks

    def suggest(self) -> None:
        """G: go to the model's question or, if it is in view, to another one."""
        questions = self._questions
        if self._session.movie is None:
            self._say(self.hint)
            return
        if questions.engaged and self.asking and not questions.away and questions.current:
            questions.pass_on(questions.current)
        questions.engaged = True
        questions.prepare()
        if self.asking:
            questions.show()
        else:
            self.set_mode(Mode.SUGGEST)

    def stop_asking(self) -> None:
        """Stop asking; everything is kept."""
        self._questions.engaged = False
        if self.asking:
            self.set_mode(Mode.REVIEW)

    def _to_answer(self) -> Suggestion | None:
        """The question to answer; None if nobody can have seen it yet."""
        asked = self._question()
        if asked is None or self._questions.in_view >= GLANCE:
            return asked
        self._say("The question has only just appeared. Look at it first, then answer.")
        return None

    def _question(self) -> Suggestion | None:
        """The question in view; shows a message if there is none."""
        if self._questions.current is None:
            self._say(self.hint)
        return self._questions.current

    # ------------------------------------------------------------------ answers

    def accept(self) -> None:
        """Enter: yes to the proposal; in other modes as a click on the outlined cell."""
        if self.asking or self.picking.mode == Mode.REVIEW:
            self.choose(1)
        elif self.picking.mode.mends is not None:
            self._mend_here()
        elif self.outlined >= 0:
            self._pick(self.outlined)
        else:
            self._say(f"No cell is outlined. {self.hint}")

    def choose(self, number: int) -> None:
        """Confirm the event listed under this number, from 1."""
        self._answer(Kind.CONFIRM, number)

    def reject(self) -> None:
        """Backspace: the proposal is wrong; or forget the picked cells."""
        if self.asking or self.picking.mode == Mode.REVIEW:
            self._answer(Kind.REJECT)
        else:
            self.cancel()

    def cannot_tell(self) -> None:
        """U: the annotator cannot tell."""
        self._answer(Kind.CANNOT_TELL)

    def _answer(self, kind: Kind, number: int = 1) -> None:
        """Answer about the event with this number in the question, or about the outlined cell."""
        if self.asking:
            asked = self._to_answer()
            if asked is None:
                return
            if number > len(asked.listed):
                self._say(f"There is no alternative {number}.")
            elif kind == Kind.REJECT:
                self._questions.deny(asked)
            elif kind == Kind.CONFIRM and number == 1 and self._questions.denied:
                self._say(
                    "You said no to this. Choose what happened instead, or press G to continue."
                )
            else:
                other = None if number == 1 else asked.listed[number - 1]
                self._questions.reply(asked, kind, other)
        elif self.outlined < 0 or not self.proposals:
            last = self.outlined >= 0 and self._session.tracking is not None
            self._say("This is the last frame: nothing comes after it." if last else _CHOOSE)
        elif number <= len(self.proposals) and self._looked_at:
            store = self._session.answers
            before = None if store is None else store.history
            self._note(kind, self.proposals[number - 1].event, "review")
            if kind == Kind.REJECT and store is not None and store.history is not before:
                self._say(_INSTEAD, "info")

    def name_fate(self, fate: str) -> None:
        """Name the cause of the end or the beginning of the outlined cell, one of `FATES`."""
        if self.outlined < 0 or self.finder is None:
            self._say("Click the cell first, in the first or last frame in which it is seen.")
            return
        cell, event = (self.finder.ref(self.outlined),), FATES[fate][0]
        ends = EventRef(event, cell) if event == Event.DISAPPEAR else EventRef(event, (), cell)
        self._session.edits.note(Kind.CONFIRM, ends, "click", named=fate)

    def undo(self) -> None:
        """Undo the last answer, or forget the picked cells."""
        if self.asking and self._questions.check.running:
            if not self._questions.take_back():
                self._say("No event of this sample has been judged yet.")
        elif self.picking.empty:
            self._session.undo()
        else:
            self.cancel()

    def redo(self) -> None:
        """Repeat the answer undone last."""
        if self.picking.empty:
            self._session.redo()
        else:
            self.cancel()

    @property
    def _looked_at(self) -> bool:
        """Whether the user can have seen the proposals, which an answer changes."""
        again = self._noted == self.outlined
        return not again or time.monotonic() - self._since >= GLANCE

    def _note(self, kind: Kind, event: EventRef, source: str) -> None:
        self._noted = self.outlined
        now = time.monotonic()
        seconds, self._since = min(round(now - self._since, 2), _LONGEST), now
        self._session.edits.note(kind, event, source, seconds)

    def _say(self, words: str, level: str = "hint") -> None:
        self._session.message.emit(level, words)


def _checked_words(now: int, all_in_all: int) -> str:
    """Message after an area with some cells was found right."""
    told = f"Saved: {plural(now, 'mask')} in view {'is' if now == 1 else 'are'} right. "
    left = FEW - all_in_all
    if left > 0:
        return f"{told}After {left} more, “{_AGAIN}” learns from them."
    return f"{told}“{_AGAIN}” now learns from such masks."
