"""The model asks: the controller without Qt."""

from __future__ import annotations

import json

import pytest

from bridgetrack.active.update import SessionOptions
from bridgetrack.annotations.annotation import RANDOM, EventRef, Kind
from bridgetrack.errors import InfeasibleError
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.jobs import InlineRunner
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.replies import PAUSE
from bridgetrack.ui.session import Session
from bridgetrack.ui.suggester import Suggester
from bridgetrack.ui.trainer import Trainer

OPTIONS = SessionOptions(queue=8, update_every=4, rejudge_every=1000)


class Table:
    """The controllers of one viewer, without it."""

    def __init__(self, session, options=OPTIONS):
        self.session = session
        self.annotator = Annotator(session)
        self.trainer = Trainer(session)
        self.asker = Suggester(session, self.annotator, self.trainer, options)
        self.looked = []
        self.asker.look.connect(self.looked.append)
        session.scene_changed.emit()

    @property
    def answers(self):
        return list(self.session.annotations)


@pytest.fixture
def table(session):
    return Table(session)


@pytest.fixture
def asked(table):
    table.annotator.suggest()
    assert table.asker.current is not None
    return table


def test_nothing_is_asked_before_there_is_a_movie():
    heard = []
    session = Session(InlineRunner())
    session.message.connect(lambda level, words: heard.append(words))
    table = Table(session)
    assert "Choose a movie" in table.asker.hint
    table.annotator.suggest()
    assert "Choose a movie" in heard[0]
    assert not table.asker.engaged
    assert table.annotator.picking.mode == Mode.REVIEW


def test_the_first_question_comes_at_once_when_prepared(table):
    table.asker.prepare()
    assert table.asker.active is not None
    assert len(table.asker.active.queue) > 3
    assert table.asker.current is None
    assert table.looked == []
    table.annotator.suggest()
    assert table.looked == [table.asker.current]
    assert table.annotator.picking.mode == Mode.SUGGEST


def test_enter_accepts_and_the_queue_goes_on(asked):
    first = asked.asker.current
    asked.annotator.accept()
    (answer,) = asked.answers
    assert answer.kind == Kind.CONFIRM
    assert answer.events[0].key == first.event.key
    assert answer.seconds is not None
    assert asked.asker.current.slot != first.slot
    assert asked.looked[-1] is asked.asker.current
    assert asked.asker.standing.effort.startswith("1 answer in")


def test_backspace_rejects(asked):
    first = asked.asker.current
    asked.annotator.reject()
    (answer,) = asked.answers
    assert answer.kind == Kind.REJECT
    assert answer.events[0].key == first.event.key
    assert asked.asker.current.slot != first.slot


def until(table, wanted):
    """Pass questions on until one is wanted."""
    for _ in range(40):
        if wanted(table.asker.current):
            return table.asker.current
        table.annotator.suggest()
    pytest.skip("the sample asks no such question")


def test_a_number_picks_an_alternative(asked):
    first = until(asked, lambda s: len(s.alternatives) > 1)
    asked.annotator.choose(3)
    assert [a.events[0].key for a in asked.answers] == [first.alternatives[1].key]
    before = asked.asker.current
    asked.annotator.choose(9)
    assert asked.asker.current is before
    assert len(asked.answers) == 1


def test_cannot_tell_is_an_answer_that_labels_nothing(asked):
    first = asked.asker.current
    asked.annotator.cannot_tell()
    (answer,) = asked.answers
    assert answer.kind == Kind.CANNOT_TELL
    assert len(asked.asker.active.counted) == 1
    assert asked.asker.current.slot != first.slot


def test_random_questions_are_noted_as_such_and_keep_their_share(asked):
    for _ in range(10):
        asked.annotator.accept()
    assert sum(r.random for r in asked.asker.active.counted) == 2
    assert RANDOM in [a.source for a in asked.answers]
    assert "95 %" in asked.asker.standing.accuracy
    assert asked.asker.standing.points


def test_undo_asks_again_and_redo_goes_on(asked):
    first = asked.asker.current
    asked.annotator.accept()
    second = asked.asker.current
    asked.annotator.undo()
    assert asked.answers == []
    assert asked.asker.current.slot == first.slot
    assert asked.asker.active.effort.clicks == 0
    asked.annotator.redo()
    assert len(asked.answers) == 1
    assert asked.asker.current.slot == second.slot
    assert asked.asker.active.effort.clicks == 1
    asked.annotator.undo()
    asked.annotator.reject()
    assert [a.kind for a in asked.answers] == [Kind.REJECT]
    assert [r.kind for r in asked.asker.active.counted] == [Kind.REJECT]


def test_many_undone_answers_do_not_ask_for_updates_for_ever(asked):
    for _ in range(7):
        asked.annotator.accept()
    for _ in range(7):
        asked.annotator.undo()
    assert asked.answers == []
    assert asked.asker.active.effort.clicks == 0
    assert asked.asker.current is not None


def test_the_present_question_outlives_an_update(asked):
    for _ in range(OPTIONS.update_every - 1):
        asked.annotator.accept()
    before = asked.asker.current
    number = asked.asker.active._number
    asked.asker._work.update()
    assert asked.asker.active._number == number + 1
    assert asked.asker.current is before


def test_no_question_comes_twice(asked):
    seen = set()
    for _ in range(30):
        assert asked.asker.current.slot not in seen
        seen.add(asked.asker.current.slot)
        asked.annotator.accept()


def test_g_again_asks_something_else_and_comes_back_when_away(asked):
    first = asked.asker.current
    asked.asker.away = True
    asked.annotator.suggest()
    assert asked.asker.current is first
    asked.annotator.suggest()
    assert asked.asker.current is not first
    assert first in asked.asker.active.queue


