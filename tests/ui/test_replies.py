"""Answers to questions are written down and counted."""

from __future__ import annotations

from bridgetrack.errors import OutputError
from bridgetrack.session.questions import PAUSE


def test_breaks_do_not_count_as_effort(asked, monkeypatch):
    monkeypatch.setattr("bridgetrack.session.questions.time.monotonic", lambda: 1e6)
    asked.annotator.accept()
    assert asked.questions.active.effort.seconds == PAUSE


def test_an_answer_that_cannot_be_kept_leaves_the_question(asked, said, monkeypatch):
    first = asked.questions.current

    def fail(*_):
        raise OutputError("the disk is full")

    monkeypatch.setattr(asked.session.answers, "answer", fail)
    asked.annotator.accept()
    assert said[-1] == ("error", "the disk is full")
    assert asked.questions.current is first
    assert asked.questions.active.effort.clicks == 0
