"""The model asks: what keys and clicks do, without Qt."""

from __future__ import annotations

from asking_table import Table
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.session import Session
from bridgetrack.ui.picking import Mode


def test_nothing_is_asked_before_there_is_a_movie():
    heard = []
    session = Session()
    session.message.connect(lambda level, words: heard.append(words))
    table = Table(session)
    assert "Choose a movie" in table.annotator.hint
    table.annotator.suggest()
    assert "Choose a movie" in heard[0]
    assert not table.questions.engaged
    assert table.annotator.picking.mode == Mode.REVIEW


def test_the_first_question_comes_at_once_when_prepared(table):
    table.questions.prepare()
    assert table.questions.active is not None
    assert len(table.questions.active.queue) > 3
    assert table.questions.current is None
    assert table.looked == []
    table.annotator.suggest()
    assert table.looked == [table.questions.current]
    assert table.annotator.picking.mode == Mode.SUGGEST


def test_a_number_picks_an_alternative(asked):
    first = asked.until(lambda s: len(s.alternatives) > 1)
    asked.annotator.choose(3)
    assert [a.events[0].key for a in asked.answers] == [first.alternatives[1].key]
    before = asked.questions.current
    asked.annotator.choose(9)
    assert asked.questions.current is before
    assert len(asked.answers) == 1


def test_a_click_on_the_target_accepts(asked):
    first = asked.until(lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    target = first.event.targets[0]
    asked.annotator.click(target.frame, target.position)
    assert [a.events[0].key for a in asked.answers] == [first.event.key]


def test_g_again_asks_something_else_and_comes_back_when_away(asked):
    first = asked.questions.current
    asked.questions.away = True
    asked.annotator.suggest()
    assert asked.questions.current is first
    asked.annotator.suggest()
    assert asked.questions.current is not first
    assert first in asked.questions.active.queue


def test_painting_measures_anew_and_goes_on(asked):
    asked.annotator.accept()
    asked.session.measure()
    assert asked.questions.active is not None
    assert asked.questions.active.effort.clicks == 1
    assert asked.questions.current is not None
