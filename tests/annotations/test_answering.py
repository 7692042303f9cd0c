"""An answer takes the place of what it contradicts, and is not written down twice."""

from __future__ import annotations

from bridgetrack.annotations.annotation import Annotation, CellRef, EventRef, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.contradictions import answer_to
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

GEOMETRY = Geometry(3, (10, 10), (1.0, 1.0))


def cell(frame: int, label: int) -> CellRef:
    return CellRef(frame, label, (float(label), 0.0))


def move(source: int, target: int) -> EventRef:
    return EventRef(Event.MOVE, (cell(0, source),), (cell(1, target),))


def test_what_contradicts_goes_and_the_rest_stays() -> None:
    have = AnnotationSet(GEOMETRY, [Annotation("a1", Kind.CONFIRM, (move(1, 1),))])
    have = have.add(Annotation("a2", Kind.CONFIRM, (move(2, 2),)))
    noted, gone = answer_to(have, Kind.CONFIRM, [move(1, 3)], "click", 2.0)
    assert gone == ["a1"]
    assert noted.id not in have
    assert (noted.source, noted.seconds) == ("click", 2.0)


def test_the_same_answer_is_the_annotation_that_is_there() -> None:
    first = Annotation("a1", Kind.CONFIRM, (move(1, 1),))
    noted, gone = answer_to(AnnotationSet(GEOMETRY, [first]), Kind.CONFIRM, [move(1, 1)], "click")
    assert noted is first
    assert gone == []


def test_named_annotations_go_though_they_contradict_nothing() -> None:
    have = AnnotationSet(GEOMETRY, [Annotation("a1", Kind.CONFIRM, (move(1, 1),))])
    _, gone = answer_to(have, Kind.CANNOT_TELL, [move(1, 1)], "click", instead_of=("a1", "no"))
    assert gone == ["a1"]
