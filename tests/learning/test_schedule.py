"""The precision rises from one iteration to the next, and the last one is known by its gain."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.learning import ALGORITHM_1, LearningOptions
from bridgetrack.learning.cccp import REASONS, Schedule

OPTIONS = LearningOptions(precision=0.02, initial_precision=0.1, precision_rate=0.3)


def test_small_gains_end_it_only_at_full_precision() -> None:
    schedule = Schedule(OPTIONS)
    seen = []
    while not schedule.ends("converged", True, [1.0, 1.0]):
        seen.append(schedule.precision)
    assert seen == pytest.approx([0.03, 0.02])
    assert schedule.converged and schedule.reason == REASONS["converged"]


def test_large_gains_do_not_end_it() -> None:
    schedule = Schedule(OPTIONS)
    assert not any(schedule.ends("converged", False, [3.0 - k, 2.0 - k]) for k in range(9))
    assert schedule.precision == OPTIONS.precision
    assert not schedule.converged and schedule.reason == REASONS["iterations"]
    assert schedule.ends("inexact", False, [1.0, 0.99])
    assert schedule.reason == REASONS["inexact"]


def test_the_limit_of_calls_ends_it_at_any_precision() -> None:
    schedule = Schedule(OPTIONS)
    assert schedule.ends("limit", False, [3.0, 1.0])
    assert schedule.precision == 0.1 and schedule.reason == REASONS["limit"]


def test_without_adaptation_it_is_precise_at_once() -> None:
    schedule = Schedule(LearningOptions(precision=0.02, adaptive=False))
    assert schedule.precision == 0.02
    assert not schedule.ends("converged", False, [3.0, 1.0])
    assert schedule.precision == 0.02


def test_what_touches_elsewhere_cannot_be_the_last() -> None:
    schedule = Schedule(LearningOptions(precision=0.02, adaptive=False))
    assert not schedule.ends("converged", False, [1.0, 1.0], plain=False)
    assert schedule.ends("converged", False, [1.0, 1.0], plain=True)


def test_it_looks_ahead_until_that_gains_nothing() -> None:
    schedule = Schedule(LearningOptions(precision=0.02, adaptive=False, overshoot=0.5))
    before, w = np.array([1.0, 2.0]), np.array([2.0, 2.0])
    assert not schedule.ends("converged", False, [3.0, 2.0])
    np.testing.assert_allclose(schedule.ahead(before, w), [2.5, 2.0])
    assert schedule.ahead(w, w) is None
    assert not schedule.ends("converged", False, [2.0, 2.0], plain=False)
    assert schedule.ahead(before, w) is None
    assert not schedule.ends("converged", False, [2.0, 1.0], plain=True)
    assert schedule.ahead(before, w) is not None


def test_as_printed_it_never_looks_ahead() -> None:
    schedule = Schedule(ALGORITHM_1)
    assert not schedule.ends("converged", False, [3.0, 2.0])
    assert schedule.ahead(np.zeros(2), np.ones(2)) is None
