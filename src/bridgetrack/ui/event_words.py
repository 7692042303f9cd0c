"""Events and answers in so few words that they fit into lists."""

from __future__ import annotations

from bridgetrack.annotations.annotation import Annotation, EventRef
from bridgetrack.annotations.words import describe
from bridgetrack.hypotheses.events import Event


def short_words(event: EventRef, history: bool) -> str:
    """An event as a predicate of the cell in question, e.g. ``divides into 4 and 7``."""
    before = " and ".join(str(c.label) for c in event.sources)
    after = " and ".join(str(c.label) for c in event.targets)
    fate = {
        Event.MOVE: f"moves to {after}",
        Event.DIVIDE: f"divides into {after}",
        Event.SPLIT: f"is cut into {after}",
        Event.MERGE: f"merges ({before} become {after})",
        Event.DISAPPEAR: "leaves",
        Event.FALSE: "is not a cell",
        Event.SKIP: f"moves to {after} over a gap",
        Event.APPEAR: "appears",
    }
    past = {
        Event.MOVE: f"comes from {before}",
        Event.DIVIDE: f"is a daughter of {before}",
        Event.SPLIT: f"is a piece of {before}",
        Event.MERGE: f"is {before} merged",
        Event.SKIP: f"comes from {before} over a gap",
    }
    return past.get(event.event, fate[event.event]) if history else fate[event.event]


def short_answer(annotation: Annotation) -> str:
    """As short as a table that has the frame's number beside it needs an answer."""
    plain = describe(annotation).removeprefix("the ").replace("disappearance", "leaving")
    frame = annotation.cells[0].frame
    return plain.replace(f" in frame {frame}", "").replace(" into cells ", " into ")