def test_escape_stops_and_g_goes_on_with_the_same_question(asked):
    asked.annotator.accept()
    before = asked.asker.current
    asked.annotator.cancel()
    assert not asked.asker.engaged
    assert asked.annotator.picking.mode == Mode.REVIEW
    assert "go on" in asked.asker.hint
    asked.annotator.suggest()
    assert asked.asker.current is before


def test_answers_given_after_stopping_do_not_move_the_view(asked):
    first, before = asked.asker.current, len(asked.looked)
    asked.annotator.cancel()
    asked.session.answers.answer(Kind.CONFIRM, [first.event], "click")
    assert len(asked.looked) == before
    assert len(asked.asker.active.counted) == 1
    asked.annotator.suggest()
    assert asked.asker.current.slot != first.slot


def test_another_kind_of_event_by_its_key_answers_the_question(asked):
    first = until(asked, lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    asked.annotator.start(Mode.DISAPPEAR)
    (answer,) = asked.answers
    assert answer.events[0].event == Event.DISAPPEAR
    assert answer.events[0].sources[0].cell == first.slot[1]
    assert [r.right for r in asked.asker.active.counted] == [False]
    assert asked.annotator.picking.mode == Mode.SUGGEST
    assert asked.asker.current.slot != first.slot


def test_an_answer_clicked_cell_by_cell_answers_the_question(asked):
    first = until(asked, lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    target = first.event.targets[0]
    asked.annotator.start(Mode.MOVE)
    assert asked.asker.engaged
    assert not asked.asker.asking
    assert "G goes back" in asked.asker.hint
    asked.annotator.cancel()
    asked.annotator.cancel()
    assert asked.asker.asking, "Esc goes back to the question"
    asked.annotator.start(Mode.MOVE)
    asked.annotator.click(target.frame, target.position)
    (answer,) = asked.answers
    assert answer.events[0].key == first.event.key
    assert [r.right for r in asked.asker.active.counted] == [True]
    assert asked.asker.asking
    assert asked.asker.current.slot != first.slot


def test_a_click_on_the_target_accepts(asked):
    first = until(asked, lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    target = first.event.targets[0]
    asked.annotator.click(target.frame, target.position)
    assert [a.events[0].key for a in asked.answers] == [first.event.key]


def test_it_resumes_after_the_movie_is_opened_again(asked, source):
    for _ in range(5):
        asked.annotator.accept()
    asked.annotator.cannot_tell()
    effort, path = asked.asker.active.effort, asked.asker.path
    assert path.name == "answers.json.suggestions.json"
    again = Session(InlineRunner())
    again.open(source, asked.session.answers.path)
    table = Table(again)
    table.asker.prepare()
    assert table.asker.active.effort == effort
    assert table.asker.standing.points
    answered = {s for a in again.annotations for s in a.events[0].slots}
    table.annotator.suggest()
    assert table.asker.current.slot not in answered


def test_a_damaged_state_is_put_aside(asked, source, tmp_path):
    asked.annotator.accept()
    path = asked.asker.path
    content = json.loads(path.read_text())
    content["records"][0]["doubt"] = "much"
    path.write_text(json.dumps(content))
    again = Session(InlineRunner())
    again.open(source, asked.session.answers.path)
    heard = []
    again.message.connect(lambda level, words: heard.append((level, words)))
    table = Table(again)
    table.asker.prepare()
    assert table.asker.active is not None
    assert [level for level, _ in heard] == ["warning"]
    assert path.with_name(path.name + ".old").exists()
    assert len(again.annotations) == 1


def test_closing_the_movie_ends_the_asking(asked):
    asked.session.forget()
    assert asked.asker.current is None
    assert asked.asker.active is None
    assert asked.annotator.picking.mode == Mode.REVIEW


def test_painting_measures_anew_and_goes_on(asked):
    asked.annotator.accept()
    asked.session.measure()
    assert asked.asker.active is not None
    assert asked.asker.active.effort.clicks == 1
    assert asked.asker.current is not None


def test_the_learned_model_can_be_used(asked):
    for _ in range(8):
        asked.annotator.accept()
    active = asked.asker.active
    asked.asker.use_model()
    assert asked.session.model.name == "active"
    assert asked.asker.active is active, "its own model is no new beginning"


def test_another_model_is_a_new_beginning_that_keeps_the_effort(asked):
    from dataclasses import replace

    for _ in range(3):
        asked.annotator.accept()
    before = asked.asker.active
    asked.session.set_model(replace(asked.session.model, name="other"))
    assert asked.asker.active is not before
    assert asked.asker.active.prior.name == "other"
    assert asked.asker.active.effort == before.effort


def test_failing_to_learn_is_told_and_ends_nothing(asked, monkeypatch):
    asked.annotator.accept()

    def fail(*_):
        raise InfeasibleError("two answers exclude each other")

    monkeypatch.setattr("bridgetrack.active.update.annotate", fail)
    for _ in range(5):
        asked.annotator.accept()
    assert "exclude each other" in asked.asker.hint
    assert len(asked.answers) == 6
    assert asked.asker.current is not None


def test_breaks_do_not_count_as_effort(asked, monkeypatch):
    monkeypatch.setattr("bridgetrack.ui.replies.time.monotonic", lambda: 1e6)
    asked.annotator.accept()
    assert asked.asker.active.effort.seconds == PAUSE


def test_a_rejection_elsewhere_leaves_the_question_open(asked):
    first = until(asked, lambda s: len(s.alternatives) > 0)
    other: EventRef = first.alternatives[0]
    asked.session.answers.answer(Kind.REJECT, [other], "click")
    assert asked.asker.current is first
