"""How many clicks and keys an annotated event costs, by a scripted annotator.

It knows the truth and uses only what people have: pointing (free), one click or Enter where the
proposal is right, a number key where an alternative is, else a key for the kind of event and a
click per cell. Segmentations are automatic where there are any, so that proposals can be wrong.

    python benchmarks/effort.py [FOLDER of a CTC movie with NN, NN_AUTO or NN_GT ...]
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import EventRef
from bridgetrack.evaluation.match import match_detections
from bridgetrack.evaluation.true_events import true_events
from bridgetrack.hypotheses.events import Event
from bridgetrack.importing.ctc import read_ctc
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.sample import sample_folder
from bridgetrack.segmentation import segment_movie
from bridgetrack.session.background import InlineRunner
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.picking import Mode

EVENTS = 60
GOALS = {"right": 1.3, "wrong": 3.5}


@dataclass
class Tally:
    """Actions of each annotated event, by whether the proposal was right."""

    actions: dict[str, list[int]] = field(default_factory=lambda: {"right": [], "wrong": []})

    def line(self, name: str) -> str:
        """The result in a line."""
        parts = []
        for kind, counts in self.actions.items():
            if counts:
                mean = f"{np.mean(counts):.2f} actions an event (goal {GOALS[kind]})"
                parts.append(f"proposal {kind}: {len(counts)} events, {mean}")
        return f"{name}: {'; '.join(parts)}"


class Robot:
    """Annotates known events with as few actions as the plugin allows."""

    def __init__(self, session: Session, annotator: Annotator) -> None:
        self._session, self._annotator = session, annotator
        self.tally = Tally()

    def _point(self, cell: Any) -> None:
        self._annotator.hover(cell.frame, self._inside(cell))

    def _inside(self, cell: Any) -> tuple[float, ...]:
        """A pixel of the cell nearest to its centre."""
        assert self._annotator.finder is not None
        pixels = np.argwhere(self._annotator.finder.frame(cell.frame) == cell.label)
        near = np.linalg.norm(pixels - np.array(cell.position), axis=1).argmin()
        return tuple(float(p) for p in pixels[near])

    def annotate(self, event: EventRef) -> None:
        """Give one answer."""
        start = (event.sources or event.targets)[0]
        actions = 0
        self._point(start)
        if not event.sources:
            self._annotator.toggle_history()
            actions += 1
        keys = [p.event.key for p in self._annotator.proposals]
        right = bool(keys) and keys[0] == event.key
        if event.key in keys[:9]:
            number = keys.index(event.key) + 1
            self._annotator.accept() if number == 1 else self._annotator.choose(number)
            actions += 1
        else:
            actions = self._by_hand(event)
        have = self._session.annotations
        assert have is not None
        assert event.key in {a.events[0].key for a in have}, f"{event} was not annotated"
        self.tally.actions["right" if right else "wrong"].append(actions)

    def _by_hand(self, event: EventRef) -> int:
        """A key, then a click per cell."""
        kind = Event.MOVE if event.event == Event.SKIP else event.event
        mode = Mode(kind.key)
        cells = [*event.sources, *event.targets]
        self._point(cells[0])
        self._annotator.start(mode)
        for cell in cells:
            self._annotator.click(cell.frame, self._inside(cell))
        self._annotator.picking = type(self._annotator.picking)(Mode.REVIEW)
        return len(cells) + 2  # and V, back to Review


def run(name: str, labels: Any, image: Any, truth_folder: Path, folder: Path) -> str:
    """Annotate a balanced sample of the true events of a movie."""
    session = Session(runner=InlineRunner())
    annotator = Annotator(session)
    problems: list[str] = []
    session.message.connect(lambda level, words: level == "error" and problems.append(words))
    session.open(MovieAndCells(labels, image, name), folder / f"{name}.json")
    assert session.scene is not None, problems
    detections = session.scene.detections
    truth = read_ctc(truth_folder)
    match = match_detections(detections, labels, truth.tracks, truth.labels)
    table = true_events(detections, truth.tracks, match)
    rng = np.random.default_rng(0)
    robot = Robot(session, annotator)
    for row in _balanced(table.event, rng):
        refs = event_refs(detections, table.take(np.array([row])))
        try:
            robot.annotate(refs[0])
        except AssertionError as error:
            problems.append(str(error))
    more = f"; {len(problems)} problems, first: {problems[0]}" if problems else ""
    return robot.tally.line(name) + more


def _balanced(event: np.ndarray, rng: np.random.Generator) -> list[int]:
    """Half moves, half rare events."""
    moves = np.flatnonzero(event == Event.MOVE)
    rare = np.flatnonzero(event != Event.MOVE)
    half = EVENTS // 2
    picked = [rng.permutation(moves)[:half], rng.permutation(rare)[:half]]
    return [int(r) for r in np.concatenate(picked)]


def automatic(image: Any) -> Any:
    """The movie as segmented by the built-in method."""
    frames = [f.labels for f in segment_movie(image)]
    geometry = image.geometry
    return open_labels(
        np.stack(frames), axes="TYX" if geometry.ndim == 2 else "TZYX", scale=geometry.scale
    )


def main() -> None:
    """The sample, and the folders given."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("movies", nargs="*", type=Path, help="folders with 01 and 01_GT")
    given = parser.parse_args().movies
    with tempfile.TemporaryDirectory() as scratch:
        for folder in [sample_folder(), *given]:
            name = "sample" if folder == sample_folder() else folder.name
            image = open_movie(folder / "01")
            cells = automatic(image)
            print(run(name, cells, image, folder / "01_GT" / "TRA", Path(scratch)), flush=True)


if __name__ == "__main__":
    main()
