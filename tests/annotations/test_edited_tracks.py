import pandas as pd
import pytest

from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.contradictions import find_contradictions
from bridgetrack.annotations.edited_tracks import from_edited_tracks
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.tracks import Tracks

# id = 10 * frame + label
IDS = [1, 2, 3, 11, 12, 13, 21, 22, 23, 24]
EDGES = [
    (1, 11, "move"),
    (2, 12, "move"),
    (3, 13, "move"),
    (11, 21, "move"),
    (12, 22, "divide"),
    (12, 23, "divide"),
    (13, 24, "move"),
]


def tracks(edges, ids=IDS):
    nodes = pd.DataFrame(
        [(i, i // 10, i % 10, 10.0 * (i % 10), 5.0, 78, 1, 1) for i in ids],
        columns=["id", "frame", "label", "y", "x", "area", "track_id", "lineage_id"],
    )
    table = pd.DataFrame(edges, columns=["source", "target", "event"]).assign(score=0.0, margin=0.0)
    nothing = pd.DataFrame()
    return Tracks(nodes, table, nothing, nothing, Geometry(3, (100, 100), (1.0, 1.0)))


def answers(edges, ids=IDS, before=None):
    original = tracks(EDGES if before is None else before)
    found = from_edited_tracks(original, tracks(edges, ids))
    assert find_contradictions(found) == []
    assert {a.source for a in found} <= {"correction"}
    return {(str(a.kind), short(a.events[0])) for a in found}


def short(event):
    ids = [[10 * c.frame + c.label for c in side] for side in (event.sources, event.targets)]
    return event.event.key, *map(tuple, ids)


def without(*pairs):
    return [e for e in EDGES if e[:2] not in pairs]


def test_nothing_changed_nothing_said():
    assert answers(EDGES) == set()
    assert answers(list(reversed(EDGES))) == set()


def test_a_removed_link_is_rejected_and_no_more():
    assert answers(without((1, 11))) == {("reject", ("move", (1,), (11,)))}


def test_an_added_link_is_confirmed():
    before = without((1, 11))
    assert answers(EDGES, before=before) == {("confirm", ("move", (1,), (11,)))}


def test_a_link_that_was_moved_is_confirmed_at_its_new_place():
    changed = [*without((1, 11), (2, 12)), (1, 12, "move"), (2, 11, "move")]
    assert answers(changed) == {
        ("confirm", ("move", (1,), (12,))),
        ("confirm", ("move", (2,), (11,))),
    }


def test_what_a_confirmed_event_does_not_touch_is_rejected():
    changed = [*without((1, 11), (3, 13)), (1, 13, "move")]
    assert answers(changed) == {("confirm", ("move", (1,), (13,)))}
    changed = [*without((2, 12), (3, 13)), (3, 12, "move")]
    assert answers(changed) == {("confirm", ("move", (3,), (12,)))}


def test_a_division_becomes_a_move_and_back():
    fewer = without((12, 23))
    assert answers(fewer) == {("confirm", ("move", (12,), (22,)))}
    assert answers(EDGES, before=fewer) == {("confirm", ("divide", (12,), (22, 23)))}


def test_links_marked_split_are_a_split():
    changed = [*without((12, 22), (12, 23)), (12, 22, "split"), (12, 23, "split")]
    assert answers(changed) == {("confirm", ("split", (12,), (22, 23)))}


def test_a_merge_and_a_skip():
    merged = [*without((1, 11), (2, 12)), (1, 12, "move"), (2, 12, "move")]
    assert answers(merged) == {("confirm", ("merge", (1, 2), (12,)))}
    skipped = [*without((1, 11), (11, 21)), (1, 21, "move")]
    assert answers(skipped) == {("confirm", ("skip", (1,), (21,)))}


def test_a_deleted_node_is_a_false_detection():
    ids = [i for i in IDS if i != 11]
    assert answers(without((1, 11), (11, 21)), ids) == {("confirm", ("false", (11,), ()))}


def test_a_node_that_came_back():
    edges = without((1, 11), (11, 21))
    original = tracks(edges, [i for i in IDS if i != 11])
    (alone,) = from_edited_tracks(original, tracks(edges))
    assert (alone.kind, alone.events[0].event) == (Kind.REJECT, Event.FALSE)
    linked = from_edited_tracks(original, tracks(without((11, 21))))
    assert [short(a.events[0]) for a in linked] == [("move", (1,), (11,))]


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([*EDGES, (12, 24, "move")], "cell 2 in frame 1 has 3 links to later cells"),
        (
            [*without((1, 11)), (22, 11, "move")],
            "links at cell 2 in frame 2 in the edited tracks: a skip spans two or more frames",
        ),
        ([*EDGES, (1, 99, "move")], "link 1 to 99, one of which is not a node"),
    ],
)
def test_links_that_are_no_event_are_named(edges, words):
    with pytest.raises(InputError, match=words):
        from_edited_tracks(tracks(EDGES), tracks(edges))
