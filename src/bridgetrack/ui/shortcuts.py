"""The keys of the canvas, each with its words; the buttons show the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.picking import Mode


@dataclass(frozen=True)
class Shortcut:
    """A key of the canvas."""

    name: str  # used to find it, e.g. for its button
    keys: tuple[str, ...]  # in napari's words, none or some; the first is shown
    words: str  # what it does
    act: Callable[[Annotator], None]


_CHOICES = 5
"""Alternatives that have a key: as many as a question lists."""

_MODES = [
    Shortcut(mode.name, tuple(mode.key), mode.hint, partial(Annotator.start, mode=mode))
    for mode in Mode
    if mode.words
]
_NUMBERS = [
    Shortcut(f"choose_{k}", (f"{k}",), f"Alternative {k}", partial(Annotator.choose, number=k))
    for k in range(1, 1 + _CHOICES)
]

SHORTCUTS = (
    *_MODES,
    Shortcut("again", (), "Cut, join, add and remove cells in all frames where the image shows "
             "that it is needed. Your answers about masks are kept, and learned from",
             Annotator.choose_again),
    Shortcut("suggest", ("G",), "Go to the event for which an answer helps most",
             Annotator.suggest),
    Shortcut("accept", ("Enter",), "Yes, that is right", Annotator.accept),
    Shortcut("reject", ("Backspace",), "No, not this", Annotator.reject),
    Shortcut("unsure", ("U",), "I cannot tell; it is not asked again", Annotator.cannot_tell),
    Shortcut("undo", ("Z", "Control-Z"), "Undo the last answer", Annotator.undo),
    Shortcut("redo", ("R", "Control-Shift-Z"), "Redo what was undone", Annotator.redo),
    Shortcut("cancel", ("Escape",), "Cancel", Annotator.cancel),
    *_NUMBERS,
)  # fmt: skip
"""All keys of the canvas, and what buttons do as keys would."""


def shortcut(name: str) -> Shortcut:
    """The shortcut with this name."""
    return next(s for s in SHORTCUTS if s.name == name)
