"""Expected gain and the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.active.accuracy import (
    ENOUGH,
    ENOUGH_RANDOM,
    expected_finds,
    verdict_on,
)
from bridgetrack.annotations.annotation import (
    RANDOM,
    SUGGESTED,
    Annotation,
    CellRef,
    EventRef,
    Kind,
)
from bridgetrack.hypotheses.events import Event
from bridgetrack.training.estimate import estimate_accuracy


def answers(right: list[bool | None], source: str = SUGGESTED) -> list[Annotation]:
    event = EventRef(Event.DISAPPEAR, (CellRef(0, 1, (0.0, 0.0)),))
    return [
        Annotation(f"a{k}", Kind.CONFIRM, (event,), source=source, right=r)
        for k, r in enumerate(right)
    ]


def test_the_gain_follows_what_was_found_lately() -> None:
    assert 0 < expected_finds(answers([True] * 30), [0.1]) < 0.5
    assert 4 < expected_finds(answers([False, True] * 15), [0.1]) < 6
    assert expected_finds(answers([False] * 20 + [True] * 20), [0.1]) < 1


def test_without_answers_the_model_is_asked() -> None:
    assert expected_finds([], [0.5, 0.7]) == pytest.approx(6.0)
    assert expected_finds([], []) == pytest.approx(5.0)
    assert expected_finds(answers([False] * 9, RANDOM), [0.2]) == pytest.approx(2.0)
    assert expected_finds(answers([None] * 9), [0.2]) == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("found", "clicks", "known", "words"),
    [
        (0.3, ENOUGH, ENOUGH_RANDOM, "you can stop now"),
        (0.3, ENOUGH - 1, ENOUGH_RANDOM, "it is too early to stop; keep answering"),
        (3.2, 90, ENOUGH_RANDOM, "10 more answers would correct about 3 links"),
        (0.3, 90, ENOUGH_RANDOM - 1, "until the accuracy is known"),
        (0.3, 90, 0, "until the accuracy is known"),
    ],
)
def test_verdicts(found: float, clicks: int, known: int, words: str) -> None:
    event = np.zeros(known, dtype=np.int8)
    estimate = estimate_accuracy(np.zeros(known), event, np.ones(8), True) if known else None
    verdict = verdict_on(found, estimate, clicks)
    assert verdict.stop == ("stop now" in words)
    assert words in verdict.words and ("10 more" in verdict.words) != ("early" in words)
