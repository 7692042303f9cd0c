"""What is remembered of answers: the work that they took, and where a session stood."""

from __future__ import annotations

from bridgetrack.active.records import Clicking, Point, Record
from bridgetrack.annotations.annotation import Kind
from bridgetrack.training.estimate import ErrorEstimate


def record(**more: object) -> Record:
    given = {"random": False, "doubt": 0.5, "seconds": 1.0, **more}
    return Record("a", Kind.CONFIRM, (), True, **given)  # type: ignore[arg-type]


def test_an_answer_given_anew_has_the_work_of_both_and_the_first_doubt() -> None:
    first = record(doubt=0.9, seconds=2.0, looks=2)
    again = record(seconds=3.0).after(first)
    assert (again.doubt, again.seconds, again.looks, again.random) == (0.9, 5.0, 3, False)
    assert record().after(record(random=True)).random
    assert record(random=True).after(record()).random


def test_a_second_look_is_a_click_of_its_own() -> None:
    effort = Clicking.of([record(seconds=30.0), record(seconds=60.0, looks=2)])
    assert (effort.clicks, effort.seconds, effort.minutes) == (3, 90.0, 1.5)
    assert Clicking.of([]) == Clicking(0, 0)


def test_a_point_holds_the_estimate_where_there_is_one() -> None:
    effort = Clicking(3, 90.0)
    assert Point.of(effort, None, 5) == Point(3, 90.0, None, None, None, 5)
    estimate = ErrorEstimate(0.9, 0.8, 0.95, 10, True, ())
    found = Point.of(effort, estimate, 5)
    assert found == Point(3, 90.0, 0.9, 0.8, 0.95, 5)
    assert found.minutes == 1.5
