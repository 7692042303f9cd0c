"""How events look and read: colours that colour-blind people can tell apart, shapes, few words.

The colours are those of Okabe and Ito (jfly.uni-koeln.de/color).
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.hypotheses.events import Event
from bridgetrack.regions.mend import MendKind
from bridgetrack.ui.picking import Mode


@dataclass(frozen=True)
class Look:
    """Colour (hex) and marker of an event, with its name for people."""

    colour: str
    symbol: str
    sign: str
    name: str


LOOKS = {
    Event.MOVE: Look("#56b4e9", "disc", "●", "Moves on"),
    Event.DIVIDE: Look("#e69f00", "star", "★", "Divides"),
    Event.SPLIT: Look("#cc79a7", "clobber", "✤", "Cut in two"),
    Event.MERGE: Look("#009e73", "diamond", "◆", "Merges"),
    Event.APPEAR: Look("#f0e442", "triangle_up", "▲", "Appears"),
    Event.DISAPPEAR: Look("#d55e00", "triangle_down", "▼", "Leaves"),
    Event.SKIP: Look("#0072b2", "square", "■", "Missed for some frames"),
    Event.FALSE: Look("#bbbbbb", "x", "✕", "Not a cell"),
}

MEND_WORDS = {
    MendKind.CUT: "two cells",
    MendKind.JOIN: "one cell",
    MendKind.GROW: "a cell",
    MendKind.REMOVE: "no cell",
    MendKind.OUTLINE: "this outline",
    MendKind.PAINT: "as painted",
    MendKind.KEEP: "as drawn",
    MendKind.CHECK: "all in view",
}
"""What a change of masks says."""

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

_OTHER_MODES = {
    Mode.SWAP: "Swap",
    Mode.BREAK: "Break",
    Mode.VERIFY: "Verify this track",
    Mode.FAMILY: "Verify this family",
    Mode.DELETE: "Delete this track",
}


def mode_look(mode: Mode) -> tuple[str, str]:
    """What a click in a mode says, and its colour."""
    if mode.event is not None:
        look = LOOKS[mode.event]
        return f"{look.sign} {look.name}", look.colour
    said = _OTHER_MODES.get(mode) if mode.mends is None else MEND_WORDS[mode.mends]
    return said or "", PROPOSAL


PROPOSAL = "#ffffff"
GHOST = "#ffffff"


def rgba(colour: str, opacity: float = 1.0) -> tuple[float, float, float, float]:
    """Colour as four numbers from 0 to 1."""
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return r, g, b, opacity
