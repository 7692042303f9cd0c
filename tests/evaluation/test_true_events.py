"""What the ground truth says about detections, in small drawn movies."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.evaluation.truth import Match, Status, match_detections, true_events
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.ctc import read_ctc
from bridgetrack.movie import Movie, open_labels
from bridgetrack.tracks.tracks import Tracks
from lineage_cases import Box, detections_of, frame_of, movie_of

Frames = list[dict[int, Box]]
LEFT, RIGHT, BOTH = (10, 10, 8, 8), (10, 18, 8, 8), (10, 10, 8, 16)
FAR = (28, 40, 6, 6)


def truth_of(frames: Frames, parents: dict[int, int] | None = None) -> tuple[Tracks, Movie]:
    """Tracks of which a label is one, with the parents named."""
    import pandas as pd

    from bridgetrack.io.ctc import nodes_of
    from bridgetrack.tracks.tracks import assemble_tracks

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


def said(
    found: Frames, truth: Frames, parents: dict[int, int] | None = None, **options: object
) -> set[str]:
    """Events as 'kind frame:labels>frame:labels', e.g. ``divide 0:1>1:1,2``."""
    movie = movie_of([frame_of(f) for f in found])
    detections = detections_of(movie)
    tracks, labels = truth_of(truth, parents)
    match = match_detections(detections, movie, tracks, labels)
    events = true_events(detections, tracks, match, **options)  # type: ignore[arg-type]

    def name(rows: np.ndarray) -> str:
        rows = rows[rows >= 0]
        if not len(rows):
            return ""
        return f"{detections.frame[rows[0]]}:" + ",".join(str(v) for v in detections.label[rows])

    return {
        f"{Event(e).key} {name(s)}>{name(t)}"
        for e, s, t in zip(events.event, events.sources, events.targets, strict=True)
    }


def test_perfect_detections() -> None:
    frames = [{1: LEFT, 4: FAR}, {2: LEFT, 3: RIGHT, 4: FAR}, {2: LEFT, 5: (2, 50, 5, 5)}]
    assert said(frames, frames, {2: 1, 3: 1}) == {
        "divide 0:1>1:2,3",
        "move 0:4>1:4",
        "move 1:2>2:2",
        "disappear 1:3>",
        "disappear 1:4>",
        "appear >2:5",
    }


def test_two_cells_drawn_as_one() -> None:
    truth = [{1: LEFT, 2: RIGHT}] * 4
    found = [{1: LEFT, 2: RIGHT}, {7: BOTH}, {8: BOTH}, {1: LEFT, 2: RIGHT}]
    assert said(found, truth) == {"merge 0:1,2>1:7", "move 1:7>2:8", "split 2:8>3:1,2"}


def test_a_cell_cut_in_two() -> None:
    truth = [{1: BOTH}] * 3
    found = [{1: BOTH}, {1: LEFT, 2: RIGHT}, {5: BOTH}]
    assert said(found, truth) == {"split 0:1>1:1,2", "merge 1:1,2>2:5"}


def test_uneven_pieces_and_debris() -> None:
    truth = [{1: BOTH}] * 2
    uneven = {1: (10, 10, 8, 11), 2: (10, 21, 8, 5)}
    debris = {1: (10, 10, 8, 15), 2: (10, 25, 1, 1)}
    assert said([{1: BOTH}, uneven], truth) == {"split 0:1>1:1,2"}
    assert said([{1: BOTH}, debris], truth) == {"move 0:1>1:1"}


def test_a_missed_cell_is_skipped_for_two_frames_at_most() -> None:
    truth = [{1: LEFT}] * 5
    assert said([{1: LEFT}, {}, {1: LEFT}, {}, {}], truth) == {"skip 0:1>2:1"}
    assert said([{1: LEFT}, {}, {}, {1: LEFT}, {}], truth) == {"skip 0:1>3:1"}
    assert said([{1: LEFT}, {}, {}, {}, {1: LEFT}], truth) == set()


def test_a_gap_of_the_truth_is_a_skip() -> None:
    frames: Frames = [{1: LEFT}, {}, {1: LEFT}]
    assert said(frames, frames) == {"skip 0:1>2:1"}


def test_false_detections_and_those_that_may_be_something() -> None:
    truth = [{1: LEFT}] * 2
    found = [{1: LEFT, 2: FAR}, {1: LEFT, 2: (17, 17, 6, 6)}]
    assert said(found, truth) == {"move 0:1>1:1", "false 0:2>", "false 1:2>"}
    touching = [{1: LEFT}, {1: (10, 10, 8, 6), 2: (14, 16, 8, 4)}]
    assert said(touching, truth) == {"move 0:1>1:1"}


def test_a_lost_daughter_leaves_the_mother_open() -> None:
    truth = [{1: LEFT}, {2: LEFT, 3: FAR}]
    assert said([{1: LEFT}, {2: LEFT}], truth, {2: 1, 3: 1}) == set()


def test_sparse_truth_says_nothing_about_ends() -> None:
    frames: Frames = [{}, {1: LEFT}, {1: LEFT}, {}]
    assert said(frames, frames) == {"appear >1:1", "move 1:1>2:1", "disappear 2:1>"}
    assert said(frames, frames, complete=False) == {"move 1:1>2:1"}


def test_nothing_is_certain_near_the_field_of_interest() -> None:
    frames: Frames = [{}, {1: (3, 20, 4, 4), 2: (18, 28, 4, 4)}, {}]
    assert said(frames, frames, field_of_interest=4.0) == {"appear >1:2", "disappear 1:2>"}
    movie, (tracks, labels) = movie_of([frame_of(frames[1])] * 3), truth_of([{}, {3: FAR}, {}])
    detections = detections_of(movie)
    match = match_detections(detections, movie, tracks, labels, field_of_interest=10.0)
    assert match.status.tolist() == [Status.UNCLEAR, Status.FALSE] * 3


def test_matching_by_distance() -> None:
    tracks, _ = truth_of([{1: LEFT, 2: FAR}])
    detections = detections_of(movie_of([frame_of({5: (11, 11, 8, 8), 6: (2, 50, 3, 3)})]))
    match = match_detections(detections, None, tracks, None, radius=3.0)
    assert match.node.tolist() == [0, -1]
    assert match.status.tolist() == [Status.MATCHED, Status.FALSE]
    assert match.missed.tolist() == [False, True]


def test_dimensions_must_fit() -> None:
    tracks, _ = truth_of([{1: LEFT}])
    solid = detections_of(movie_of([np.ones((2, 4, 4), dtype=np.uint16)]))
    with pytest.raises(InputError, match="3D, the ground truth is 2D"):
        match_detections(solid, None, tracks, None)


def assert_consistent(match: Match, n: int, events: object) -> None:
    """Matched both ways, and no slot settled twice."""
    i = np.flatnonzero(match.node >= 0)
    assert np.array_equal(match.detection[match.node[i]], i)
    e = events
    active = np.ones(2 * n, dtype=bool)
    cover = e.incidence(active)  # type: ignore[attr-defined]
    assert cover.sum(axis=0).max() <= 1


def test_real_automatic_masks(shared_data: pytest.TempPathFactory) -> None:
    folder = shared_data / "Fluo-N2DL-HeLa-01"  # type: ignore[operator]
    truth = read_ctc(folder)
    labels = open_labels(folder / "01_AUTO" / "mask*.tif")
    detections = detections_of(labels)
    match = match_detections(detections, labels, truth.tracks, truth.labels, field_of_interest=25.0)
    events = true_events(detections, truth.tracks, match, field_of_interest=25.0)
    assert_consistent(match, len(detections), events)
    counts = {e.key: len(events.of(e)) for e in Event}
    assert counts["move"] > 7000
    assert counts["divide"] > 80
    assert min(counts["split"], counts["merge"], counts["false"]) > 20
    perfect = match_detections(
        detections_of(truth.labels), truth.labels, truth.tracks, truth.labels
    )
    assert np.array_equal(perfect.node, np.arange(len(truth.tracks.nodes)))
