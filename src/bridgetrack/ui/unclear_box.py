"""Asks whether a movie has a kind of events of which several were found, none of them clear."""

from __future__ import annotations

from dataclasses import replace

from bridgetrack.hypotheses.events import Event
from bridgetrack.hypotheses.kinds import kind_words
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.pipeline.unclear_kinds import clearest, unclear_kinds, unclear_words
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.widgets import Column, button, row, text


class UnclearBox(Column):
    """The question with its buttons; hidden where there is none."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._session, self._state = panel.session, panel.state
        self._tracking: Tracking | None = None
        self._kind: Event | None = None  # what is asked about
        self._absent: Event | None = None  # what was said not to occur
        self._present: set[Event] = set()  # what was said to occur
        self.words = self.add(text())
        self.none = button(
            "There are none", "Leave all of them out, and track the movie again", self._leave_out,
            hot="Alt+N",
        )  # fmt: skip
        self.one = button("Show one", "Go to the clearest of them", self._show_one, hot="Alt+G")
        self.some = button("Some are real", "Keep them, and do not ask again", self._keep)
        self.back = button("Bring back", "Track with them again", self._take_back)
        self.add(row(self.none, self.one))
        self.add(row(self.some, self.back))
        self.hide()
        panel.listen(self._session.movie_changed, self._forget)

    def show_for(self, tracking: Tracking | None) -> None:
        """Ask about a tracking; nothing where None."""
        self._tracking = tracking
        found = {} if tracking is None else unclear_kinds(tracking)
        asked = [kind for kind in found if kind not in self._present]
        self._kind = asked[0] if asked else None
        if self._absent is not None and kind_words(self._absent) not in self._session.kinds.words:
            self._absent = None
        if self._kind is not None:
            words = f"{unclear_words(self._kind, found[self._kind])}. Are there any in this movie?"
        elif self._absent is not None:
            words = f"No {kind_words(self._absent)} any more; see What can happen."
        else:
            words = ""
        self.words.setText(words)
        for each in (self.none, self.one, self.some):
            each.setVisible(self._kind is not None)
        if self._absent is not None:
            self.back.setText(f"Bring {kind_words(self._absent)} back")
        self.back.setVisible(self._absent is not None)
        self.setVisible(tracking is not None and bool(words))

    def _forget(self) -> None:
        """Another movie has other kinds."""
        self._present, self._absent = set(), None
        self.show_for(None)

    def _leave_out(self) -> None:
        if self._kind is not None:
            self._absent = self._kind
            self._say(self._kind, False)

    def _take_back(self) -> None:
        if self._absent is not None:
            self._present.add(self._absent)
            self._say(self._absent, True)

    def _say(self, kind: Event, occurs: bool) -> None:
        self._session.set_kinds(replace(self._session.kinds, **{kind_words(kind): occurs}))

    def _keep(self) -> None:
        if self._kind is not None:
            self._present.add(self._kind)
            self.show_for(self._tracking)

    def _show_one(self) -> None:
        if self._tracking is not None and self._kind is not None:
            self._state.canvas.activate()
            self._state.annotator.set_mode(Mode.REVIEW)
            self._state.annotator.select(clearest(self._tracking, self._kind))
