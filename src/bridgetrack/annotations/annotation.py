"""One answer about a movie: which event holds, which does not, or which of a few."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, FiniteFloat, PlainSerializer, PlainValidator

from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import FATES, N_SOURCES, N_TARGETS, Event
from bridgetrack.schema import Count

Cell = tuple[int, int]
"""Frame and label of a detection."""

Slot = tuple[str, Cell]
"""``("fate", cell)`` or ``("history", cell)`` (design of 001, eq. 17-18, before numbering)."""

EventKey = tuple[Event, tuple[Cell, ...], tuple[Cell, ...]]
"""Identity of an event, without positions."""

RANDOM = "random"
"""Source of answers about slots drawn at random, as sessions ask them: the more slots an event
covers, the more often it is drawn. Only these, and `UNIFORM`, give an unbiased accuracy."""

SUGGESTED = "suggested"
"""Source of answers to other questions: about events of which the model is uncertain."""

UNIFORM = "uniform"
"""Source of answers about events drawn uniformly at random."""

VERIFIED = "verified"
"""Source of answers that a verified track rests on."""

_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Kind(StrEnum):
    """Kind of an annotation."""

    CONFIRM = "confirm"
    REJECT = "reject"
    ONE_OF = "one_of"
    CANNOT_TELL = "cannot_tell"


@dataclass(frozen=True, slots=True, order=True)
class CellRef:
    """A detection as it was when it was annotated.

    Parameters
    ----------
    frame, label
        Frame, from 0, and label in the segmentation, from 1 (0 is allowed for tables of points).
    position
        Centroid in pixels, ``(y, x)`` or ``(z, y, x)``.
    """

    frame: Count
    label: Count
    position: tuple[FiniteFloat, ...]

    def __str__(self) -> str:
        return f"cell {self.label} in frame {self.frame}"

    @property
    def cell(self) -> Cell:
        """Frame and label."""
        return self.frame, self.label


def _event(key: object) -> Event:
    """An event by its name in files."""
    names = [event.key for event in Event]
    if key not in names:
        raise InputError(f"{key!r} is no event; choose from {', '.join(names)}")
    return Event.from_key(str(key))


@dataclass(frozen=True, slots=True)
class EventRef:
    """An event between cells, or, with one cell only, any event of this kind at that cell.

    Raises an `InputError` if the number of cells or their frames do not fit the event.

    Parameters
    ----------
    event
        Kind of event.
    sources, targets
        Cells of the earlier and of the later frame, as many as the event has; they are kept sorted.
        A daughter of a division may be seen a frame late.
        A *pattern* names only one cell: one source stands for "an event of this kind at this cell's
        fate", one target for "... at this cell's history".
    """

    event: Annotated[Event, PlainValidator(_event), PlainSerializer(lambda event: event.key)]
    sources: tuple[CellRef, ...] = ()
    targets: tuple[CellRef, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(sorted(self.sources)))
        object.__setattr__(self, "targets", tuple(sorted(self.targets)))
        n_sources, n_targets = N_SOURCES[self.event], N_TARGETS[self.event]
        full = (len(self.sources), len(self.targets)) == (n_sources, n_targets)
        fits = len(self.sources) <= n_sources and len(self.targets) <= n_targets
        if not full and (not fits or len(self.cells) != 1):
            raise InputError(
                f"a {self.event.key} has {n_sources} source and {n_targets} target cells, "
                f"not {len(self.sources)} and {len(self.targets)}"
            )
        if len({c.cell for c in self.cells}) < len(self.cells):
            raise InputError(f"a {self.event.key} names {self.cells[0]} twice")
        self._check_frames()

    def _check_frames(self) -> None:
        first = {c.frame for c in self.sources}
        later = sorted({c.frame for c in self.targets})
        divides, skips = self.event == Event.DIVIDE, self.event == Event.SKIP
        if len(first) > 1 or (len(later) > 1 and not divides):
            raise InputError(f"the cells of a {self.event.key} lie in frames that differ")
        if first and later:
            start = first.pop()
            gaps = [t - start for t in later]
            if gaps[0] < 2 if skips else gaps[0] < 1 or gaps[-1] > 1 + divides:
                wanted = (
                    "two or more frames" if skips else "a frame or two" if divides else "one frame"
                )
                raise InputError(f"a {self.event.key} spans {wanted}, not {gaps[-1]}")

    @property
    def cells(self) -> tuple[CellRef, ...]:
        """All cells named."""
        return self.sources + self.targets

    @property
    def complete(self) -> bool:
        """Whether this names one event and not any event of its kind at one cell."""
        return len(self.cells) == N_SOURCES[self.event] + N_TARGETS[self.event]

    @property
    def key(self) -> EventKey:
        """The event without positions."""
        return (
            self.event,
            tuple(c.cell for c in self.sources),
            tuple(c.cell for c in self.targets),
        )

    @property
    def slots(self) -> tuple[Slot, ...]:
        """Slots that the event covers (a pattern: the one slot that it refers to)."""
        slots = [("fate", c.cell) for c in self.sources]
        slots += [("history", c.cell) for c in self.targets]
        if self.event == Event.FALSE:
            slots += [("history", c.cell) for c in self.sources]
        return tuple(slots)


@dataclass(frozen=True, slots=True)
class Annotation:
    """One answer; raises an `InputError` if its parts do not fit each other.

    Parameters
    ----------
    id
        Unique name within a set: letters, digits, ``_``, ``.``, ``-``.
    kind
        ``confirm``: the event holds. ``reject``: the event, or any event that fits the pattern,
        does not hold. ``one_of``: exactly one of these events of one common slot holds.
        ``cannot_tell``: the annotator could not tell; labels nothing.
    events
        The events meant: one, for ``one_of`` two or more.
    created
        Time in ISO 8601 with the zone, None if no clock was involved.
    source
        Where the answer came from: ``click``, ``review``, ``correction``, ``import``,
        ``simulated``, `SUGGESTED`, or `RANDOM` or `UNIFORM` if it was drawn at random.
    seconds
        Time that the answer took, None if unknown.
    right
        Whether the model had proposed the event that holds; None if not asked, or unknown.
    named
        Which of `FATES` is the cause of the end or beginning; None if nobody named it.
    """

    id: str
    kind: Kind
    events: tuple[EventRef, ...]
    created: str | None = None
    source: str = "click"
    seconds: Annotated[FiniteFloat, Field(ge=0)] | None = None
    right: bool | None = None
    named: str | None = None

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise InputError(
                f"the annotation id {self.id[:80]!r} must be 1 to 64 of: letters digits _ . -"
            )
        if not _ID.fullmatch(self.source):
            raise InputError(f"annotation {self.id}: the source {self.source[:80]!r} is not a word")
        if self.created is not None and not is_time(self.created):
            raise InputError(
                f"annotation {self.id}: created is {self.created[:80]!r}, not a time such as "
                f"2024-05-17T09:30:00+00:00"
            )
        if self.named is not None and self.events[0].event != FATES.get(self.named, ("",))[0]:
            raise InputError(
                f"annotation {self.id}: {self.named[:80]!r} is not a known end or beginning"
            )
        self._check_events()

    def __str__(self) -> str:
        return f"{describe(self)} ({self.id})"

    def _check_events(self) -> None:
        if self.kind == Kind.ONE_OF:
            if len({e.key for e in self.events}) < max(2, len(self.events)):
                raise InputError(f"annotation {self.id}: one_of needs two or more different events")
            if not self.common_slots:
                raise InputError(
                    f"annotation {self.id}: the events of one_of share no cell's fate or history"
                )
        elif len(self.events) != 1:
            raise InputError(
                f"annotation {self.id}: {self.kind} needs one event, not {len(self.events)}"
            )
        if self.kind in (Kind.CONFIRM, Kind.ONE_OF) and not all(e.complete for e in self.events):
            raise InputError(
                f"annotation {self.id}: {self.kind} needs all cells of a {self.events[0].event.key}"
            )

    @property
    def cells(self) -> tuple[CellRef, ...]:
        """All cells named, in order, repeated if several events name them."""
        return tuple(c for e in self.events for c in e.cells)

    @property
    def common_slots(self) -> tuple[Slot, ...]:
        """Slots that every event covers."""
        rest = [set(e.slots) for e in self.events[1:]]
        return tuple(s for s in self.events[0].slots if all(s in r for r in rest))


def now() -> str:
    """The present time in the form of `Annotation.created`."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def is_time(text: str) -> bool:
    """Whether a text is a time in ISO 8601 with its zone."""
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


