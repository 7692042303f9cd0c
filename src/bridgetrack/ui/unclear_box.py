"""Says that several events of a kind were found, none of them clear, and offers to drop it."""

from __future__ import annotations

from dataclasses import replace

from bridgetrack.hypotheses.events import Event, kind_words
from bridgetrack.pipeline.summary import unclear_kinds, unclear_words
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.ui.panel import Panel
from bridgetrack.ui.widgets import Column, button, text


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
