import time

import pytest

from annotations.annotation_cases import cell, event, says
from bridgetrack.annotations.annotation import EventRef, now
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event


@pytest.mark.parametrize(
    ("kind", "sources", "targets", "gap", "words"),
    [
        (Event.MOVE, [1], [], 1, None),
        (Event.MOVE, [1, 2], [3], 1, "1 source and 1 target cells, not 2 and 1"),
        (Event.MOVE, [1], [3], 2, "spans one frame, not 2"),
        (Event.SKIP, [1], [3], 1, "spans two or more frames, not 1"),
        (Event.DIVIDE, [1], [2, 2], 1, "twice"),
        (Event.APPEAR, [1], [], 1, "not 1 and 0"),
    ],
)
def test_cells_must_fit_the_event(kind, sources, targets, gap, words):
    if words is None:
        assert not event(kind, sources, targets, gap=gap).complete
        return
    with pytest.raises(InputError, match=words):
        event(kind, sources, targets, gap=gap)


def test_sources_in_different_frames_are_refused():
    with pytest.raises(InputError, match="frames that differ"):
        EventRef(Event.MERGE, (cell(0, 1), cell(1, 2)), (cell(2, 3),))


def test_an_event_is_the_same_in_whatever_order_its_cells_are_named():
    for kind, order in ((Event.MERGE, ([1, 2], [3])), (Event.DIVIDE, ([3], [1, 2]))):
        assert event(kind, *order) == event(kind, *(side[::-1] for side in order))


def test_a_daughter_may_be_a_frame_late_and_no_more():
    late = EventRef(Event.DIVIDE, (cell(0, 1),), (cell(2, 3), cell(1, 2)))
    assert late.complete and [c.frame for c in late.targets] == [1, 2]
    with pytest.raises(InputError, match="not 3"):
        EventRef(Event.DIVIDE, (cell(0, 1),), (cell(1, 2), cell(3, 3)))


def test_a_pattern_can_be_rejected_but_not_confirmed():
    says("a1", "reject", event(Event.DIVIDE, [1]))
    with pytest.raises(InputError, match="confirm needs all cells of a divide"):
        says("a1", "confirm", event(Event.DIVIDE, [1]))


def test_alternatives_must_share_a_slot_and_differ():
    one = event(Event.MOVE, [1], [2])
    assert says("a1", "one_of", one, event(Event.DISAPPEAR, [1])).common_slots == (
        ("fate", (0, 1)),
    )
    with pytest.raises(InputError, match="share no cell's fate or history"):
        says("a1", "one_of", one, event(Event.MOVE, [3], [4]))
    with pytest.raises(InputError, match="two or more different"):
        says("a1", "one_of", one, one)
    with pytest.raises(InputError, match="confirm needs one event, not 2"):
        says("a1", "confirm", one, event(Event.DISAPPEAR, [1]))


@pytest.mark.parametrize(("field", "value"), [("created", "2024-01-01T00:00:00"), ("source", "")])
def test_bad_particulars_are_refused(field, value):
    with pytest.raises(InputError, match="annotation a1"):
        says("a1", "confirm", event(Event.MOVE, [1], [2]), **{field: value})


def test_answers_given_within_a_second_keep_their_order():
    times = []
    for _ in range(3):
        times.append(now())
        time.sleep(0.01)
    assert sorted(set(times)) == times
