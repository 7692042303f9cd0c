"""Learning while people answer: kept going, kept on disk, following the model in use."""

from __future__ import annotations

import json

from asking_table import Table
from bridgetrack.errors import InfeasibleError
from bridgetrack.session.session import Session


def test_it_resumes_after_the_movie_is_opened_again(asked, source):
    for _ in range(5):
        asked.annotator.accept()
    asked.annotator.cannot_tell()
    effort, path = asked.questions.active.effort, asked.questions.path
    assert path.name == "answers.json.suggestions.json"
    again = Session()
    again.open(source, asked.session.answers.path)
    table = Table(again)
    table.questions.prepare()
    assert table.questions.active.effort == effort
    assert table.questions.active.points
    answered = {s for a in again.annotations for s in a.events[0].slots}
    table.annotator.suggest()
    assert table.questions.current.slot not in answered


def test_a_damaged_state_is_put_aside(asked, source, tmp_path):
    asked.annotator.accept()
    path = asked.questions.path
    content = json.loads(path.read_text())
    content["records"][0]["doubt"] = "much"
    path.write_text(json.dumps(content))
    again = Session()
    again.open(source, asked.session.answers.path)
    heard = []
    again.message.connect(lambda level, words: heard.append((level, words)))
    table = Table(again)
    table.questions.prepare()
    assert table.questions.active is not None
    assert [level for level, _ in heard] == ["warning"]
    assert path.with_name(path.name + ".old").exists()
    assert len(again.annotations) == 1


def test_another_model_is_a_new_beginning_that_keeps_the_effort(asked):
    from dataclasses import replace

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
