from dataclasses import replace

import pandas as pd
import pytest

from bridgetrack.annotations.from_tracks import link_events
from bridgetrack.errors import InputError
from lineage_cases import tracks_of

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


def events(edges):
    """Kind and cells of the events that links amount to, whatever order they are in."""
    tracks = tracks_of([(i // 10, i % 10, 10.0 * (i % 10), 5.0, 1) for i in IDS], [], n_frames=3)
    table = pd.DataFrame(edges, columns=["source", "target", "event"])
    table = table.assign(score=0.0, margin_at_least=0.0)
    found = link_events(replace(tracks, nodes=tracks.nodes.assign(id=IDS), edges=table))
    return {short(event) for event in found}


def short(event):
    ids = [[10 * c.frame + c.label for c in side] for side in (event.sources, event.targets)]
    return event.event.key, *map(tuple, ids)


def without(*pairs):
    return [e for e in EDGES if e[:2] not in pairs]


def test_links_are_moves_and_divisions():
    moves = {("move", (i,), (j,)) for i, j, event in EDGES if event == "move"}
    assert events(EDGES) == moves | {("divide", (12,), (22, 23))}
    assert events(list(reversed(EDGES))) == events(EDGES)


def test_links_marked_split_are_a_split():
    changed = [*without((12, 22), (12, 23)), (12, 22, "split"), (12, 23, "split")]
    assert ("split", (12,), (22, 23)) in events(changed)


def test_a_merge_and_a_skip():
    merged = [*without((1, 11), (2, 12)), (1, 12, "move"), (2, 12, "move")]
    assert events(merged) - events(EDGES) == {("merge", (1, 2), (12,))}
    skipped = [*without((1, 11), (11, 21)), (1, 21, "move")]
    assert events(skipped) - events(EDGES) == {("skip", (1,), (21,))}


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([*EDGES, (12, 24, "move")], "cell 2 in frame 1 to 3 later"),
        ([*EDGES, (1, 13, "move"), (2, 13, "move")], "cell 3 in frame 1 to 3 earlier"),
        ([*without((1, 11)), (22, 11, "move")], "from 22 .* does not run forward in time"),
        ([*EDGES, (1, 99, "move")], "names the id 99, but there is no such"),
    ],
)
def test_links_that_are_no_event_are_named(edges, words):
    with pytest.raises(InputError, match=words):
        events(edges)
