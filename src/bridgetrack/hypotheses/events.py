"""The events that explain what happens to detections between frames."""

from __future__ import annotations

from enum import IntEnum


class Event(IntEnum):
    """Kinds of hypotheses (design after 001, section 5.1, and 000, section 1.3.2)."""

    MOVE = 0
    DIVIDE = 1
    SPLIT = 2
    MERGE = 3
    APPEAR = 4
    DISAPPEAR = 5
    SKIP = 6
    FALSE = 7

    @property
    def key(self) -> str:
        """Name used in files, e.g. ``"move"``."""
        return self.name.lower()

    @classmethod
    def from_key(cls, key: str) -> Event:
        """The event with this name in files; KeyError where there is none."""
        return cls[key.upper()]


N_SOURCES = {
    Event.MOVE: 1,
    Event.DIVIDE: 1,
    Event.SPLIT: 1,
    Event.MERGE: 2,
    Event.APPEAR: 0,
    Event.DISAPPEAR: 1,
    Event.SKIP: 1,
    Event.FALSE: 1,
}
"""How many detections of the earlier frame an event names (a false detection names itself)."""

N_TARGETS = {
    Event.MOVE: 1,
    Event.DIVIDE: 2,
    Event.SPLIT: 2,
    Event.MERGE: 1,
    Event.APPEAR: 1,
    Event.DISAPPEAR: 0,
    Event.SKIP: 1,
    Event.FALSE: 0,
}
"""How many detections of the later frame an event names."""
