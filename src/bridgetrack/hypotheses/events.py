"""The events that explain what happens to detections between frames, and tables of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.arrays import Index, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, warn
from bridgetrack.progress import in_parts

_HIGHEST = int(np.iinfo(np.int64).max)


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


ODD = (Event.FALSE, Event.SKIP, Event.MERGE, Event.SPLIT)
"""Kinds of events by which cells and their masks differ."""

N_SOURCES = dict.fromkeys(Event, 1) | {Event.MERGE: 2, Event.APPEAR: 0}
"""How many detections of the earlier frame an event names (a false detection names itself)."""

N_TARGETS = dict.fromkeys(Event, 1) | {
    Event.DIVIDE: 2,
    Event.SPLIT: 2,
    Event.DISAPPEAR: 0,
    Event.FALSE: 0,
}
"""How many detections of the later frame an event names."""

FATES = {
    "death": (Event.DISAPPEAR, "dies"),
    "exit": (Event.DISAPPEAR, "leaves the field of view"),
    "fusion": (Event.DISAPPEAR, "fuses with another cell"),
    "birth": (Event.APPEAR, "is born"),
    "entry": (Event.APPEAR, "enters the field of view"),
}
"""Causes of the end or the beginning of a track, each with its event and its words."""


@dataclass(frozen=True)
class Events:
    """Events named in rows of the table of detections: proposed, annotated, chosen or true ones.

    The *slots* of a movie with n detections are numbered 0..2n-1: slot ``i`` is the fate of
    detection i, slot ``n + i`` its history. Fates in the last frame and histories in the first
    are not slots of the tracking problem (`active_slots`).

    Parameters
    ----------
    event
        Kinds, shape (E,), values of `Event`.
    sources, targets
        Rows of the earlier and of the later detections, shape (E, 2), -1 where there is none. The
        first entry is filled first; pairs ascend. A false detection has its row in
        ``sources[:, 0]``.
    """

    event: NDArray[np.int8]
    sources: Index
    targets: Index

    def __len__(self) -> int:
        return len(self.event)

    @classmethod
    def of_kind(
        cls, event: Event, sources: Sequence[Index] = (), targets: Sequence[Index] = ()
    ) -> Events:
        """Events of one kind from up to two columns of sources and of targets, each (E,)."""
        n = len((*sources, *targets)[0])

        def padded(columns: Sequence[Index]) -> Index:
            out = np.full((n, 2), -1, dtype=np.int64)
            for k, column in enumerate(columns):
                out[:, k] = column
            return out

        return cls(np.full(n, event, dtype=np.int8), padded(sources), padded(targets))

    @classmethod
    def join(cls, parts: Sequence[Events]) -> Events:
        """Several tables, one after another."""
        event = [np.zeros(0, dtype=np.int8), *(p.event for p in parts)]
        nobody = np.zeros((0, 2), dtype=np.int64)
        return cls(
            np.concatenate(event),
            np.concatenate([nobody, *(p.sources for p in parts)]),
            np.concatenate([nobody, *(p.targets for p in parts)]),
        )

    def take(self, rows: NDArray[np.integer] | Mask | slice) -> Events:
        """Some of the events, by index, mask or slice."""
        return Events(self.event[rows], self.sources[rows], self.targets[rows])

    @property
    def first(self) -> Index:
        """Row of the first cell that every event names, shape (E,)."""
        return np.where(self.sources[:, 0] < 0, self.targets[:, 0], self.sources[:, 0])

    def unique(self) -> Events:
        """The events sorted by kind, then by the rows named, each once."""
        return self.take(self.in_order())

    def in_order(self) -> Index:
        """Indices of the events of `unique` in this table, the first of equal ones."""
        if not len(self):
            return np.zeros(0, dtype=np.int64)
        named = [side[side >= 0] for side in (self.sources, self.targets)]
        low = min(int(rows.min(initial=_HIGHEST)) for rows in named)
        base = max(int(rows.max(initial=low)) for rows in named) - low + 2
        first, second = self._keys(low, base)
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
        return order[fresh]

    def _keys(self, low: int, base: int) -> tuple[Index, Index]:
        """Kind and sources, and targets, as one number each; rows go from `low` to base + low - 2.

        Their order is that of kinds and rows.
        """
        sources, targets = (np.maximum(x - (low - 1), 0) for x in (self.sources, self.targets))
        first = (self.event.astype(np.int64) * base + sources[:, 0]) * base + sources[:, 1]
        return first, targets[:, 0] * base + targets[:, 1]

    def with_others(self, others: Events) -> Events:
        """These events, sorted as by `unique`, and those of the others that are not among them."""
        new = others.take(self.find(others) < 0)
        return Events.join([self, new]).unique() if len(new) else self

    def of(self, event: Event) -> Index:
        """Indices of the events of one kind, shape (E_event,)."""
        return np.flatnonzero(self.event == event)

    @property
    def complete(self) -> Mask:
        """Which events name all the cells that their kind has, shape (E,)."""
        named = (self.sources >= 0).sum(axis=1) + (self.targets >= 0).sum(axis=1)
        return np.asarray(
            named == np.array([N_SOURCES[e] + N_TARGETS[e] for e in Event])[self.event]
        )

    def slots(self, n_detections: int) -> Index:
        """Slots that every event covers, active or not, fates first, -1 for none, shape (E, 5)."""
        histories = np.where(self.targets >= 0, self.targets + n_detections, -1)
        # A false detection has neither a fate nor a history, so it takes both slots.
        own = np.where(self.event == Event.FALSE, self.sources[:, 0] + n_detections, -1)
        return np.concatenate([self.sources, histories, own[:, None]], axis=1)

    def incidence(self, active: Mask) -> sp.csr_matrix:
        """Events x slots, 1 where an event covers an active slot, shape (E, 2n).

        This is the transpose of C in ``C y = 1`` (001, eq. 17-18).

        Parameters
        ----------
        active
            Which slots must be covered exactly once, shape (2n,), see `active_slots`.
        """
        found = self.covering(active)
        columns = np.flatnonzero(active).astype(np.int32)[found.indices]
        return sp.csr_matrix((found.data, columns, found.indptr), (len(self), len(active)))

    def covering(self, active: Mask) -> sp.csr_matrix:
        """As `incidence`, with columns for the active slots only."""
        number = np.cumsum(active, dtype=np.int32) - np.int32(1)
        counts, named = [np.zeros(1, np.int32)], [np.zeros(0, np.int32)]
        for part in self._parts():
            every, covers = part._active_slots(active)
            counts.append(covers.sum(axis=1, dtype=np.int32))
            named.append(number[every[covers]])
        start, columns = np.cumsum(np.concatenate(counts), dtype=np.int32), np.concatenate(named)
        # An event covers five slots at most, so that bytes hold all sums over the slots of one.
        ones = np.ones(len(columns), np.int8)
        matrix = sp.csr_matrix((ones, columns, start), shape=(len(self), int(active.sum())))
        matrix.sort_indices()
        return matrix

    def touching(self, active: Mask) -> Mask:
        """Which events cover an active slot, shape (E,)."""
        found = [part._active_slots(active)[1].any(axis=1) for part in self._parts()]
        return np.concatenate([np.zeros(0, dtype=bool), *found])

    def _parts(self) -> Iterator[Events]:
        """All events, some at a time, for work that takes much memory for each."""
        for some in in_parts(len(self)):
            yield Events(self.event[some], self.sources[some], self.targets[some])

    def _active_slots(self, active: Mask) -> tuple[Index, Mask]:
        """As `slots`, and where they are active; shapes (E, 5)."""
        slots = self.slots(len(active) // 2)
        # a column without a cell covers nothing
        return slots, (slots >= 0) & active.take(slots, mode="clip")

    def find(self, wanted: Events) -> Index:
        """Index in this table of every wanted event, -1 where it is not here, shape (wanted,)."""
        if not len(wanted):
            return np.zeros(0, dtype=np.int64)
        rows = [side for table in (self, wanted) for side in (table.sources, table.targets)]
        base = 2 + max(int(side.max(initial=-1)) for side in rows)
        mine, sought = (
            pd.DataFrame(dict(zip("ab", table._keys(0, base), strict=True)))
            for table in (self, wanted)
        )
        # Few events are sought among many, and a merge would sort them all.
        near = np.flatnonzero(np.isin(mine["a"].to_numpy(), sought["a"].to_numpy()))
        candidates = mine.iloc[near].assign(row=near).drop_duplicates(["a", "b"])
        found = sought.merge(candidates, on=["a", "b"], how="left")["row"]
        return found.fillna(-1).to_numpy(dtype=np.int64)


def active_slots(detections: Detections) -> Mask:
    """Slots that must be covered: no fate in the last frame, no history in the first, (2n,)."""
    frame, last = detections.frame, detections.geometry.n_frames - 1
    return np.concatenate([frame < last, frame > 0])


_EVENTS = {
    "divisions": Event.DIVIDE,
    "gaps": Event.SKIP,
    "splits": Event.SPLIT,
    "merges": Event.MERGE,
    "specks": Event.FALSE,
}

_ALWAYS = ("appearances", "appear", "disappearances", "disappear")
"""Kinds that earlier versions could exclude."""


@dataclass(frozen=True)
class EventKinds:
    """Kinds of events that occur in a movie, besides moves, appearances and disappearances.

    Parameters
    ----------
    divisions
        Cells divide.
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
        """Kinds that do not occur, in the words that `without` takes."""
        return tuple(f.name for f in fields(self) if not getattr(self, f.name))

    @classmethod
    def without(cls, words: Iterable[str] | str) -> EventKinds:
        """All kinds but some.

        Parameters
        ----------
        words
            Names of fields (``"merges"``), or of events in files (``"merge"``, ``"skip"``).
            Appearances and disappearances, which files of earlier versions name, always occur.

        Warns
        -----
        BridgetrackWarning
            Where these are named.

        Raises
        ------
        InputError
            Where a word is unknown.
        """
        by_event = {event.key: name for name, event in _EVENTS.items()}
        absent = set()
        for word in [words] if isinstance(words, str) else words:
            name = by_event.get(word, word)
            if word in _ALWAYS:
                warn(
                    f"{word!r}: cells may always appear and disappear; reject wrong appearances "
                    "instead"
                )
                continue
            if name not in _EVENTS:
                raise InputError(
                    f"{word!r} is not a kind of event that can be excluded; choose from "
                    + ", ".join(_EVENTS)
                )
            absent.add(name)
        return cls(**dict.fromkeys(absent, False))


EVERYTHING = EventKinds()
"""All kinds of events."""


def kind_words(event: Event) -> str:
    """Name of the field of `EventKinds` for a kind of event."""
    return next(name for name, kind in _EVENTS.items() if kind == event)
