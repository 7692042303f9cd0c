"""How events and tracks look: colours that colour-blind people can tell apart, shapes, few words.

The colours of events are those of Okabe and Ito (jfly.uni-koeln.de/color).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from psygnal import Signal
from qtpy.QtCore import QSignalBlocker
from qtpy.QtWidgets import QComboBox

from bridgetrack.hypotheses.events import Event
from bridgetrack.regions.mend import MendKind
from bridgetrack.tracks.colours import Colouring, colouring, colourings
from bridgetrack.tracks.numbers import column_words
from bridgetrack.tracks.tracks import Tracks
from bridgetrack.ui.widgets import fitted


@dataclass(frozen=True)
class Look:
    """Colour (hex) and marker of an event, with its name in words."""

    colour: str
    symbol: str
    sign: str
    name: str


LOOKS = {
    Event.MOVE: Look("#56b4e9", "disc", "●", "Continues"),
    Event.DIVIDE: Look("#e69f00", "star", "★", "Divides"),
    Event.SPLIT: Look("#cc79a7", "clobber", "✤", "Split in two"),
    Event.MERGE: Look("#009e73", "diamond", "◆", "Merges"),
    Event.APPEAR: Look("#f0e442", "triangle_up", "▲", "Appears"),
    Event.DISAPPEAR: Look("#d55e00", "triangle_down", "▼", "Leaves"),
    Event.SKIP: Look("#0072b2", "square", "■", "Reappears"),
    Event.FALSE: Look("#bbbbbb", "x", "✕", "Not a cell"),
}

MEND_SIGNS = {
    MendKind.CUT: "✂",
    MendKind.JOIN: "∪",
    MendKind.GROW: "+",
    MendKind.REMOVE: "−",
    MendKind.OUTLINE: "○",
    MendKind.PAINT: "✎",
    MendKind.KEEP: "✓",
    MendKind.CHECK: "☑",
}

PROPOSAL = "#ffffff"


def rgba(colour: str, opacity: float = 1.0) -> tuple[float, float, float, float]:
    """Colour as four numbers from 0 to 1."""
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return r, g, b, opacity


USUAL = "lineage"


class Looks:
    """The selected tracks and the colours, shared by the panels of a viewer.

    Signals: `chosen_changed`, `colour_changed`.
    """

    chosen_changed = Signal()
    colour_changed = Signal()

    def __init__(self) -> None:
        self.chosen: tuple[int, ...] = ()
        self.colour = USUAL
        self._made: tuple[Tracks, Colouring] | None = None

    def choose(self, tracks: Iterable[int]) -> None:
        """Select tracks by their numbers, and no others."""
        chosen = tuple(tracks)
        if chosen != self.chosen:
            self.chosen = chosen
            self.chosen_changed.emit()

    def colour_by(self, colour: str) -> None:
        """Colour tracks, cells and trees by another quantity."""
        if colour != self.colour:
            self.colour = colour
            self.colour_changed.emit()

    def colouring(self, tracks: Tracks) -> Colouring:
        """The colours of some tracks; by lineage if they lack the chosen quantity."""
        made = self._made
        by = self.colour if self.colour in colourings(tracks) else USUAL
        if made is None or made[0] is not tracks or made[1].by != by:
            self._made = made = tracks, colouring(tracks, by)
        return made[1]


class ColourBox(QComboBox):
    """Chooses the colours of tracks, cells and trees."""

    def __init__(self, looks: Looks) -> None:
        super().__init__()
        self._looks = looks
        fitted(self)
        self.setToolTip(
            "Colours of tracks, cells and lineage trees; for certainty, orange is doubtful"
        )
        self.offer({"lineage": "lineage", "certainty": "certainty"})
        self.currentIndexChanged.connect(lambda k: looks.colour_by(str(self.itemData(k))))

    def offer(self, known: Mapping[str, str]) -> None:
        """List what tracks can be coloured by: names and words."""
        with QSignalBlocker(self):
            if list(known) != [self.itemData(k) for k in range(self.count())]:
                self.clear()
                for name, words in known.items():
                    self.addItem(f"Colour by {column_words(words)}", name)
            self.setCurrentIndex(max(self.findData(self._looks.colour), 0))
