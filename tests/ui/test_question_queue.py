"""Which question comes next."""

from __future__ import annotations

from types import SimpleNamespace

from bridgetrack.annotations.annotation import RANDOM
from bridgetrack.session.questions import ask_again, ask_later, drop


def test_random_questions_are_noted_as_such_and_keep_their_share(asked):
    for _ in range(10):
        asked.annotator.accept()
    assert sum(r.random for r in asked.questions.active.counted) == 2
    assert RANDOM in [a.source for a in asked.answers]
    told = asked.questions.report.accuracy
    assert told == "2 random questions so far: too few to say how accurate it is."
    assert asked.questions.active.points


def question(label):
    """A question about the fate of a cell of frame 0."""
    return SimpleNamespace(slot=("fate", (0, label)))


def test_a_question_passed_on_comes_last():
    one, two = question(1), question(2)
    active = SimpleNamespace(queue=(one, two))
    assert ask_later(active, one)
    assert active.queue == (two, one)
    drop(active, two)
    assert not ask_later(active, one), "there is no other"
    assert active.queue == (one,)


def test_a_question_asked_again_comes_first_and_loses_none():
    one, two, three = question(1), question(2), question(3)
    active = SimpleNamespace(queue=(three, two))
    ask_again(active, two, one)
    assert active.queue == (two, one, three)
    ask_again(active, three, two)
    assert active.queue == (three, two, one), "none is there twice"
