"""GEFF stores that other programs understand, and theirs that we do."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import geff_spec
import numpy as np
import pytest
from geff import validate_structure
from geff.core_io import read_to_memory, write_arrays
from geff.validate.data import ValidationConfig
from geff.validate.tracks import validate_lineages, validate_tracklets
from pandas.testing import assert_frame_equal

from bridgetrack.errors import InputError
from bridgetrack.io.geff import read_geff, write_geff
from bridgetrack.io.results import read_tracks
from lineage_cases import tracks_of

DIVISION = [(0, 1, 5, 5, 1), (1, 1, 5, 5, 1), (2, 1, 4, 5, 2), (2, 2, 6, 5, 3)]
EDGES = [(0, 1, "move"), (1, 2, "divide"), (1, 3, "divide")]


def test_the_metadata_is_complete(tmp_path: Path) -> None:
    physical = {"scale": (0.5, 0.25), "unit": "micrometer", "frame_interval": 3.0}
    tracks = tracks_of(DIVISION, EDGES, **physical)
    write_geff(tracks, tmp_path / "a.geff", labels_path="labels.tif")
    validate_structure(tmp_path / "a.geff")
    graph = read_to_memory(tmp_path / "a.geff")
    metadata = graph["metadata"]
    assert metadata.directed
    assert set(metadata.node_props_metadata) == set(graph["node_props"])
    assert set(metadata.edge_props_metadata) == {"event", "score", "margin_at_least"}
    axes = [(a.name, a.unit, a.scale, a.scaled_unit) for a in metadata.axes or []]
    assert axes == [
        ("t", "frame", 3.0, "minute"),
        ("y", "pixel", 0.5, "micrometer"),
        ("x", "pixel", 0.25, "micrometer"),
    ]
    assert set(metadata.extra["bridgetrack"]) == {"version", "format", "geometry", "links", "notes"}
    assert metadata.track_node_props == {"tracklet": "track_id", "lineage": "lineage_id"}
    ids, edges = tracks.nodes["id"], tracks.edges[["source", "target"]].to_numpy()
    assert validate_lineages(ids, edges, tracks.nodes["lineage_id"])[0]
    assert validate_tracklets(ids, edges, tracks.nodes["track_id"])[0]
    assert metadata.display_hints is not None
    assert [o.path for o in metadata.related_objects or []] == ["labels.tif"]


PIECES = [(0, 1, 5, 5, 1), (1, 1, 5, 4, 1), (1, 2, 5, 6, 1)]
SPLIT = [(a, b, {"divide": "split"}.get(event, event)) for a, b, event in EDGES]


MERGED = [(0, 1, 5, 5, 1), (0, 2, 5, 9, 2), (1, 1, 5, 7, 3)]


@pytest.mark.parametrize(
    ("nodes", "edges", "lineage"),
    [
        (PIECES, [(0, 1, "split"), (0, 2, "split")], "lineage_id"),
        (DIVISION, SPLIT, "lineage_id"),
        (DIVISION[:3], EDGES[:2], "lineage_id"),
        (PIECES, [(0, 1, "move")], "component_id"),
        (MERGED, [(0, 2, "merge"), (1, 2, "merge")], "component_id"),
    ],
    ids=["a cell in pieces", "a split", "a division into one", "a piece apart", "a merge"],
)
def test_ids_that_break_the_rules_are_called_lineages_alone(
    tmp_path: Path, nodes: Any, edges: Any, lineage: str
) -> None:
    tracks, path = tracks_of(nodes, edges), tmp_path / "a.geff"
    if nodes is MERGED:  # as tracking says it: the lineage of the first parent goes on
        tracks = replace(tracks, nodes=tracks.nodes.assign(lineage_id=[1, 2, 1]))
    write_geff(tracks, path)
    every = ValidationConfig(graph=True, lineage=True, tracklet=True)
    props = read_to_memory(path, data_validation=every)["metadata"].track_node_props
    assert props == {"lineage": lineage}
    assert_frame_equal(read_geff(path).nodes, tracks.nodes, check_like=True)


def foreign(path: Path, step: int = 1, more: Any = None, **changes: Any) -> Path:
    """A store as another program may write it: micrometres, seconds, props of its own."""
    ids = np.array([7, 8, 9, 12], dtype=np.uint64)
    edges = np.array([[7, 8], [8, 9], [8, 12]], dtype=np.uint64)
    values = {
        "time": step * np.array([0, 1, 2, 2]),
        "x": np.array([1.0, 2, 3, 4]),
        "y": np.array([5.0, 6, 7, 8]),
        "z": np.array([0.0, 0, 1, 1]),
        "seg_id": np.array([3, 3, 4, 6]),
        **(more or {}),
    }
    axes = [
        geff_spec.Axis(name="time", type="time", unit="frame", scale=30, scaled_unit="second"),
        *(geff_spec.Axis(name=n, type="space", unit="micrometer") for n in "xyz"),
    ]
    given = {"directed": True, "axes": axes, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metadata = geff_spec.GeffMetadata(node_props_metadata={}, edge_props_metadata={}, **given)
        # where some are missing, what is there is masked
        lost = {k: v.mask if np.ma.isMaskedArray(v) else None for k, v in values.items()}
        props = {k: {"values": np.asarray(v), "missing": lost[k]} for k, v in values.items()}
        kinds = {"event": {"values": np.array([1, 2, 3]), "missing": None}}  # a word of their own
        write_arrays(path, ids, props, edges, kinds, metadata)
    return path


def test_the_store_of_another_program(tmp_path: Path) -> None:
    tracks = read_geff(foreign(tmp_path / "b.geff"))
    assert tracks.nodes[["z", "y", "x"]].to_numpy()[-1].tolist() == [1, 8, 4]
    assert tracks.nodes["label"].tolist() == [3, 3, 4, 6]
    assert tracks.nodes["track_id"].tolist() == [1, 1, 2, 3]
    assert tracks.events["event"].tolist() == ["move", "divide"]
    assert (tracks.geometry.unit, tracks.geometry.frame_interval) == ("micrometer", 0.5)


def test_a_size_that_is_missing_is_not_known(tmp_path: Path) -> None:
    sizes = np.ma.array([4.0, 5.0, 6.0, 7.0], mask=[False, True, False, False])
    assert read_geff(foreign(tmp_path / "a.geff", more={"area": sizes})).nodes["area"].tolist() == [
        4, 1, 6, 7
    ]  # fmt: skip


def test_stores_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such GEFF store"):
        read_geff(tmp_path / "none.geff")
    (tmp_path / "empty.geff").mkdir()
    with pytest.raises(InputError, match="cannot be read as a GEFF store"):
        read_geff(tmp_path / "empty.geff")
    lost = np.array([1.0, np.nan, 3, 4])
    with pytest.raises(InputError, match="the node 8 has no position along x"):
        read_geff(foreign(tmp_path / "lost.geff", more={"x": lost}))
    (foreign(tmp_path / "cut.geff") / "nodes" / "props" / "x" / "values" / "0").unlink()
    with pytest.raises(InputError, match="values: 1 of 1 chunks are missing"):
        read_geff(tmp_path / "cut.geff")
    axes = [geff_spec.Axis(name=n, type="space") for n in "yx"]
    with pytest.raises(InputError, match="one time axis"):
        read_geff(foreign(tmp_path / "no-time.geff", axes=axes))


def test_a_store_without_axes_has_them_by_name(tmp_path: Path) -> None:
    tracks = read_geff(foreign(tmp_path / "a.geff", axes=None))
    assert tracks.nodes[["frame", "z", "y", "x"]].to_numpy()[-1].tolist() == [2, 1, 8, 4]


@pytest.mark.parametrize(("unit", "interval"), [("minute", 5), (None, None)])
def test_times_are_counted_as_frames(tmp_path: Path, unit: Any, interval: Any) -> None:
    axes = [geff_spec.Axis(name="time", type="time", unit=unit)]
    axes += [geff_spec.Axis(name=n, type="space") for n in "yx"]
    tracks = read_geff(foreign(tmp_path / "a.geff", axes=axes, step=5))
    assert tracks.nodes["frame"].tolist() == [0, 1, 2, 2]
    assert tracks.geometry.frame_interval == interval


def test_a_store_by_any_name_undirected_and_with_radii(tmp_path: Path) -> None:
    more = {"radius": np.full(4, 3.0)}
    tracks = read_tracks(foreign(tmp_path / "tracks.zarr", directed=False, more=more))
    assert tracks.events["event"].tolist() == ["move", "divide"]
    assert tracks.nodes["area"].tolist() == pytest.approx([36 * np.pi] * 4)


def test_pickled_arrays_are_never_decoded(tmp_path: Path) -> None:
    store = foreign(tmp_path / "b.geff")
    array = store / "nodes" / "ids" / ".zarray"
    description = json.loads(array.read_text())
    description["filters"] = [{"id": "pickle", "protocol": 5}]
    array.write_text(json.dumps(description))
    with pytest.raises(InputError, match="pickled"):
        read_geff(store)
