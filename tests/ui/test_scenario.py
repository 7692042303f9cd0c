"""From a movie to lineages with mouse and keys, and back again without a window."""

import threading

import numpy as np
import pytest
import tifffile

from bridgetrack.cli.main import main
from bridgetrack.hypotheses.events import Event
from bridgetrack.ui.layers import find_role
from bridgetrack.ui.state import state_of
from bridgetrack.ui.workflow import fill
from session_fixtures import chosen_event
from short_sample import busy_part
from window import plugin, tracked


def central(state, frame, count):
    """Rows of cells in the middle of a frame."""
    detections = state.session.scene.detections
    middle = np.abs(detections.position - 120).max(axis=1) < 90
    return np.flatnonzero((detections.frame == frame) & middle)[:count].tolist()


def tables(folder):
    """What the tables of an export hold."""
    names = ("detections.csv", "edges.csv", "events.csv", "tracks.csv")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture
def sample(tmp_path, monkeypatch):
    """Three small frames, as the sample."""
    folder = busy_part(tmp_path / "sample", frames=3, first=0, corner=(76, 76), side=240)
    for file in folder.rglob("*.tif"):  # without their calibration
        tifffile.imwrite(file, tifffile.imread(file), photometric="minisblack")
    monkeypatch.setattr("bridgetrack.ui.file_menu.sample_folder", lambda: folder)


@pytest.mark.slow
def test_from_the_movie_to_the_same_files_without_a_window(
    sample, pace, viewer, hand, qtbot, tmp_path, another_viewer
):
    state, widget = plugin(viewer)
    session = state.session

    # Open the sample, and find its cells rather than taking the true ones.
    widget.segment.sample.click()
    viewer.layers.remove("Cells")
    qtbot.waitUntil(lambda: widget.segment.source.labels.layer is None)
    widget.segment.find.go.click()
    tracked(session, qtbot)
    assert session.movie.layers[1] is viewer.layers["Cells found"]

    widget.open_step(1)
    for frame, key in ((0, "Return"), (1, "2")):  # some against the model: there is much to learn
        state.canvas.show(frame, None)
        qtbot.wait(50)
        for row in central(state, frame, 6):
            hand.click(session.scene.detections.position[row])
            hand.key(key)
    hand.click(session.scene.detections.position[central(state, 1, 7)[6]])
    hand.key("U")
    given = session.annotations
    assert len(given) >= 8
    assert widget.annotate.given.listed.rowCount() == len(given)
    qtbot.waitUntil(lambda: not session.busy("track", "correct"))

    widget.open_step(2)
    assert "to learn from; 1 answered “cannot tell”." in widget.train.words.text()
    before = session.model
    widget.train.go.click()
    assert session.trainer.training is None, "the click returned before the model was trained"
    qtbot.waitUntil(lambda: session.trainer.training is not None)
    assert widget.train.results.text()
    assert session.model is session.trainer.training.model is not before
    qtbot.waitUntil(lambda: not session.busy("track", "correct"))

    widget.open_step(3)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "tracks") is not None)

    state.canvas.show(0, None)
    qtbot.wait(50)
    others = central(state, 0, 30)[6:]  # nothing was said of these
    row = next(r for r in others if chosen_event(session.tracking, r).event == Event.MOVE)
    wrong = chosen_event(session.tracking, row)
    hand.point(session.scene.detections.position[row])
    hand.key("Backspace")
    qtbot.waitUntil(lambda: chosen_event(session.tracking, row).key != wrong.key)

    box = widget.track.export
    qtbot.waitUntil(box.save.isEnabled)
    box.write(tmp_path / "window")
    qtbot.waitUntil(lambda: "Written" in box.words.text())
    the_window_beat_at_every_step(pace)
    session.save(tmp_path / "movie.bridgetrack")
    given, model = session.annotations, session.model
    viewer.close()

    again = another_viewer()
    panel = fill(again, tmp_path / "movie.bridgetrack", None)
    other = state_of(again).session
    tracked(other, qtbot)
    assert list(other.annotations) == list(given)
    assert other.project.path == tmp_path / "movie.bridgetrack", "nothing is put elsewhere"
    assert np.array_equal(other.model.weights, model.weights)
    panel.open_step(3)
    qtbot.waitUntil(panel.track.export.save.isEnabled)
    panel.track.export.write(tmp_path / "again")
    qtbot.waitUntil(lambda: "Written" in panel.track.export.words.text())

    project = str(tmp_path / "movie.bridgetrack")
    assert main(["run", project, "--out", str(tmp_path / "headless")]) == 0
    expected = tables(tmp_path / "window")
    assert tables(tmp_path / "again") == expected
    assert tables(tmp_path / "headless") == expected


def the_window_beat_at_every_step(pace):
    assert threading.get_ident() not in pace.threads, "no work is done in the window's thread"
    for stage in (
        "Finding candidates",
        "Looking for changes",
        "Measuring cells",
        "Comparing frames",
    ):
        assert pace.steps[stage] > 2, f"{stage} is not cut into frames: {pace.steps}"
    assert pace.steps["Choosing events"] > 2
    assert pace.steps["Writing"] == 1
    assert pace.steps["Learning"] > 5
