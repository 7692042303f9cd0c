"""Which kinds of events a movie has: those that a person rules out are not proposed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event

_EVENTS = {
    "divisions": Event.DIVIDE,
    "appearances": Event.APPEAR,
    "disappearances": Event.DISAPPEAR,
    "gaps": Event.SKIP,
    "splits": Event.SPLIT,
    "merges": Event.MERGE,
    "specks": Event.FALSE,
}


@dataclass(frozen=True)
class EventKinds:
    """What can happen in a movie, besides that cells move.

    Parameters
    ----------
    divisions
        Cells divide.
    appearances
        Cells come into view, or into focus. Where they do not, only those appear that nothing
        else can explain.
    disappearances
        Cells leave, or die. Where they do not, only those disappear that nothing else can explain.
    gaps
        Cells are missed in a frame or two and seen again.
    splits
        Cells are cut in two by the segmentation, or part after they were drawn as one.
    merges
        Two cells that touch are drawn as one.
    specks
        Some masks are no cells.
    """

    divisions: bool = True
    appearances: bool = True
    disappearances: bool = True
    gaps: bool = True
    splits: bool = True
    merges: bool = True
    specks: bool = True

    @property
    def absent(self) -> frozenset[Event]:
        """Kinds of events that do not occur."""
        return frozenset(_EVENTS[f.name] for f in fields(self) if not getattr(self, f.name))

    @property
    def words(self) -> tuple[str, ...]:
        """What does not occur, in the words that `without` takes."""
        return tuple(f.name for f in fields(self) if not getattr(self, f.name))

    @classmethod
    def without(cls, words: Iterable[str]) -> EventKinds:
        """All kinds but some.

        Parameters
        ----------
        words
            Names of fields (``"merges"``), or of events in files (``"merge"``, ``"skip"``).

        Raises
        ------
        InputError
            Where a word is unknown.
        """
        by_event = {event.key: name for name, event in _EVENTS.items()}
        absent = set()
        for word in words:
            name = by_event.get(word, word)
            if name not in _EVENTS:
                raise InputError(
                    f"{word!r} is no kind of event that a movie may be without; choose from "
                    + ", ".join(_EVENTS)
                )
            absent.add(name)
        return cls(**dict.fromkeys(absent, False))


EVERYTHING = EventKinds()
"""All kinds of events."""


def kind_words(event: Event) -> str:
    """What a kind of events is called in `EventKinds`."""
    return next(name for name, kind in _EVENTS.items() if kind == event)
