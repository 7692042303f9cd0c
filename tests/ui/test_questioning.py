"""From one question to the next, without Qt."""

from __future__ import annotations

from bridgetrack.annotations.annotation import RANDOM, Kind
from bridgetrack.errors import OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.questions import PAUSE
from bridgetrack.ui.picking import Mode
from session_fixtures import OPTIONS


def test_undo_asks_again_and_redo_goes_on(asked, said):
    first = asked.questions.current
    asked.annotator.accept()
    second = asked.questions.current
    asked.annotator.undo()
    assert asked.answers == []
    assert asked.questions.current.slot == first.slot
    assert asked.questions.active.effort.clicks == 0
    asked.annotator.redo()
    assert len(asked.answers) == 1
    assert asked.questions.current.slot == second.slot
    assert asked.questions.active.effort.clicks == 1
    asked.annotator.undo()
    asked.annotator.reject()
    assert [a.kind for a in asked.answers] == [Kind.REJECT]
    assert [r.kind for r in asked.questions.active.counted] == [Kind.REJECT]


def test_after_a_no_the_same_question_asks_what_happened_instead(asked, said):
    first = asked.until(lambda s: len(s.alternatives) > 1)
    asked.annotator.reject()
    assert asked.questions.current is first and asked.questions.denied
    assert [a.kind for a in asked.answers] == [Kind.REJECT], "it is kept at once"
    asked.annotator.accept()
    assert "You said no to this" in said[-1][1] and asked.questions.current is first
    asked.annotator.choose(2)
    assert [a.events[0].key for a in asked.answers] == [first.alternatives[0].key]
    assert [r.right for r in asked.questions.active.counted] == [False], "one answer, not two"
    assert asked.questions.current is not first and not asked.questions.denied
    asked.annotator.undo()
    assert asked.questions.current.slot == first.slot and not asked.answers


def test_after_a_no_a_click_is_never_about_what_was_denied(asked):
    def shared(question):
        ways = question.alternatives if question.slot[0] == "fate" else ()
        return [c for e in ways for c in e.targets if c in question.event.targets]

    first = asked.until(shared)
    asked.annotator.reject()
    [target, *_] = shared(first)
    asked.annotator.click(target.frame, target.position)
    [answer] = asked.answers
    assert answer.kind == Kind.CONFIRM and target in answer.events[0].targets
    assert answer.events[0].key in [e.key for e in first.alternatives]


def test_after_a_no_it_goes_on_where_nobody_knows_what_happened(asked):
    ways = (asked.annotator.cannot_tell, asked.annotator.reject, asked.annotator.suggest)
    for n, skip in enumerate(ways, 1):
        first = asked.until(lambda s: len(s.alternatives) > 0)
        asked.annotator.reject()
        skip()
        assert asked.questions.current.slot != first.slot and not asked.questions.denied
        assert [a.kind for a in asked.answers] == [Kind.REJECT] * n
    first = asked.until(lambda s: len(s.alternatives) > 0)
    asked.annotator.reject()
    asked.annotator.undo()
    assert asked.questions.current.slot == first.slot and not asked.questions.denied
    asked.annotator.reject()
    asked.annotator.cancel()
    asked.annotator.suggest()
    assert asked.questions.current.slot != first.slot, "who stopped is not asked again"


def test_the_present_question_outlives_an_update(asked):
    for _ in range(OPTIONS.update_every - 1):
        asked.annotator.accept()
    before = asked.questions.current
    number = asked.questions.active._number
    asked.questions._update()
    assert asked.questions.active._number == number + 1
    assert asked.questions.current is before


def test_no_question_comes_twice(asked):
    seen = set()
    for _ in range(14):
        assert asked.questions.current.slot not in seen
        seen.add(asked.questions.current.slot)
        asked.annotator.accept()