# ---------------------------------------------------------------------- in words

FATE = {
    Event.MOVE: "continues",
    Event.DIVIDE: "divides",
    Event.SPLIT: "is split by the segmentation",
    Event.MERGE: "merges with another cell",
    Event.APPEAR: "appears",
    Event.DISAPPEAR: "leaves",
    Event.SKIP: "reappears after some frames",
    Event.FALSE: "is not a cell",
}
"""Words of an event for its earlier cell."""

HISTORY = {
    **FATE,
    Event.MOVE: "comes from the frame before",
    Event.DIVIDE: "is a daughter",
    Event.SPLIT: "is a piece of a split cell",
    Event.MERGE: "contains two merged cells",
    Event.SKIP: "was last seen some frames before",
}
"""Words of an event for its later cell."""

NOUN = {
    Event.MOVE: ("a move", "moves"),
    Event.DIVIDE: ("a division", "divisions"),
    Event.SPLIT: ("a cell split into two masks", "cells split into two masks"),
    Event.MERGE: ("a merge", "merges"),
    Event.APPEAR: ("an appearance", "appearances"),
    Event.DISAPPEAR: ("a disappearance", "disappearances"),
    Event.SKIP: ("a cell missed in some frames", "cells missed in some frames"),
    Event.FALSE: ("a false detection", "false detections"),
}
"""Singular and plural of each event."""


