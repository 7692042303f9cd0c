"""What is chosen so far in a movie that is tracked in windows, window by window.

The events of a window lie on a shelf, by the first cell that they name. What is looked at or
chosen again around a frame are the shelves near it, so that neither time nor memory of one step
grow with the movie.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.constraints import compile_constraints
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.parts import in_parts
from bridgetrack.pipeline.window import REACH, Chosen, Meeting, Part, WholeMovie

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass
class Shelves:
    """What is chosen so far, and the prices of all slots.

    Parameters
    ----------
    offsets
        First row of every frame of the movie, and the number of its cells at the end.
    bounds
        First row of every shelf but the first.
    shelves
        The chosen events, by the shelf on which their first cell is.
    prices
        Of all slots, shape (2n,).
    noted
        Events that annotations speak of, chosen or not, with their scores.
    hypotheses
        How many events were proposed.
    reach
        How far from the frames where windows meet events were chosen again.
    """

    offsets: Index
    bounds: Index
    shelves: list[Chosen]
    prices: Array
    noted: list[Chosen]
    hypotheses: int
    reach: int = 0

    @classmethod
    def of(cls, movie: WholeMovie, windows: list[range], parts: list[Part]) -> Shelves:
        """From the parts of a movie."""
        detections = movie.evidence.detections
        bounds = detections.offsets[[frames.start for frames in windows[1:]]]
        shelves = [Chosen.join([])] * len(windows)
        prices = np.zeros(2 * len(detections))
        count = sum(part.hypotheses for part in parts) + _between(movie, windows)
        found = cls(detections.offsets, bounds, shelves, prices, [], count)
        for part in parts:
            found._take_over(part)
        return found

    @property
    def n_cells(self) -> int:
        """Cells of the movie."""
        return int(self.offsets[-1])

    @property
    def active(self) -> tuple[range, range]:
        """Slots of the problem: fates, and histories."""
        n = self.n_cells
        return range(int(self.offsets[-2])), range(n + int(self.offsets[1]), 2 * n)

    @property
    def value(self) -> float:
        """What the choice is worth."""
        return float(sum(shelf.scores.sum() for shelf in self.shelves))

    @property
    def gap(self) -> float:
        """How much better another choice may be at most."""
        return float(sum(self._short(shelf) for shelf in self.shelves))

    def _short(self, chosen: Chosen) -> float:
        """How much the prices of some chosen events exceed their scores, in all."""
        if not len(chosen.events):
            return 0.0
        named = chosen.events.sources, chosen.events.targets
        low = min(int(rows[rows >= 0].min(initial=self.n_cells)) for rows in named)
        high = max(int(rows.max()) for rows in named) + 1
        fates, histories = self.active
        rows = np.arange(low, high)
        active = np.concatenate([rows < fates.stop, rows + self.n_cells >= histories.start])
        both = slice(low, high), slice(self.n_cells + low, self.n_cells + high)
        prices = np.concatenate([self.prices[some] for some in both])
        priced = chosen.events.moved(-low).incidence(active) @ prices
        return float(np.maximum(priced - chosen.scores, 0.0).sum())

    def _between(self, low: int, high: int) -> range:
        """Shelves of the events whose first cell is one of some rows."""
        first = int(np.searchsorted(self.bounds, low, side="right"))
        return range(first, int(np.searchsorted(self.bounds, high - 1, side="right")) + 1)

    def _near(self, frames: range) -> Iterator[Chosen]:
        """Shelves on which events may be that name a cell of some frames."""
        low = int(self.offsets[max(frames.start - REACH, 0)])
        return (self.shelves[k] for k in self._between(low, int(self.offsets[frames.stop])))

    def meeting(self, movie: WholeMovie, frame: int, reach: int) -> Meeting:
        """What is known around a frame."""
        frames = movie.around(frame, reach + 2 * REACH)
        low, high = self.offsets[frames.start], self.offsets[frames.stop]
        found = []
        for shelf in self._near(frames):
            sides = shelf.events.sources, shelf.events.targets
            named = [((rows >= low) & (rows < high)).any(axis=1) for rows in sides]
            found.append(shelf.events.take(named[0] | named[1]))
        events = Events.join(found)
        wide = movie.around(frame, reach + REACH - 1)
        return Meeting(frame, reach, events, self.prices[movie.rows(wide)])

    def lost(self, movie: WholeMovie, frame: int, reach: int) -> float:
        """What may be lost around a frame."""
        frames, offsets = movie.around(frame, reach), self.offsets
        fates = offsets[frames.start], offsets[frames.stop - 1]
        histories = offsets[frames.start + 1], offsets[frames.stop]
        short = 0.0
        for shelf in self._near(frames):
            events = shelf.events
            own = np.where(events.event == Event.FALSE, events.sources[:, 0], -1)
            named = (events.sources, fates), (events.targets, histories), (own[:, None], histories)
            near = [((rows >= a) & (rows < b)).any(axis=1) for rows, (a, b) in named]
            short += self._short(shelf.take(near[0] | near[1] | near[2]))
        return short

    def apply(self, part: Part) -> None:
        """Take over what was chosen again."""
        cells, n = part.covered % self.n_cells, self.n_cells
        low, high = int(cells.min(initial=n)), int(cells.max(initial=-1)) + 1
        again = np.zeros(2 * max(high - low, 0) + 1, dtype=bool)  # nothing at the end
        again[np.where(part.covered < n, cells - low, cells - low + high - low)] = True
        for k in self._between(low, high) if high > low else ():
            slots = self.shelves[k].events.slots(n)
            cell = slots % n
            place = np.where(slots < n, cell - low, cell - low + high - low)
            place[(slots < 0) | (cell < low) | (cell >= high)] = -1
            self.shelves[k] = self.shelves[k].take(np.flatnonzero(~again[place].any(axis=1)))
        self._take_over(part)

    def _take_over(self, part: Part) -> None:
        self.prices[part.slots] = part.prices
        for k, events in self._by_shelf(part.chosen):
            self.shelves[k] = Chosen.join([self.shelves[k], events])
        unknown = np.full(len(part.noted), np.nan)
        if len(part.noted):
            self.noted.append(Chosen(part.noted, part.noted_scores, unknown, unknown))

    def _by_shelf(self, chosen: Chosen) -> Iterator[tuple[int, Chosen]]:
        """Some events, by the shelf on which each belongs."""
        shelf = np.searchsorted(self.bounds, chosen.events.first, side="right")
        for k in np.unique(shelf).tolist():
            yield k, chosen.take(shelf == k)

    def wrong(self, movie: WholeMovie) -> bool:
        """Whether some annotation is not met yet."""
        if not movie.anchored.listed:
            return False
        every, chosen = self.in_order()
        forbidden = compile_constraints(movie.anchored, every.events).forbidden
        return bool(chosen[forbidden].any())

    def in_order(self) -> tuple[Chosen, Mask]:
        """The chosen events with those that annotations speak of, sorted, and which are chosen."""
        more: dict[int, list[Chosen]] = {}
        for k, noted in self._by_shelf(Chosen.join(self.noted)):
            more.setdefault(k, []).append(noted)
        found, held = [Chosen.join([])], [np.zeros(0, dtype=bool)]
        for k, shelf in enumerate(self.shelves):
            every = shelf
            for noted in more.get(k, []):
                every = Chosen.join([every, noted.take(shelf.events.find(noted.events) < 0)])
            order = every.events.in_order()
            found.append(every.take(order))
            held.append(order < len(shelf.events))
        # Those of a kind ascend from shelf to shelf.
        cuts = [np.searchsorted(one.events.event, range(len(Event) + 1)) for one in found]
        some = [
            (k, slice(int(cut[kind]), int(cut[kind + 1])))
            for kind in Event
            for k, cut in enumerate(cuts)
        ]
        chosen = np.concatenate([held[k][rows] for k, rows in some])
        return Chosen.join([found[k].take(rows) for k, rows in some]), chosen


def _between(movie: WholeMovie, windows: list[range]) -> int:
    """How many events cover slots of several windows."""
    detections = movie.evidence.detections
    offsets, n, count = detections.offsets, len(detections), 0
    starts = np.array([frames.start for frames in windows[1:]], dtype=np.int64)
    for some in in_parts(len(movie.rare)):
        slots = movie.rare.take(some).slots(n)
        fate = np.searchsorted(offsets[starts], slots, side="right")
        history = np.searchsorted(offsets[starts + 1], slots - n, side="right")
        owner = np.where(slots < n, fate, history)
        active = (slots >= 0) & ((slots < offsets[-2]) | (slots >= n + offsets[1]))
        first = np.where(active, owner, len(windows)).min(axis=1)
        last = np.where(active, owner, -1).max(axis=1)
        count += int((last > first).sum())
    return count
