"""What the last change of masks suggests for other frames, in words, with two buttons."""

from __future__ import annotations

from bridgetrack.ui.panel import Panel
from bridgetrack.ui.shortcuts import shortcut
from bridgetrack.ui.widgets import Column, button, row, text


class SameBox(Column):
    """The words and the buttons; hidden where nothing is suggested."""

    def __init__(self, panel: Panel) -> None:
        super().__init__()
        session, self._annotator = panel.session, panel.state.annotator
        self.words = self.add(text())
        key = shortcut("same")
        self.next = button("Next", key.words, self._annotator.do_same, key=key, icon="next")
        self.all = button("In all", "Do the same in all frames named",
                          self._annotator.do_all_the_same, icon="yes")  # fmt: skip
        self.column.addWidget(row(self.next, self.all))
        self.hide()
        panel.follow(self._refresh, session.answers_changed, session.movie_changed)

    def _refresh(self) -> None:
        words = self._annotator.same_words
        self.words.setText(words)
        self.setVisible(bool(words))
