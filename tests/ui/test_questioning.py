"""From one question to the next, without Qt."""

from dataclasses import replace

from bridgetrack.active.session import UPDATE_EVERY
from bridgetrack.annotations.annotation import RANDOM, Kind
from bridgetrack.errors import InfeasibleError, OutputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.session.questions import PAUSE
from bridgetrack.ui.picking import Mode


def moves(question):
    """Whether it asks about a cell that moves on."""
    return question.slot[0] == "fate" and question.kind == Event.MOVE


def test_undo_asks_again_and_redo_goes_on(asked, said):
    first = asked.questions.current
    asked.annotator.accept()
    second = asked.questions.current
    asked.annotator.undo()
    assert asked.answers == []
    assert asked.questions.current.slot == first.slot
    assert len(asked.questions.active.counted) == 0
    asked.annotator.redo()
    assert len(asked.answers) == 1
    assert asked.questions.current.slot == second.slot
    assert len(asked.questions.active.counted) == 1
    asked.annotator.undo()
    assert not asked.answers
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
    for _ in range(UPDATE_EVERY - 1):
        asked.annotator.accept()
    before = asked.questions.current
    learned = asked.questions.active.last
    asked.questions._update()
    assert asked.questions.active.last is not learned
    assert asked.questions.current is before


def test_any_way_of_answering_answers_the_question(asked, said):
    first = asked.until(lambda s: moves(s) and len(s.alternatives) > 1)
    annotator, target = asked.annotator, first.event.targets[0]

    def answered(right, event):
        """That it was, and the answer; undone, it is asked again."""
        [answer] = asked.answers
        assert [r.right for r in asked.questions.active.counted] == [right]
        assert event in (answer.events[0].key, answer.events[0].event)
        assert annotator.picking.mode == Mode.SUGGEST and annotator.asking
        assert asked.questions.current.slot != first.slot
        annotator.undo()
        assert asked.questions.current.slot == first.slot and not asked.answers
        return answer.events[0]

    # The number of an alternative; there is no ninth.
    annotator.choose(9)
    assert asked.questions.current is first and not asked.answers
    assert said[-1] == ("hint", "There is no alternative 9.")
    annotator.choose(3)
    answered(False, first.alternatives[1].key)
    # A click on the target.
    annotator.click(target.frame, target.position)
    answered(True, first.event.key)
    # Another kind of event by its key.
    annotator.start(Mode.DISAPPEAR)
    assert not asked.answers, "a key chooses, Enter answers"
    annotator.accept()
    assert answered(False, Event.DISAPPEAR).sources[0].cell == first.slot[1]
    # Cell by cell.
    annotator.start(Mode.MOVE)
    assert asked.questions.engaged and not annotator.asking
    assert "G goes back" in annotator.hint
    annotator.cancel()
    annotator.cancel()
    assert annotator.asking, "Esc goes back to the question"
    annotator.start(Mode.MOVE)
    annotator.click(target.frame, target.position)
    answered(True, first.event.key)


def test_answers_given_after_stopping_do_not_move_the_view(asked):
    first, before = asked.questions.current, len(asked.looked)
    asked.annotator.cancel()
    asked.session.edits.note(Kind.CONFIRM, first.event, "click")
    assert len(asked.looked) == before
    assert len(asked.questions.active.counted) == 1
    asked.annotator.suggest()
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


def test_random_questions_are_noted_as_such_and_none_comes_twice(asked):
    seen = []
    for _ in range(10):
        seen.append(asked.questions.current.slot)
        asked.annotator.accept()
    assert len(set(seen)) == len(seen)
    assert sum(a.source == RANDOM for a in asked.questions.active.counted) == 2
    told = "2 random questions so far: at least 8 are needed to say how accurate it is."
    assert told in asked.questions.report
    # Measured again, as after painting, it goes on.
    asked.session.tracker.measure()
    assert len(asked.questions.active.counted) == 10
    assert asked.questions.current is not None


def test_an_answer_that_cannot_be_kept_leaves_the_question(asked, said, monkeypatch):
    first = asked.questions.current

    def fail(*_):
        raise OutputError("the disk is full")

    with monkeypatch.context() as full:
        full.setattr(asked.session.answers, "answer", fail)
        asked.annotator.accept()
    assert said[-1] == ("error", "the disk is full")
    assert asked.questions.current is first
    assert len(asked.questions.active.counted) == 0
    # Breaks do not count as effort.
    monkeypatch.setattr("bridgetrack.session.questions.time.monotonic", lambda: 1e6)
    asked.annotator.accept()
    assert [a.seconds for a in asked.answers] == [PAUSE]


def test_prepared_questions_come_at_once_and_g_asks_another(table):
    questions, annotator = table.questions, table.annotator
    questions.prepare()
    assert len(questions.active.queue) > 3
    assert questions.current is None and table.looked == []
    annotator.suggest()
    assert table.looked == [questions.current]
    assert annotator.picking.mode == Mode.SUGGEST
    first = questions.current
    annotator.suggest()
    assert questions.current is not first and first in questions.active.queue
    # Who looked elsewhere comes back to it first.
    first = questions.current
    questions.away = True
    annotator.suggest()
    assert questions.current is first
    annotator.suggest()
    assert questions.current is not first


def test_another_model_is_a_new_beginning_that_keeps_the_effort(asked):
    for _ in range(3):
        asked.annotator.accept()
    asked.session.settings.set_model(replace(asked.session.model, name="other"))
    assert asked.questions.active.prior.name == "other"
    assert len(asked.questions.active.counted) == 3
    start = replace(asked.session.model, name="before")
    asked.session.settings.set_model(replace(asked.session.model, name="learned"), start)
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


def test_a_sample_belongs_to_its_tracks(table, said):
    questions, session = table.questions, table.session
    questions.check_sample(3)
    for _ in range(2):
        table.annotator.accept()
    third = questions.current
    table.annotator.accept()
    check = questions.check
    assert check.finished is not None and said[-1] == ("info", check.words)
    assert table.annotator.picking.mode == Mode.REVIEW
    questions.check_sample(1)
    assert questions.current.number == 3, "a longer one goes on where the shorter one ended"
    table.annotator.undo()
    assert questions.current.number == 2, "what was judged before can be judged again"
    for _ in range(2):
        table.annotator.accept()
    assert check.finished is not None
    session.edits.note(Kind.REJECT, third.event, "click", 1.0)
    assert check.finished is None
    assert "The tracks have changed since" in check.words
