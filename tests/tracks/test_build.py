"""Chosen events become tracks: the gallery, its numbering and its lineages."""

import numpy as np
import pandas as pd
import pytest

from bridgetrack.hypotheses.events import Event, active_slots
from bridgetrack.tracks.build import build_tracks
from bridgetrack.tracks.tracks import edge_events
from gallery import BY_NAME, GALLERY, measured

ids = [s.name for s in GALLERY]


def cells_of(tracks):
    """Rows of the detections of every track."""
    return {
        int(k): frozenset(group["id"].tolist()) for k, group in tracks.nodes.groupby("track_id")
    }


def built(situation):
    detections = measured(situation)
    hypotheses, chosen = situation.oracle(detections)
    covered = np.asarray(hypotheses.incidence(active_slots(detections)).sum(axis=0)).ravel()
    np.testing.assert_array_equal(covered, active_slots(detections), err_msg="the drawing is wrong")
    return detections, build_tracks(detections, hypotheses, chosen)


@pytest.mark.parametrize("situation", GALLERY, ids=ids)
def test_the_gallery(situation):
    detections, tracks = built(situation)
    expected = situation.expected_cells(detections)
    number = {rows: k for k, rows in cells_of(tracks).items()}
    assert set(number) == set(expected)
    wanted = {(number[expected[a]], number[expected[b]], kind) for a, b, kind in situation.links}
    assert set(tracks.links.itertuples(index=False, name=None)) == wanted
    # Tracks count from 1 by first frame and label.
    first = tracks.nodes.drop_duplicates("track_id")
    assert first["track_id"].tolist() == list(range(1, tracks.n_tracks + 1))
    order = list(zip(first["frame"], first["label"], strict=True))
    assert order == sorted(order)
    # A lineage has the number of its first track, by the first parent of each.
    parent = tracks.links.drop_duplicates("track_id").set_index("track_id")["parent_id"].to_dict()
    for track, lineage in first[["track_id", "lineage_id"]].itertuples(index=False):
        root = track
        while root in parent:
            root = parent[root]
        assert lineage == root
    # Every event and every link is listed.
    truth = situation.true_events(detections)
    listed = {
        (Event.from_key(e), s, t)
        for e, s, t in tracks.events[["event", "sources", "targets"]].itertuples(index=False)
    }
    assert listed == set(truth)
    pairs = {(s, t, e.key) for e, before, after in truth for s in before for t in after}
    assert set(tracks.edges[["source", "target", "event"]].itertuples(index=False, name=None)) == (
        pairs
    )


def test_the_order_of_hypotheses_does_not_matter():
    situation = BY_NAME["two cells touch for a frame and part"]
    detections = measured(situation)
    h, chosen = situation.oracle(detections)
    back = np.arange(len(h))[::-1]
    reversed_ = h.take(back)
    one = build_tracks(detections, h, chosen)
    two = build_tracks(detections, reversed_, chosen)
    pd.testing.assert_frame_equal(one.nodes, two.nodes)
    pd.testing.assert_frame_equal(one.links, two.links)
    pd.testing.assert_frame_equal(one.edges, two.edges)


def test_scores_and_margins_go_with_their_events():
    situation = BY_NAME["a division"]
    detections = measured(situation)
    hypotheses, chosen = situation.oracle(detections)
    scores = np.arange(len(hypotheses), dtype=float)
    tracks = build_tracks(detections, hypotheses, chosen, scores, scores + 0.5)
    divide = int(hypotheses.of(Event.DIVIDE)[0])
    row = tracks.events[tracks.events["event"] == "divide"].iloc[0]
    assert (row["score"], row["margin_at_least"]) == (divide, divide + 0.5)
    edges = tracks.edges[tracks.edges["event"] == "divide"]
    assert edges["score"].tolist() == [divide, divide]
    unscored = build_tracks(detections, hypotheses, chosen)
    assert unscored.events[["score", "margin_at_least"]].isna().all(axis=None)


def test_links_of_other_programs_are_named_by_their_ends():
    """A move, a gap, a division and a merge, of which nothing is known but what they join."""
    nodes = pd.DataFrame({"frame": [1, 2, 4, 5, 5, 6]})
    links = np.array([[0, 1], [1, 2], [2, 3], [2, 4], [3, 5], [4, 5]]).T
    named = ["move", "skip", "divide", "divide", "merge", "merge"]
    assert edge_events(nodes, *links).tolist() == named
