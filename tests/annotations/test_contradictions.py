import pytest
from hypothesis import given, settings

from annotations.annotation_cases import cell, event, says
from annotations.strategies import N_FRAMES, annotation_lists
from bridgetrack.annotations.annotation import EventRef
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.contradictions import conflicts_with, find_contradictions
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry

MOVIE = Geometry(N_FRAMES + 1, (600, 600), (1.0, 1.0))
MOVE, SKIP, FALSE = Event.MOVE, Event.SKIP, Event.FALSE


def confirm(name, kind, sources=(), targets=(), **more):
    return says(name, "confirm", event(kind, sources, targets, **more))


PAIRS = [
    (
        confirm("a1", Event.DIVIDE, [12], [3, 4], frame=5),
        confirm("a2", Event.DISAPPEAR, [12], frame=5),
        "cell 12 in frame 5 both divides and leaves",
    ),
    (
        confirm("a1", MOVE, [1], [7], frame=2),
        confirm("a2", MOVE, [2], [7], frame=2),
        "cell 7 in frame 3 is the target of two moves: cell 1 in frame 2 moves to cell 7, "
        "and cell 2 in frame 2 moves to cell 7",
    ),
    (
        confirm("a1", Event.APPEAR, [], [2]),
        confirm("a2", Event.DIVIDE, [1], [2, 3]),
        "cell 2 in frame 1 both is a daughter and appears",
    ),
    (
        confirm("a1", FALSE, [2], frame=1),
        confirm("a2", MOVE, [1], [2]),
        "cell 2 in frame 1 both comes from the frame before and is not a cell",
    ),
    (
        confirm("a1", MOVE, [1], [2]),
        says("a2", "reject", event(MOVE, [1], [2])),
        "cell 1 in frame 0 moves to cell 2: this is both confirmed and rejected",
    ),
    (
        confirm("a1", Event.MERGE, [1, 2], [3]),
        says("a2", "reject", EventRef(Event.MERGE, (), (cell(1, 3),))),
        "cell 1 in frame 0 merges (cell 1 and cell 2 become cell 3): this is both confirmed and "
        "rejected",
    ),
    (
        confirm("a1", Event.DIVIDE, [1], [2, 3]),
        says("a2", "reject", EventRef(Event.DIVIDE, (cell(0, 1),))),
        "cell 1 in frame 0 divides into cell 2 and cell 3: this is both confirmed and rejected",
    ),
    (
        confirm("a1", Event.DISAPPEAR, [1]),
        says("a2", "one_of", event(MOVE, [1], [2]), event(MOVE, [1], [3])),
        "cell 1 in frame 0: other answers exclude every one of the 2 alternatives given for it",
    ),
    (
        says("a1", "one_of", event(MOVE, [1], [4]), event(MOVE, [1], [5])),
        says("a2", "one_of", event(MOVE, [1], [2]), event(MOVE, [1], [3])),
        "cell 1 in frame 0: two lists of alternatives have no event in common",
    ),
]


@pytest.mark.parametrize(("first", "second", "words"), PAIRS)
def test_each_pair_is_found_once_and_explained(first, second, words):
    found = find_contradictions([first, second])
    assert [c.message for c in found] == [words]
    assert set(found[0].ids) == {"a1", "a2"}
    assert find_contradictions([first]) == find_contradictions([second]) == []
    for old, new in ((first, second), (second, first)):
        assert conflicts_with(AnnotationSet(MOVIE, [old]), [new]) == find_contradictions([old, new])


COMPATIBLE = [
    (confirm("a1", MOVE, [1], [2]), confirm("a2", MOVE, [1], [2])),
    (confirm("a1", MOVE, [1], [2]), says("a2", "cannot_tell", event(Event.DISAPPEAR, [1]))),
    (confirm("a1", MOVE, [1], [2]), says("a2", "reject", event(Event.DIVIDE, [1]))),
    (
        confirm("a1", MOVE, [1], [2]),
        says("a2", "one_of", event(MOVE, [1], [2]), event(MOVE, [1], [3])),
    ),
    (confirm("a1", SKIP, [1], [2], gap=2), confirm("a2", MOVE, [4], [5], frame=1)),
    (
        says("a1", "one_of", event(MOVE, [1], [2]), event(MOVE, [1], [4])),
        says("a2", "one_of", event(MOVE, [1], [2]), event(MOVE, [1], [3])),
    ),
]


@pytest.mark.parametrize(("first", "second"), COMPATIBLE)
def test_what_can_both_be_true_is_let_through(first, second):
    assert find_contradictions([first, second]) == []


def test_alternatives_excluded_by_several_answers_name_them_all():
    asked = says("a1", "one_of", event(MOVE, [1], [2]), event(MOVE, [1], [3]))
    others = [confirm("a2", MOVE, [5], [2]), says("a3", "reject", event(MOVE, [1], [3]))]
    assert find_contradictions([asked, others[0]]) == []
    (found,) = find_contradictions([asked, *others])
    assert found.ids == ("a1", "a2", "a3")
    (late,) = conflicts_with(AnnotationSet(MOVIE, [asked, others[0]]), [others[1]])
    assert late == found


def test_replacing_an_answer_does_not_conflict_with_itself():
    old = confirm("a1", MOVE, [1], [2])
    assert conflicts_with(AnnotationSet(MOVIE, [old]), [confirm("a1", MOVE, [1], [3])]) == []
    assert len(conflicts_with(AnnotationSet(MOVIE, [old]), [confirm("a2", MOVE, [1], [3])])) == 1


@settings(max_examples=40, deadline=None)
@given(annotation_lists())
def test_the_check_of_one_click_finds_what_the_check_of_all_finds(listed):
    """Adding one by one and refusing what conflicts ends in a set without contradictions."""
    kept = AnnotationSet(MOVIE)
    for a in listed:
        everything = find_contradictions([*kept, a])
        nearby = conflicts_with(kept, [a])
        assert {frozenset(c.ids) for c in nearby} == {frozenset(c.ids) for c in everything}
        if not nearby:
            kept = kept.edit(add=[a])
    assert find_contradictions(kept) == []
