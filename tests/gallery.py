"""Tiny named situations, drawn in ASCII, that all tests share.

Every character is a square of 7 x 7 pixels. An upper-case letter is a cell (a disc of radius
6), a lower-case letter a half of one (a daughter, or a piece; radius 4.2), a digit a speck
(radius 2). Equal letters side by side are one region. To the right of the drawing stand ten
quiet cells that give the movie its scale.

What should come out is written as one line per cell, frame by frame: the letters that are this
cell in that frame, ``-`` where it is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from string import ascii_letters, digits

import dask.array as da
import numpy as np
from numpy.typing import NDArray

from bridgetrack.detections.measure import assemble, measure_frames
from bridgetrack.detections.table import Detections
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie

PITCH = 7
QUIET = 10
_UNEVEN = (0.0, 0.8, 0.3, 0.6, 0.1, 0.9, 0.4, 0.7, 0.2, 0.5)
_NUMBER = {letter: k + 1 for k, letter in enumerate(ascii_letters + digits)}

EventRow = tuple[Event, tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Situation:
    """A small movie and what happens in it.

    Parameters
    ----------
    name
        For the names of tests.
    frames
        One drawing per frame, rows parted by line breaks.
    events
        What is not a move of a letter to itself: event, frame of the later cells (of the cell
        itself for ``false``), letters before, letters after.
    cells
        Expected cells: letters by frame, parted by spaces.
    links
        Expected links: cell (index in `cells`), parent cell, event.
    hard
        Why the untrained weights may fail, empty where they must not.
    drift
        Shift of everything per frame, in characters to the right.
    """

    name: str
    frames: tuple[str, ...]
    events: tuple[tuple[str, int, str, str], ...] = ()
    cells: tuple[str, ...] = ()
    links: tuple[tuple[int, int, str], ...] = ()
    hard: str = ""
    drift: int = field(default=0)

    @property
    def labels(self) -> NDArray[np.int32]:
        """The label movie, shape (T, Y, X)."""
        return np.stack([self._draw(t) for t in range(len(self.frames))])

    def _draw(self, t: int) -> NDArray[np.int32]:
        rows = self.frames[t].split("\n")
        width = max(len(row) for frame in self.frames for row in frame.split("\n"))
        last = self.drift * (len(self.frames) - 1)
        image = np.zeros((5 * PITCH + 14, (width + 17 + last) * PITCH), dtype=np.int32)
        shift = self.drift * t
        for k in range(QUIET):
            y, x = 0.4 + 4 * (k % 2), width + 2 + 2.8 * (k // 2) + shift
            _disc(image, (y + _UNEVEN[k] / 2, x + _UNEVEN[-k]), 6.0, len(_NUMBER) + 1 + k)
        for y, row in enumerate(rows):
            for x, letter in enumerate(row):
                if letter in _NUMBER:
                    radius = 6.0 if letter.isupper() else 4.2 if letter.islower() else 2.0
                    _disc(image, (y + 1.0, x + 1.0 + shift), radius, _NUMBER[letter])
        return image

    @property
    def movie(self) -> Movie:
        """The label movie, opened."""
        return movie_of(self.labels, source=self.name)

    def row(self, detections: Detections, t: int, letter: str) -> int:
        """Row of a letter in the table of detections."""
        return detections.row_of(t, _NUMBER[letter])

    def true_events(self, detections: Detections) -> list[EventRow]:
        """All events that hold, rows named; one per fate and history."""
        found: list[EventRow] = []
        fates: set[int] = set()
        histories: set[int] = set()
        for key, t, before, after in self.events:
            event = Event.from_key(key)
            if event == Event.FALSE:
                row = self.row(detections, t, before)
                found.append((event, (row,), ()))
                fates.add(row)
                histories.add(row)
                continue
            if event == Event.SKIP:
                earlier = int(before[1:])
                sources = (self.row(detections, earlier, before[0]),)
            else:
                sources = tuple(sorted(self.row(detections, t - 1, c) for c in before))
            targets = tuple(sorted(self.row(detections, t, c) for c in after))
            found.append((event, sources, targets))
            fates.update(sources)
            histories.update(targets)
        return found + _plain_events(detections, fates, histories)

    def oracle(self, detections: Detections) -> tuple[Events, NDArray[np.bool_]]:
        """Hypotheses that are just the true events, all chosen."""
        events = sorted(self.true_events(detections))

        def pad(rows: list[tuple[int, ...]]) -> NDArray[np.int64]:
            return np.array([(*r, -1, -1)[:2] for r in rows], dtype=np.int64).reshape(-1, 2)

        hypotheses = Events(
            np.array([e for e, _, _ in events], dtype=np.int8),
            pad([s for _, s, _ in events]),
            pad([t for _, _, t in events]),
        )
        return hypotheses, np.ones(len(events), dtype=bool)

    def expected_cells(self, detections: Detections) -> list[frozenset[int]]:
        """Rows of every expected cell, in the order of `cells`, then the quiet cells."""
        out = []
        for line in self.cells:
            tokens = line.split()
            assert len(tokens) == len(self.frames), (self.name, line)
            rows = [
                self.row(detections, t, c)
                for t, token in enumerate(tokens)
                if token != "-"
                for c in token
            ]
            out.append(frozenset(rows))
        for k in range(QUIET):
            label = len(_NUMBER) + 1 + k
            out.append(frozenset(np.flatnonzero(detections.label == label).tolist()))
        return out


def _plain_events(detections: Detections, fates: set[int], histories: set[int]) -> list[EventRow]:
    """Moves of labels to themselves, and appearances and disappearances of the rest."""
    found: list[EventRow] = []
    frame, label = detections.frame, detections.label
    where = {(int(t), int(k)): row for row, (t, k) in enumerate(zip(frame, label, strict=True))}
    for (t, k), row in where.items():
        after = where.get((t + 1, k))
        if after is not None and row not in fates and after not in histories:
            found.append((Event.MOVE, (row,), (after,)))
            fates.add(row)
            histories.add(after)
    for (t, _), row in where.items():
        if row not in fates and t < detections.geometry.n_frames - 1:
            found.append((Event.DISAPPEAR, (row,), ()))
        if row not in histories and t > 0:
            found.append((Event.APPEAR, (), (row,)))
    return found


def _disc(image: NDArray[np.int32], at: tuple[float, float], radius: float, label: int) -> None:
    y, x = (PITCH * (c + 0.5) for c in at)
    yy, xx = np.mgrid[: image.shape[0], : image.shape[1]]
    image[(yy - y) ** 2 + (xx - x) ** 2 <= radius**2] = label


def movie_of(
    pixels: NDArray[np.generic], scale: tuple[float, ...] | None = None, source: str = "array"
) -> Movie:
    """A movie of one channel from an array of shape (T, [Z,] Y, X)."""
    array = da.from_array(pixels[:, None], chunks=(1, 1, *pixels.shape[1:]))
    space = pixels.shape[1:]
    return Movie(array, Geometry(len(pixels), space, scale or (1.0,) * len(space)), ("0",), source)


def measure(labels: Movie, image: Movie | None = None) -> Detections:
    """The detections of a movie."""
    return assemble(list(measure_frames(labels, image)), labels, image)


def measured(situation: Situation) -> Detections:
    """The detections of a situation."""
    return measure(situation.movie)


GALLERY = (
    Situation(
        "two cells go their ways",
        ("A....B\n......", ".A...B\n......", ".A...B\n......", "..A..B\n......"),
        cells=("A A A A", "B B B B"),
    ),
    Situation(
        "two cells pass each other",
        (
            "A.....\n......\n....B.",
            ".A....\n......\n...B..",
            "..A...\n......\n..B...",
            "...A..\n......\n.B....",
            "....A.\n......\nB.....",
        ),
        cells=("A A A A A", "B B B B B"),
    ),
    Situation(
        "a division",
        ("......\n..A...", "......\n..A...", "......\n.b.c..", "......\nb...c."),
        events=(("divide", 2, "A", "bc"),),
        cells=("A A - -", "- - b b", "- - c c"),
        links=((1, 0, "divide"), (2, 0, "divide")),
    ),
    Situation(
        "two divisions in a row",
        ("..A...", "..A...", ".b.c..", ".b.c..", ".b.d.e", ".b.d.e"),
        events=(("divide", 2, "A", "bc"), ("divide", 4, "c", "de")),
        cells=("A A - - - -", "- - b b b b", "- - c c - -", "- - - - d d", "- - - - e e"),
        links=((1, 0, "divide"), (2, 0, "divide"), (3, 2, "divide"), (4, 2, "divide")),
        hard="daughters do not shrink again when they divide",
    ),
    Situation(
        "two cells touch for a frame and part",
        ("A...B.", ".A.B..", "..CC..", ".A.B..", "A...B."),
        events=(("merge", 2, "AB", "C"), ("split", 3, "C", "AB")),
        cells=("A A - A A", "B B - B B", "- - C - -"),
        links=((2, 0, "merge"), (2, 1, "merge")),
        hard="a move and a skip cost less than a merge and a split",
    ),
    Situation(
        "two cells touch and stay",
        ("A...B.", ".A.B..", "..CC..", "..CC..", "..CC.."),
        events=(("merge", 2, "AB", "C"),),
        cells=("A A - - -", "B B - - -", "- - C C C"),
        links=((2, 0, "merge"), (2, 1, "merge")),
        hard="a disappearance costs less than a merge",
    ),
    Situation(
        "two touching cells part for good",
        ("..CC..", "..CC..", ".A.B..", ".A.B..", "A..B..", "A..B..", "A...B.", "A...B."),
        events=(("split", 2, "C", "AB"),),
        cells=("C C A A A A A A", "- - B B B B B B"),
        links=((1, 0, "split"),),
        hard="it looks like a division",
    ),
    Situation(
        "a cell is cut in two for a frame",
        ("..A...", "..A...", "..bc..", "..A...", "..A..."),
        events=(("split", 2, "A", "bc"), ("merge", 3, "bc", "A")),
        cells=("A A bc A A",),
        hard="a piece that comes and goes costs less than a split",
    ),
    Situation(
        "a cell is cut in two for three frames",
        ("..A...", "..bc..", "..bc..", "..bc..", "..A..."),
        events=(("split", 1, "A", "bc"), ("merge", 4, "bc", "A")),
        cells=("A bc bc bc A",),
        hard="a piece that comes and goes costs less than a split",
    ),
    Situation(
        "a cell is cut in two at the end",
        ("..A...", "..A...", "..bc..", "..bc.."),
        events=(("split", 2, "A", "bc"),),
        cells=("A A bc bc",),
        hard="daughters that stay together look the same",
    ),
    Situation(
        "a detection is missing",
        ("......\n..A...", "......\n..A...", "......\n......", "......\n..A...", "......\n..A..."),
        events=(("skip", 3, "A1", "A"),),
        cells=("A A - A A",),
    ),
    Situation(
        "two detections are missing",
        ("..A...", "..A...", "......", "......", "..A...", "..A..."),
        events=(("skip", 4, "A1", "A"),),
        cells=("A A - - A A",),
        hard="two frames without a sight cost more than a new cell",
    ),
    Situation(
        "a speck of dirt",
        ("A...B.\n......", "A...B.\n......", "A...B.\n..1...", "A...B.\n......", "A...B.\n......"),
        events=(("false", 2, "1", ""),),
        cells=("A A A A A", "B B B B B"),
    ),
    Situation(
        "one comes, one leaves",
        ("......", "A.....", "A....B", "A....B", ".....B", ".....B"),
        cells=("- A A A - -", "- - B B B B"),
    ),
    Situation(
        "the stage drifts",
        ("A....B\n..C...", "A....B\n..C...", "A....B\n..C...", "A....B\n..C..."),
        cells=("A A A A", "B B B B", "C C C C"),
        drift=2,
    ),
)
"""The situations."""

BY_NAME = {situation.name: situation for situation in GALLERY}
