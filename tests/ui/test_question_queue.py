"""Which question comes next."""

from __future__ import annotations

from bridgetrack.annotations.annotation import RANDOM


def test_random_questions_are_noted_as_such_and_keep_their_share(asked):
    for _ in range(10):
        asked.annotator.accept()
    assert sum(r.random for r in asked.questions.active.counted) == 2
    assert RANDOM in [a.source for a in asked.answers]
    told = asked.questions.report.accuracy
    assert told == "2 random questions so far: too few to say how accurate it is."
    assert asked.questions.active.points
