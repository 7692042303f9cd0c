"""Cells that are known by their centroids alone: a CSV table or a Points layer."""

import numpy as np
import pandas as pd
import pytest
from napari.layers import Points

from bridgetrack.cli.main import main
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.io.csv import read_tracks_csv
from bridgetrack.pipeline.project import load_project
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.session import Session
from bridgetrack.ui.layers import detections_of, find_role
from session_fixtures import FRAMES
from window import plugin, tracked


@pytest.fixture
def centroids(session):
    """The short movie's cells as a table without sizes: frame, y, x, label."""
    table = session.scene.detections.table[["frame", "label", "y", "x"]]
    return table.copy()


@pytest.fixture
def csv(centroids, tmp_path):
    """Centroids as other programs write them."""
    path = tmp_path / "spots.csv"
    centroids.rename(columns={"frame": "t"}).drop(columns="label").to_csv(path, index=False)
    return path


@pytest.fixture
def table_session(centroids, source, tmp_path):
    """A session on the table."""
    table = centroids.assign(area=1.0).reset_index(drop=True)
    detections = Detections(table, source.labels.geometry, has_masks=False)
    made = Session()
    assert made.open(MovieAndCells(None, None, "spots", table=detections), tmp_path / "spots.json")
    yield made
    made.close()


def test_a_project_of_a_table_repeats_without_a_window(table_session, tmp_path):
    session = table_session
    session.save(tmp_path / "p.bridgetrack")
    assert isinstance(load_project(tmp_path / "p.bridgetrack").open()[0], Detections)
    assert main(["run", str(tmp_path / "p.bridgetrack"), "--out", str(tmp_path / "out")]) == 0
    edges = pd.read_csv(tmp_path / "out" / "edges.csv")
    ours = session.tracking.tracks.edges
    assert len(edges) == len(ours)
    pairs = set(zip(edges["source"], edges["target"], strict=True))
    assert pairs == set(zip(ours["source"], ours["target"], strict=True))


def test_points_of_others_are_refused():
    with pytest.raises(InputError, match="time, y, x"):
        detections_of(Points(np.zeros((3, 2)), name="flat"))
    with pytest.raises(InputError, match="no points"):
        detections_of(Points(np.zeros((0, 3)), name="none"))
    with pytest.raises(InputError, match="frames -2 to 0"):
        detections_of(Points(np.array([[-2.0, 1, 1], [0, 1, 1]]), name="early"))


def test_points_are_tracked_in_the_window(viewer, hand, qtbot, csv, centroids, tmp_path):
    state, widget = plugin(viewer)
    session = state.session
    viewer.open(str(csv), plugin="bridgetrack")
    tracked(session, qtbot)
    layer = find_role(viewer.layers, "detections")
    assert session.movie.layers[1] is layer
    found = session.scene.detections
    assert len(found) == len(centroids) and found.geometry.n_frames == FRAMES
    assert np.allclose(found.table[["y", "x"]].sum(), centroids[["y", "x"]].sum())
    widget.open_step(1)
    qtbot.wait(200)
    row = int(np.flatnonzero(session.scene.detections.frame == state.canvas.frame)[3])
    hand.click(session.scene.detections.position[row])
    hand.key("Return")
    assert [a.cells[0].cell for a in session.annotations] == [
        (state.canvas.frame, int(session.scene.detections.label[row]))
    ]
    before = len(session.scene.detections)
    layer.selected_data = {0}
    layer.remove_selected()
    qtbot.waitUntil(
        lambda: session.scene is not None and len(session.scene.detections) == before - 1
    )
    widget.open_step(3)
    qtbot.waitUntil(widget.track.export.save.isEnabled)
    box = widget.track.export
    box.formats.tick(["csv", "ctc"])
    box.write(tmp_path / "out")
    qtbot.waitUntil(lambda: "Written" in box.words.text())
    assert "there are no masks" in box.words.text()
    cells, tracks = (pd.read_csv(next((tmp_path / "out").rglob(f"{n}.csv"))) for n in
                     ("detections", "tracks"))  # fmt: skip
    assert cells["area"].isna().all() and tracks.filter(like="mean_area").isna().all(axis=None)
    again = read_tracks_csv(next((tmp_path / "out").rglob("detections.csv")))
    assert (again.nodes["area"] == 1).all() and len(again.nodes) == len(cells)