def test_answers_given_after_stopping_do_not_move_the_view(asked):
    first, before = asked.questions.current, len(asked.looked)
    asked.annotator.cancel()
    asked.session.edits.note(Kind.CONFIRM, first.event, "click")
    assert len(asked.looked) == before
    assert len(asked.questions.active.counted) == 1
    asked.annotator.suggest()
    assert asked.questions.current.slot != first.slot


def test_another_kind_of_event_by_its_key_answers_the_question(asked):
    first = asked.until(lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    asked.annotator.start(Mode.DISAPPEAR)
    assert not asked.answers, "a key chooses, Enter answers"
    asked.annotator.accept()
    (answer,) = asked.answers
    assert answer.events[0].event == Event.DISAPPEAR
    assert answer.events[0].sources[0].cell == first.slot[1]
    assert [r.right for r in asked.questions.active.counted] == [False]
    assert asked.annotator.picking.mode == Mode.SUGGEST
    assert asked.questions.current.slot != first.slot


def test_an_answer_clicked_cell_by_cell_answers_the_question(asked):
    first = asked.until(lambda s: s.slot[0] == "fate" and s.kind == Event.MOVE)
    target = first.event.targets[0]
    asked.annotator.start(Mode.MOVE)
    assert asked.questions.engaged
    assert not asked.annotator.asking
    assert "G goes back" in asked.annotator.hint
    asked.annotator.cancel()
    asked.annotator.cancel()
    assert asked.annotator.asking, "Esc goes back to the question"
    asked.annotator.start(Mode.MOVE)
    asked.annotator.click(target.frame, target.position)
    (answer,) = asked.answers
    assert answer.events[0].key == first.event.key
    assert [r.right for r in asked.questions.active.counted] == [True]
    assert asked.annotator.asking
    assert asked.questions.current.slot != first.slot


def test_a_rejection_elsewhere_answers_the_question_where_it_is_of_its_event(asked):
    first = asked.until(lambda s: len(s.alternatives) > 0)
    asked.session.edits.note(Kind.REJECT, first.alternatives[0], "click")
    assert asked.questions.current is first and len(asked.answers) == 1
    asked.session.edits.note(Kind.REJECT, first.event, "click")
    assert asked.questions.current.slot != first.slot
    assert [a.events[0].key for a in asked.questions.active.counted] == [first.event.key]


def test_only_events_that_can_begin_with_the_cell_begin_with_it(asked):
    question = asked.until(lambda s: s.slot[0] == "fate")
    asked.annotator.start(Mode.APPEAR)
    assert asked.annotator.picking.empty and not asked.answers
    asked.annotator.suggest()
    question = asked.until(lambda s: s.slot[0] == "fate")
    asked.annotator.start(Mode.DIVIDE)
    assert asked.annotator.picking.source.cell == question.slot[1]
    asked.annotator.cancel()
    asked.annotator.suggest()
    question = asked.until(lambda s: s.slot[0] == "history")
    asked.annotator.start(Mode.MOVE)
    assert asked.annotator.picking.empty and not asked.answers
    asked.annotator.suggest()
    question = asked.until(lambda s: s.slot[0] == "history")
    asked.annotator.start(Mode.APPEAR)
    assert not asked.answers
    asked.annotator.accept()
    assert [a.events[0].targets[0].cell for a in asked.answers] == [question.slot[1]]


def test_random_questions_are_noted_as_such_and_keep_their_share(asked):
    for _ in range(10):
        asked.annotator.accept()
    assert sum(a.source == RANDOM for a in asked.questions.active.counted) == 2
    told = "1 random question so far: too few to say how accurate it is."
    assert told in asked.questions.report.words
    assert asked.questions.active.points


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
    asked.session.tracker.measure()
    assert asked.questions.active is not None
    assert asked.questions.active.effort.clicks == 1
    assert asked.questions.current is not None


def test_undo_first_puts_a_tool_away_that_was_just_taken(asked):
    asked.annotator.accept()
    asked.annotator.start(Mode.FALSE)
    asked.annotator.undo()
    assert len(asked.answers) == 1 and asked.annotator.asking
    asked.annotator.undo()
    assert not asked.answers
