"""Learning while people answer: kept going, kept on disk, following the model in use."""

from __future__ import annotations

from dataclasses import replace

from asking_table import Table
from bridgetrack.errors import InfeasibleError
from bridgetrack.session.session import Session


def test_it_resumes_after_the_movie_is_opened_again(asked, source):
    for _ in range(5):
        asked.annotator.accept()
    asked.annotator.cannot_tell()
    effort = asked.questions.active.effort
    again = Session()
    again.open(source, asked.session.project.path)
    table = Table(again)
    table.questions.prepare()
    assert table.questions.active.effort == effort
    assert table.questions.active.points
    answered = {s for a in again.annotations for s in a.events[0].slots}
    table.annotator.suggest()
    assert table.questions.current.slot not in answered


def test_another_model_is_a_new_beginning_that_keeps_the_effort(asked):
    for _ in range(3):
        asked.annotator.accept()
    before = asked.questions.active
    asked.session.set_model(replace(asked.session.model, name="other"))
    assert asked.questions.active is not before
    assert asked.questions.active.prior.name == "other"
    assert asked.questions.active.effort == before.effort
    start = replace(asked.session.model, name="before")
    asked.session.set_model(replace(asked.session.model, name="learned"), start)
    assert asked.questions.active.prior is start, "answers that a model knows are not learned twice"


def test_failing_to_learn_is_told_and_ends_nothing(asked, said, monkeypatch):
    asked.annotator.accept()

    def fail(*_):
        raise InfeasibleError("two answers exclude each other")

    monkeypatch.setattr("bridgetrack.active.session.annotate", fail)
    for _ in range(5):
        asked.annotator.accept()
    assert "exclude each other" in asked.annotator.hint
    assert len(asked.answers) == 6
    assert asked.questions.current is not None
