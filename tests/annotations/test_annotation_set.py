import pytest
from hypothesis import given, settings

from annotations.annotation_cases import event, says, step
from annotations.strategies import N_FRAMES, annotation_lists
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import LIMIT, AnswerHistory
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

MOVIE = Geometry(N_FRAMES, (600, 600), (1.0, 1.0))
MOVE = says("a1", "confirm", event(Event.MOVE, [1], [2]))
LEAVES = says("a2", "confirm", event(Event.DISAPPEAR, [7]))


def test_editing_leaves_the_old_set_alone():
    empty = AnnotationSet(MOVIE)
    one = empty.edit(add=[MOVE])
    two = one.edit(add=[LEAVES])
    assert (len(empty), len(one), len(two)) == (0, 1, 2)
    assert one.at(0, 1) == (MOVE,)
    assert empty.at(0, 1) == ()
    assert two.edit(["a1"]) == AnnotationSet(MOVIE, [LEAVES])
    assert two.edit(["a1"]).at(0, 1) == ()
    assert two.at(0, 1) == (MOVE,)


def test_ids_are_in_natural_order_and_the_next_is_free():
    listed = [says(f"a{k}", "confirm", event(Event.DISAPPEAR, [k])) for k in (10, 2, 1)]
    many = AnnotationSet(MOVIE, [*listed, says("b77", "confirm", event(Event.MOVE, [1], [2]))])
    assert [a.id for a in many] == ["a1", "a2", "a10", "b77"]
    assert many.last_id == 10


@settings(max_examples=50, deadline=None)
@given(annotation_lists())
def test_undo_after_do_is_identity_and_redo_brings_it_back(listed):
    history = AnswerHistory(AnnotationSet(MOVIE))
    states = [history.annotations]
    for k, a in enumerate(listed):
        drop = [listed[k - 1].id] if k % 3 == 2 and listed[k - 1].id in history.annotations else []
        history = step(history, drop, [a])
        states.append(history.annotations)
        anew = AnnotationSet(MOVIE, reversed([*history.annotations]))
        for cell in (c.cell for b in listed for c in b.cells):
            assert history.annotations.at(*cell) == anew.at(*cell)
    latest = history
    for state in reversed(states[:-1]):
        history = history.after("undo")[0]
        assert history.annotations == state
        assert list(history.annotations) == list(state)
    with pytest.raises(InputError, match="nothing to undo"):
        history.after("undo")[0]
    for state in states[1:]:
        history = history.after("redo")[0]
        assert history.annotations == state
    assert history == latest
    with pytest.raises(InputError, match="nothing to redo"):
        history.after("redo")[0]


def test_a_new_step_forgets_what_was_undone():
    history = step(AnswerHistory(AnnotationSet(MOVIE)), add=[MOVE]).after("undo")[0]
    assert history.future
    assert not step(history, add=[LEAVES]).future


def test_the_number_of_steps_is_bounded():
    history = AnswerHistory(AnnotationSet(MOVIE))
    for k in range(LIMIT + 5):
        history = step(history, add=[says(f"a{k}", "confirm", event(Event.DISAPPEAR, [k + 1]))])
    assert len(history.past) == LIMIT
    assert len(history.annotations) == LIMIT + 5