Name = Callable[[CellRef], str]
"""Gives the name of a cell."""


def by_label(cell: CellRef) -> str:
    """A cell by its number in the segmentation, e.g. ``cell 7``."""
    return f"cell {cell.label}"


def cell_words(cell: Cell) -> str:
    """A cell, e.g. ``cell 12 in frame 5``."""
    return f"cell {cell[1]} in frame {cell[0]}"


_BETWEEN = {
    Event.MOVE: ("moves to {after}", "comes from {before}"),
    Event.DIVIDE: ("divides into {after}", "is a daughter of {before}"),
    Event.SPLIT: ("is split by the segmentation into {after}", "is a piece of {before}"),
    Event.MERGE: ("merges ({before} become {after})", "contains {before}, merged"),
    Event.SKIP: ("reappears as {after} after some frames", "was {before} some frames before"),
}
"""Words of events between cells, for an earlier and for a later cell."""


def short_words(event: EventRef, history: bool, name: Name = by_label) -> str:
    """An event as a predicate of the cell in question, e.g. ``divides into #4 and #7``."""
    if event.event not in _BETWEEN:
        return FATE[event.event]
    first, then = [name(c) for c in event.sources], [name(c) for c in event.targets]
    before, after = " and ".join(first), " and ".join(then)
    if first == then and event.event == Event.MOVE:
        return "was already there" if history else "continues"
    if first == then:
        return (HISTORY if history else FATE)[event.event]
    return _BETWEEN[event.event][history].format(before=before, after=after)


def describe_event(event: EventRef, name: Name = by_label) -> str:
    """An event or a pattern, e.g. ``cell 3 in frame 0 divides into cell 4 and cell 7``."""
    first = event.cells[0]
    return f"{name(first)} in frame {first.frame} {_predicate(event, name)}"


def describe(annotation: Annotation, name: Name = by_label) -> str:
    """An annotation as one line, e.g. ``not: cell 3 in frame 0 divides``."""
    event, first = annotation.events[0], annotation.cells[0]
    cell = f"{name(first)} in frame {first.frame}"
    if annotation.kind == Kind.REJECT and event.event == Event.FALSE:
        return f"{cell} is a cell"
    words = "; ".join(describe_event(e, name) for e in annotation.events)
    if annotation.named is not None:
        words = f"{cell} {FATES[annotation.named][1]}"
    return f"{_SAID.get(annotation.kind, '')}{words}"


def _predicate(event: EventRef, name: Name) -> str:
    if event.complete:
        return short_words(event, False, name)
    return (FATE if event.sources else HISTORY)[event.event]


_SAID = {Kind.REJECT: "not: ", Kind.CANNOT_TELL: "cannot tell: ", Kind.ONE_OF: "one of: "}
