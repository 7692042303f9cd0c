"""Arrays or paths in; a graph, tables, files or a model out."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import tifffile

import bridgetrack as bt
from bridgetrack.errors import InputError
from bridgetrack.evaluation.scores import can_score
from bridgetrack.pipeline.scene import measure
from short_sample import busy_part
from simulator import SimulationSettings, simulate

HOW = {"scale": (0.645, 0.645), "frame_interval": 10.0}


@pytest.fixture(scope="module")
def movie():
    """A small movie with its truth."""
    settings = SimulationSettings(frames=10, cells=14, size=160, division_rate=0.03, seed=3)
    return simulate(settings)


def test_a_movie_that_was_tracked_is_tracked_again(movie):
    first = bt.track(movie.labels)
    for given in (first, first.scene):
        again = bt.track(given)
        pd.testing.assert_frame_equal(again.tables.nodes, first.tables.nodes)
        with pytest.raises(bt.BridgetrackError, match="give labels instead"):
            bt.track(given, movie.image)


def test_arrays_and_paths_give_the_same(movie, tmp_path):
    tifffile.imwrite(tmp_path / "labels.tif", movie.labels)
    tifffile.imwrite(tmp_path / "image.tif", movie.image)
    opened = bt.open_labels(movie.labels), bt.open_movie(movie.image)
    pairs = (
        (movie.labels, movie.image),
        (da.from_array(movie.labels), da.from_array(movie.image)),
        (tmp_path / "labels.tif", str(tmp_path / "image.tif")),
        opened,
    )
    first, *others = (bt.track(*pair).tables for pair in pairs)
    for other in others:
        for name, table in vars(first).items():
            pd.testing.assert_frame_equal(getattr(other, name), table)
    assert bt.track(movie.labels).tables.nodes.shape[0] == len(first.nodes)
    with_scale = bt.track(movie.labels, movie.image, **HOW).tracks.geometry
    assert (with_scale.unit, with_scale.frame_interval) == ("micrometer", 10.0)


def test_a_table_has_the_extent_and_the_scale_of_its_image(tmp_path):
    path = tmp_path / "cells.csv"
    path.write_text("frame,y,x\n0,10,30\n1,11,30\n")
    image = bt.open_movie(np.zeros((3, 40, 50), np.uint8), scale=(0.5, 0.5))
    found = bt.track(path, image).scene.detections
    assert (found.geometry.n_frames, found.geometry.shape) == (3, (40, 50))
    assert found.geometry.unit == "micrometer"
    assert found.position.tolist() == [[5, 15], [5.5, 15]]
    assert found.table["border_distance"].tolist() == [5, 5.5]
    path.write_text("frame,y,x\n0,10,30\n3,11,30\n")
    with pytest.raises(InputError, match=r"in frame 3 .* the movie has frames 0 to 2"):
        bt.track(path, image)


def test_a_session_opens_masks_as_everything_does(movie):
    image = bt.open_movie(movie.image, **HOW)
    geometry = bt.Session(movie.labels, image).movie.geometry
    assert geometry == bt.track(movie.labels, image).tracks.geometry
    assert geometry.scale == HOW["scale"]


def test_graph_and_tables_and_files(movie, tmp_path):
    seen: list[str] = []
    result = bt.track(movie.labels, movie.image, progress=lambda step: seen.append(str(step)))
    assert "Choosing events: 0%" in seen
    graph, tables = result.graph, result.tables
    assert sorted(graph) == sorted(tables.nodes["id"])
    assert sorted(graph.edges) == sorted(
        zip(tables.edges["source"], tables.edges["target"], strict=True)
    )
    for source, target, link in graph.edges(data=True):
        assert graph.nodes[source]["frame"] < graph.nodes[target]["frame"]
        assert {"event", "score", "margin_at_least"} <= set(link)
    divisions = [n for n in graph if graph.out_degree(n) == 2]
    assert len(divisions) == (tables.events["event"] == "divide").sum() > 0
    words = f"Tracking({len(graph)} cells in {len(movie.labels)} frames: "
    assert repr(result).startswith(f"{words}{result.tracks.n_tracks} tracks, {len(divisions)} div")
    assert "cells in 1 frame: " in repr(bt.track(movie.labels[:1]))
    assert len(tables.tracks) == result.tracks.n_tracks
    assert result.save(tmp_path / "out", ["csv", "ctc", "geff"]) == ()
    assert result.save(tmp_path / "tables", "csv") == ()
    assert {p.name for p in (tmp_path / "out").iterdir()} >= {"ctc", "tracks.geff", "edges.csv"}
    points = bt.track(tmp_path / "out" / "detections.csv")
    assert points.scene.labels is None
    with pytest.warns(UserWarning, match="not measured"):
        bt.track(tmp_path / "out" / "detections.csv", movie.image)


def test_a_model_comes_with_its_training(tmp_path):
    folder = busy_part(tmp_path)
    masks = folder / "01_GT" / "TRA"
    truth = bt.read_ctc(folder / "01_GT")
    detections = bt.run(measure(truth.labels))
    events = bt.true_events(detections, truth.labels, truth.tracks, truth.labels)
    clicks = bt.draw_annotations(events, detections, count=20, seed=1)
    bt.save_annotations(clicks, tmp_path / "clicks.json")
    seen: list[bt.Progress] = []
    model = bt.train(masks, clicks=tmp_path / "clicks.json", progress=seen.append)
    assert seen and model.training is not None
    assert model.training.n_annotations > 10
    assert model.training.words
    bt.save_model(model, tmp_path / "model.json")
    saved = bt.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(saved.weights, model.weights)
    held = bt.track(masks, model=tmp_path / "model.json", annotations=clicks)
    if can_score():
        assert bt.evaluate(held, truth) == bt.evaluate(held.tracks, truth, labels=truth.labels)
    again = bt.train(held)
    np.testing.assert_allclose(again.weights, model.weights)
    helped = bt.train(masks, clicks=clicks, sources=tmp_path / "model.json")
    assert helped.training is not None
    assert helped.training.origin[0] == "prior"
    tied = bt.train(held, sources=[held])
    assert tied.training is not None
    assert tied.training.origin[0] == "transfer"
    with pytest.raises(bt.BridgetrackError, match="give labels instead"):
        bt.train(held, np.zeros((3, 8, 8)))


def test_one_word_is_taken_for_itself(movie):
    kinds = bt.track(movie.labels, without="merges").scene.kinds
    assert kinds == bt.EventKinds.without(["merges"])
    with pytest.raises(InputError, match="two or more at a time, not 1"):
        bt.track(movie.labels, window=1)


@pytest.mark.parametrize("function", [bt.track, bt.repair, bt.train, bt.find_cells])
def test_an_argument_that_is_not_there_is_named(function):
    name = function.__name__
    with pytest.raises(TypeError, match=rf"{name}\(\) has no argument 'axis'; did you mean 'axes'"):
        function(None, None, axis="TYX")


def test_a_typing_mistake_is_told():
    with pytest.raises(AttributeError, match="tracke"):
        bt.tracke  # noqa: B018
    assert {"track", "train", "SegmentationSettings"} <= set(dir(bt)) & set(bt.__all__)
