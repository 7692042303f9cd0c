"""Tracks as napari arrays and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from bridgetrack.errors import InputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.napari_tracks import from_napari, to_napari
from bridgetrack.tracks.tracks import Tracks
from lineage_cases import random_tracks, tracks_of


def test_a_division() -> None:
    nodes = [(0, 1, 5, 5, 1), (1, 1, 6, 5, 1), (2, 1, 4, 5, 2), (2, 2, 8, 5, 3)]
    tracks = tracks_of(nodes, [(0, 1, "move"), (1, 2, "divide"), (1, 3, "divide")])
    data, properties, graph = to_napari(tracks)
    assert data.tolist() == [[1, 0, 5, 5], [1, 1, 6, 5], [2, 2, 4, 5], [3, 2, 8, 5]]
    assert graph == {2: [1], 3: [1]}
    assert properties["event"].tolist() == ["start", "move", "divide", "divide"]
    assert properties["lineage_id"].tolist() == [1, 1, 1, 1]
    assert properties["label"].tolist() == [1, 1, 1, 2]


def test_pieces_are_one_row_and_a_gap_stays_inside() -> None:
    nodes = [(0, 1, 5, 5, 1), (1, 1, 5, 4, 1), (1, 2, 5, 8, 1), (4, 1, 5, 5, 1)]
    edges = [(0, 1, "split"), (0, 2, "split"), (1, 3, "merge"), (2, 3, "merge")]
    tracks = tracks_of(nodes, edges)
    tracks.nodes.loc[1, "area"] = 30.0
    data, properties, graph = to_napari(tracks)
    assert data.tolist() == [[1, 0, 5, 5], [1, 1, 5, 5], [1, 4, 5, 5]]
    assert properties["pieces"].tolist() == [1, 2, 1]
    assert properties["area"].tolist() == [10, 40, 10]
    assert graph == {}


def test_a_merge_has_several_parents() -> None:
    nodes = [(0, 1, 5, 5, 1), (0, 2, 5, 9, 2), (1, 1, 5, 7, 3)]
    tracks = tracks_of(nodes, [(0, 2, "merge"), (1, 2, "merge")])
    _, properties, graph = to_napari(tracks)
    assert graph == {3: [1, 2]}
    assert properties["event"].tolist()[-1] == "merge"


def test_margins_come_from_edges_and_appearances() -> None:
    tracks = tracks_of([(0, 1, 1, 1, 1), (1, 1, 1, 1, 1), (1, 2, 9, 9, 2)], [(0, 1, "move")])
    tracks.edges["margin_at_least"] = 2.5
    tracks.events.loc[tracks.events["event"] == "appear", "margin_at_least"] = 0.5
    _, properties, _ = to_napari(tracks)
    assert np.array_equal(properties["margin_at_least"], [np.nan, 2.5, 0.5], equal_nan=True)
    assert properties["event"].tolist() == ["start", "move", "appear"]


@settings(deadline=None, max_examples=30)
@given(random_tracks())
def test_round_trip(tracks: Tracks) -> None:
    arrays = to_napari(tracks)
    back = from_napari(*arrays, geometry=tracks.geometry)
    nodes = tracks.nodes.set_index("id").sort_index()
    again = back.nodes.set_index("id").sort_index()
    columns = ["frame", "label", *tracks.geometry.axes, "area", "track_id"]
    assert np.array_equal(nodes[columns], again[columns])
    assert back.links[["track_id", "parent_id"]].equals(tracks.links[["track_id", "parent_id"]])
    data, properties, graph = to_napari(back)
    assert np.array_equal(data, arrays[0])
    assert graph == arrays[2]
    assert properties["node_id"].tolist() == arrays[1]["node_id"].tolist()


def test_events_follow_from_the_graph() -> None:
    data = np.array([[1, 0, 1, 1], [1, 3, 1, 1], [2, 1, 1, 2], [3, 4, 1, 1], [4, 4, 2, 2]])
    back = from_napari(data.astype(float), graph={2: 1, 3: [1], 4: [1, 2]})
    kinds = dict(zip(back.links["track_id"].tolist(), back.links["event"], strict=False))
    assert kinds == {2: "split", 3: "divide", 4: "merge"}
    assert "skip" in back.edges["event"].tolist()


@pytest.mark.parametrize(
    ("data", "graph", "message"),
    [
        ([[1, 0, 1]], {}, "ID, T"),
        ([[1, 0, np.nan, 1]], {}, "finite"),
        ([[1, 0, 1, 1], [1, 0, 2, 2]], {}, "two rows in one frame"),
        ([[1, 0, 1, 1]], {1: [7]}, "names the track 7"),
        ([[1, 1, 1, 1], [2, 1, 1, 1]], {2: [1]}, "not there before"),
    ],
)
def test_wrong_arrays_are_explained(
    data: list[list[float]], graph: dict[int, list[int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        from_napari(np.array(data), graph=graph, geometry=Geometry(3, None, (1.0, 1.0)))
