"""What the ground truth says about detections, in small drawn movies, and shared pixels."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bridgetrack.errors import InputError
from bridgetrack.evaluation.truth import CellIds, movie_overlaps, true_events
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.ctc import nodes_of
from bridgetrack.tracks.tracks import assemble_tracks
from lineage_cases import detections_of, frame_of, movie_of

LEFT, RIGHT, BOTH = (10, 10, 8, 8), (10, 18, 8, 8), (10, 10, 8, 16)
FAR = (28, 40, 6, 6)


def truth_of(frames, parents=None):
    """Tracks of which a label is one, with the parents named."""
    movie = movie_of([frame_of(f) for f in frames])
    nodes = nodes_of(movie)
    nodes["track_id"] = nodes["label"]
    nodes.insert(0, "id", np.arange(len(nodes)))
    edges = []
    for label, rows in nodes.groupby("label")["id"]:
        edges += list(zip(rows[:-1], rows[1:], strict=True))
        if parents and label in parents:
            mother = nodes["id"][nodes["label"] == parents[label]].iloc[-1]
            edges.append((mother, rows.iloc[0]))
    table = pd.DataFrame(edges, columns=["source", "target"], dtype=np.int64)
    return assemble_tracks(nodes, table, movie.geometry), movie


def said(found, truth, parents=None):
    """Events as 'kind frame:labels>frame:labels', e.g. ``divide 0:1>1:1,2``."""
    movie = movie_of([frame_of(f) for f in found])
    detections = detections_of(movie)
    tracks, labels = truth_of(truth, parents)
    events = true_events(detections, movie, tracks, labels)

    def name(rows):
        rows = rows[rows >= 0]
        if not len(rows):
            return ""
        return f"{detections.frame[rows[0]]}:" + ",".join(str(v) for v in detections.label[rows])

    return {
        f"{Event(e).key} {name(s)}>{name(t)}"
        for e, s, t in zip(events.event, events.sources, events.targets, strict=True)
    }


TWO, ONE = {1: LEFT, 2: RIGHT}, {1: BOTH}
UNEVEN = {1: (10, 10, 8, 11), 2: (10, 21, 8, 5)}
DEBRIS = {1: (10, 10, 8, 15), 2: (10, 25, 1, 1)}
SMALL = {1: (10, 10, 8, 6), 2: (14, 16, 8, 4)}
CASES = {
    "two cells drawn as one": ([TWO, {7: BOTH}, {8: BOTH}, TWO], [TWO] * 4, set()),
    "a cell cut in two": ([ONE, TWO, {5: BOTH}], [ONE] * 3, set()),
    "uneven pieces": ([ONE, UNEVEN], [ONE] * 2, set()),
    "debris": ([ONE, DEBRIS], [ONE] * 2, {"move 0:1>1:1"}),
    "missed once": ([{1: LEFT}, {}, {1: LEFT}, {}, {}], [{1: LEFT}] * 5, set()),
    "a gap of the truth": (
        [{1: LEFT}, {}, {1: LEFT}],
        [{1: LEFT}, {}, {1: LEFT}],
        {"skip 0:1>2:1"},
    ),
    "a false detection": (
        [{1: LEFT, 2: FAR}, {1: LEFT, 2: (17, 17, 6, 6)}],
        [{1: LEFT}] * 2,
        {"move 0:1>1:1"},
    ),
    "it appears and disappears": (
        [{}, {1: LEFT}, {1: LEFT}, {}],
        [{}, {1: LEFT}, {1: LEFT}, {}],
        {"appear >1:1", "move 1:1>2:1", "disappear 2:1>"},
    ),
    "it may be a piece": ([{1: LEFT}, SMALL], [{1: LEFT}] * 2, {"move 0:1>1:1"}),
}


@pytest.mark.parametrize("name", CASES)
def test_what_happened(name):
    found, truth, events = CASES[name]
    assert said(found, truth) == events


def test_perfect_detections_and_a_lost_daughter():
    frames = [{1: LEFT, 4: FAR}, {2: LEFT, 3: RIGHT, 4: FAR}, {2: LEFT, 5: (2, 50, 5, 5)}]
    assert said(frames, frames, {2: 1, 3: 1}) == {
        "divide 0:1>1:2,3",
        "move 0:4>1:4",
        "move 1:2>2:2",
        "disappear 1:3>",
        "disappear 1:4>",
        "appear >2:5",
    }
    truth = [{1: LEFT}, {2: LEFT, 3: FAR}]
    assert said([{1: LEFT}, {2: LEFT}], truth, {2: 1, 3: 1}) == set()


images = arrays(np.uint16, (2, 5, 6), elements=st.integers(0, 4))


@settings(max_examples=15)
@given(images, images)
def test_counts_equal_those_of_a_loop(first, second):
    sides = []
    for images_ in (first, second):
        movie = movie_of(list(images_))
        detections = detections_of(movie)
        sides.append(CellIds(detections.frame, detections.label, movie))
    a, b = sides
    overlaps = movie_overlaps(a, b)
    found = {
        (i, j): n
        for i, j, n in zip(
            overlaps.a.tolist(), overlaps.b.tolist(), overlaps.pixels.tolist(), strict=True
        )
    }
    expected = {}
    for i, (t, u) in enumerate(zip(a.frame, a.label, strict=True)):
        assert overlaps.area_a[i] == (first[t] == u).sum()
        for j, (s, v) in enumerate(zip(b.frame, b.label, strict=True)):
            n = int(((first[t] == u) & (second[s] == v)).sum()) if s == t else 0
            if n:
                expected[i, j] = n
    assert found == expected


def test_movies_must_fit():
    small, large = movie_of([np.zeros((4, 4), int)]), movie_of([np.zeros((4, 5), int)])
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(InputError, match="same movie"):
        movie_overlaps(CellIds(nothing, nothing, small), CellIds(nothing, nothing, large))
