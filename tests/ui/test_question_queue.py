"""Which question comes next."""

from __future__ import annotations

from bridgetrack.annotations.annotation import RANDOM


def test_random_questions_are_noted_as_such_and_keep_their_share(asked):
    for _ in range(10):
        asked.annotator.accept()
    assert sum(a.source == RANDOM for a in asked.questions.active.counted) == 2
    told = "1 random question so far: too few to say how accurate it is."
    assert told in asked.questions.report.words
    assert asked.questions.active.points
