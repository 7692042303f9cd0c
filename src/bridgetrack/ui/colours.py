"""How events look: colours that colour-blind people can tell apart, and a shape for each.

The colours are those of Okabe and Ito (jfly.uni-koeln.de/color).
"""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.hypotheses.events import Event


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
    Event.SKIP: Look("#0072b2", "square", "■", "Moves over a gap"),
    Event.FALSE: Look("#bbbbbb", "x", "✕", "Not a cell"),
}

PROPOSAL = "#ffffff"
GHOST = "#ffffff"


def rgba(colour: str, opacity: float = 1.0) -> tuple[float, float, float, float]:
    """Colour as four numbers from 0 to 1."""
    r, g, b = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return r, g, b, opacity
