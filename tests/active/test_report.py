"""How far one is, in plain words."""

from __future__ import annotations

from types import SimpleNamespace

from bridgetrack.active.accuracy import Point, Report, Verdict, report_of
from bridgetrack.training.estimate import ErrorEstimate


def estimated(accuracy, low, high):
    return ErrorEstimate(accuracy, low, high, 20, True, ())


def session(clicks=30, low=0.9, stop=True):
    """What is read of a session."""
    points = tuple(Point(k, 3.0 * k, estimated(0.95, 0.9, 0.99)) for k in (5, 10, 10, 40))
    estimate = estimated(0.95, low, 0.99)
    return SimpleNamespace(
        effort=Point(clicks, 6.0 * clicks), points=points, last=None,
        estimate=lambda: estimate, verdict=lambda: Verdict(stop, "you can stop now: enough"),
    )  # fmt: skip


def test_nothing_is_known_before_the_first_answer():
    assert report_of(None) == Report()
    assert report_of(session(clicks=0)) == Report()


def test_it_is_said_how_many_events_are_left():
    told = SimpleNamespace(**{**vars(session()), "last": SimpleNamespace(doubtful=31)})
    assert "At most 31 events are less" in report_of(told).words


def test_the_curve_waits_until_it_says_something():
    one = session(30)
    wide = Point(5, 15.0, estimated(1.0, 0.3, 1.0)), Point(8, 24.0, estimated(0.33, 0.1, 0.9))
    told = SimpleNamespace(**{**vars(one), "points": wide})
    assert report_of(told).points == ()
    told.points += (Point(20, 60.0, estimated(0.95, 0.7, 1.0)),)
    assert [p.clicks for p in report_of(told).points] == [20]


def test_the_curve_leaves_out_what_was_undone():
    assert [p.clicks for p in report_of(session(30)).points] == [5, 10]
