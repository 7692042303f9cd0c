"""The table of tracks, tracks as napari's arrays, and plots."""

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.progress import run
from bridgetrack.tracks.numbers import layer_data, numbers_of
from bridgetrack.tracks.table import track_table
from lineage_cases import tracks_of

NODES = [
    (0, 1, 20, 20, 1), (1, 1, 20, 23, 1), (2, 1, 24, 23, 1), (3, 1, 22, 20, 2), (4, 1, 22, 20, 2),
    (3, 2, 26, 20, 3), (4, 2, 38, 20, 3),
]  # fmt: skip
EDGES = [
    (0, 1, "move"), (1, 2, "move"), (2, 3, "divide"), (3, 4, "move"), (2, 5, "divide"),
    (5, 6, "move"),
]  # fmt: skip


def test_micrometres_and_minutes_with_one():
    physical = {"scale": (0.5, 2.0), "unit": "micrometer", "frame_interval": 10.0}
    table = track_table(tracks_of(NODES, EDGES, n_frames=5, **physical)).set_index("track_id")
    assert table.loc[1, "duration [min]"] == 20
    assert table.loc[1, "path_length [um]"] == 8
    assert table.loc[1, "mean_speed [um/min]"] == 0.4
    assert table["ends_in"].tolist() == ["division", "end of movie", "end of movie"]
    plain = track_table(tracks_of(NODES, EDGES, n_frames=5)).set_index("track_id")
    assert plain["mean_speed [px/frame]"].tolist() == [3.5, 0, 12]


def test_merges_gaps_pieces_and_single_frames():
    nodes = [(0, 1, 5, 5, 1), (0, 2, 5, 9, 2), (2, 1, 5, 4, 3), (2, 2, 5, 8, 3)]
    edges = [(0, 2, "merge"), (1, 2, "merge"), (0, 3, "merge")]
    links = [(3, 1, "merge"), (3, 2, "merge")]
    table = track_table(tracks_of(nodes, edges, links, n_frames=3)).set_index("track_id")
    assert table.loc[3, "parent_id"] == "1 2"
    assert table.loc[3, "link"] == "merge merge"
    assert table["ends_in"].tolist() == ["merge", "merge", "end of movie"]
    assert table["detections"].tolist() == [1, 1, 2]
    assert np.isnan(table.loc[3, "mean_speed [px/frame]"])
    assert table["generation"].tolist() == [0, 0, 0]


def test_pieces_are_one_row_of_a_layer_and_a_gap_stays_inside():
    nodes = [(0, 1, 5, 5, 1), (1, 1, 5, 4, 1), (1, 2, 5, 8, 1), (4, 1, 5, 5, 1)]
    edges = [(0, 1, "split"), (0, 2, "split"), (1, 3, "merge"), (2, 3, "merge")]
    tracks = tracks_of(nodes, edges, scale=(1.0, 0.5))
    tracks.nodes.loc[1, "area"] = 30.0
    data, features, graph = layer_data(tracks)
    assert data.tolist() == [[1, 0, 5, 5], [1, 1, 5, 5], [1, 4, 5, 5]], "in pixels"
    assert features["node_id"].tolist() == [0, 1, 3] and features["label"].tolist() == [1, 1, 1]
    assert features["area"].tolist() == [10, 40, 10]
    assert graph == {}


def test_a_merge_has_several_parents_in_a_layer():
    nodes = [(0, 1, 5, 5, 1), (0, 2, 5, 9, 2), (1, 1, 5, 7, 3)]
    _, _, graph = layer_data(tracks_of(nodes, [(0, 2, "merge"), (1, 2, "merge")]))
    assert graph == {3: [1, 2]}


def test_a_bar_for_each_count():
    numbers = run(numbers_of(tracks_of(NODES, EDGES, n_frames=5)))
    edges, counts, chosen = numbers.distribution("track:detections", [1])
    assert edges.tolist() == [1.5, 2.5, 3.5], "of 2 and of 3 cells"
    assert (counts.tolist(), chosen.tolist()) == ([2, 1], [0, 1])


def test_no_edge_stays_in_a_frame():
    with pytest.raises(InputError, match="does not run forward in time"):
        tracks_of([(0, 1, 5, 5, 1), (0, 2, 9, 5, 1)], [(0, 1, "move")])
