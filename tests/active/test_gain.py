"""Expected gain and the verdict."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import beta

from bridgetrack.active.accuracy import (
    ENOUGH,
    ENOUGH_RANDOM,
    Gain,
    changes_a_click,
    expected_gain,
    verdict_on,
)
from bridgetrack.active.records import Point, Record
from bridgetrack.annotations.annotation import Kind
from bridgetrack.training.estimate import estimate_accuracy


def records(right: list[bool | None], random: bool = False) -> list[Record]:
    return [Record(f"a{k}", Kind.CONFIRM, (), r, random, 0.5, 1.0) for k, r in enumerate(right)]


def test_the_gain_follows_what_was_found_lately() -> None:
    good = expected_gain(records([True] * 30), [0.1], 10, 0.0)
    poor = expected_gain(records([False, True] * 15), [0.1], 10, 0.0)
    assert good.found < 0.5
    assert 4 < poor.found < 6
    assert 0 <= good.low < good.found < good.high <= 10
    late = expected_gain(records([False] * 20 + [True] * 20), [0.1], 10, 0.0)
    assert late.found < 1


def test_without_answers_the_model_is_asked() -> None:
    assert expected_gain([], [0.5, 0.7], 10, None).found == pytest.approx(6.0)
    assert expected_gain([], [], 10, None).found == pytest.approx(5.0)
    only_random = expected_gain(records([False] * 9, random=True), [0.2], 10, 2.0)
    assert only_random.found == pytest.approx(2.0)
    assert only_random.changed == 20.0
    undecided = expected_gain(records([None] * 9), [0.2], 10, None)
    assert undecided.found == pytest.approx(2.0)


def test_the_last_twenty_answers_and_four_imagined_ones_tell_what_the_next_find() -> None:
    some = records([False] * 5 + [False] * 3 + [True] * 17)
    found = expected_gain(some, [0.1, 0.3], 10, 0.5)
    wrong = beta(3 + 4 * 0.2, 17 + 4 * 0.8)
    assert found.found == pytest.approx(10 * wrong.mean())
    assert (found.low, found.high) == pytest.approx(tuple(10 * wrong.ppf([0.025, 0.975])))
    assert (found.clicks, found.changed) == (10, 5.0)
    # nobody is that sure
    assert expected_gain([], [0.0], 10, None).found == pytest.approx(0.2)
    assert expected_gain([], [1.0], 10, None).found == pytest.approx(9.8)


def test_changes_are_those_of_the_last_three_updates_for_every_click_between_them() -> None:
    points = [
        Point(clicks, 0.0, None, None, None, changed)
        for clicks, changed in ((1, 90), (5, 70), (10, 6), (15, 0), (25, 4))
    ]
    assert changes_a_click([]) is changes_a_click(points[:1]) is None
    assert changes_a_click(points[:2]) == 70 / 4
    assert changes_a_click(points) == 10 / 20
    assert changes_a_click([points[0], points[0]]) is None


@pytest.mark.parametrize(
    ("found", "changed", "events", "stop"),
    [
        (0.99, 4.9, 1000, True),
        (1.0, 4.9, 1000, False),
        (0.3, 5.0, 1000, False),
        (0.3, 1.9, 100, True),
        (0.3, 2.0, 100, False),
    ],
)
def test_one_stops_where_ten_answers_find_less_than_one_link_and_hardly_change_the_rest(
    found: float, changed: float, events: int, stop: bool
) -> None:
    n = ENOUGH_RANDOM
    sure = estimate_accuracy(np.zeros(n), np.zeros(n, dtype=np.int8), np.ones(8), True)
    verdict = verdict_on(Gain(10, found, 0.0, 10.0, changed), sure, ENOUGH, events)
    assert verdict.stop == stop


@pytest.mark.parametrize(
    ("found", "changed", "clicks", "stop", "words"),
    [
        (0.3, 0.0, ENOUGH, True, "you can stop now"),
        (0.3, 0.0, ENOUGH - 1, False, "too early"),
        (0.3, None, ENOUGH, False, "changes its mind"),
        (0.3, 50.0, ENOUGH, False, "changes its mind"),
        (3.2, 0.0, 90, False, "about 3 more wrong links found per 10 clicks"),
        (1.2, 0.0, 90, False, "about 1 more wrong link found per 10 clicks"),
    ],
)
def test_verdicts(found: float, changed: float | None, clicks: int, stop: bool, words: str) -> None:
    sure = estimate_accuracy(
        np.zeros(ENOUGH_RANDOM), np.zeros(ENOUGH_RANDOM, dtype=np.int8), np.ones(8), True
    )
    verdict = verdict_on(Gain(10, found, 0.0, 10.0, changed), sure, clicks, 1000)
    assert verdict.stop == stop
    assert words in verdict.words


@pytest.mark.parametrize("n", [0, 1, ENOUGH_RANDOM - 1])
def test_nobody_is_told_to_stop_before_the_estimate_says_something(n: int) -> None:
    event = np.zeros(n, dtype=np.int8)
    rough = estimate_accuracy(np.zeros(n), event, np.ones(8), True) if n else None
    verdict = verdict_on(Gain(10, 0.3, 0.0, 10.0, 0.0), rough, 90, 1000)
    assert not verdict.stop
    assert "too few random questions" in verdict.words
