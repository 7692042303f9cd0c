"""From a movie to lineages with mouse and keys, and back again without a window."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from bridgetrack.cli.main import main
from bridgetrack.hypotheses.events import Event
from bridgetrack.movie import Movie
from bridgetrack.ui.layers import find_role
from bridgetrack.ui.state import state_of
from bridgetrack.ui.workflow import fill
from session_fixtures import chosen_event
from short_sample import short_sample

pytestmark = pytest.mark.filterwarnings("ignore")


def central(state, frame, count):
    """Rows of cells in the middle of a frame."""
    detections = state.session.scene.detections
    middle = np.abs(detections.position - 126).max(axis=1) < 95
    return np.flatnonzero((detections.frame == frame) & middle)[:count].tolist()


TABLES = ("detections.csv", "edges.csv", "events.csv", "tracks.csv")


def tables(folder):
    """What the tables of an export hold."""
    return {name: (folder / name).read_bytes() for name in TABLES}


@pytest.mark.slow
def test_from_the_movie_to_the_same_files_without_a_window(
    viewer, hand, qtbot, tmp_path, another_viewer, monkeypatch
):
    sample = short_sample(tmp_path / "sample", 4)
    monkeypatch.setattr("bridgetrack.ui.file_menu.sample_folder", lambda: sample)

    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    session = state.session

    # Open the sample, and find its cells rather than taking the true ones.
    widget.segment.sample.click()
    viewer.layers.remove("Cells")
    qtbot.waitUntil(lambda: widget.segment.source.labels.layer is None, timeout=20_000)
    widget.segment.find.method.value = "plain"  # the fastest for a whole movie
    widget.segment.find.go.click()
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=180_000)
    assert session.movie.layers[1] is viewer.layers["Cells found"]

    widget.open_step(1)
    for frame in (0, 2):
        state.canvas.show(frame, None)
        qtbot.wait(50)
        for row in central(state, frame, 6):
            hand.click(session.scene.detections.position[row])
            hand.key("Return")
    given = session.annotations
    assert len(given) >= 10
    assert widget.annotate.given.listed.rowCount() == len(given)

    widget.open_step(2)
    before = session.model
    widget.train.go.click()
    qtbot.waitUntil(lambda: state.session.trainer.training is not None, timeout=180_000)
    assert widget.train.results.text()
    assert session.model is state.session.trainer.training.model
    # The clicks confirm what the model chose, and the regulariser is strong.
    np.testing.assert_allclose(session.model.weights, before.weights, atol=0.1)
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=60_000)

    widget.open_step(3)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "tracks") is not None, timeout=20_000)

    state.canvas.show(1, None)
    row = next(
        r for r in central(state, 1, 30) if chosen_event(session.tracking, r).event == Event.MOVE
    )
    wrong = chosen_event(session.tracking, row)
    hand.point(session.scene.detections.position[row])
    hand.key("Backspace")
    qtbot.waitUntil(lambda: chosen_event(session.tracking, row).key != wrong.key, timeout=20_000)

    box = widget.track.export
    qtbot.waitUntil(box.save.isEnabled, timeout=20_000)
    box.write(tmp_path / "window")
    qtbot.waitUntil(lambda: "Written" in box.words.text(), timeout=60_000)
    widget.save_project(tmp_path / "movie.bridgetrack")
    qtbot.waitUntil(lambda: "Saved" in widget.notice.text(), timeout=60_000)
    given, model = session.annotations, session.model
    viewer.close()

    again = another_viewer()
    panel = fill(again, tmp_path / "movie.bridgetrack", None)
    other = state_of(again).session
    qtbot.waitUntil(lambda: other.tracking is not None, timeout=60_000)
    assert list(other.annotations) == list(given)
    assert other.project.path == tmp_path / "movie.bridgetrack", "nothing is put elsewhere"
    assert np.array_equal(other.model.weights, model.weights)
    panel.open_step(3)
    qtbot.waitUntil(panel.track.export.save.isEnabled, timeout=60_000)
    panel.track.export.write(tmp_path / "again")
    qtbot.waitUntil(lambda: "Written" in panel.track.export.words.text(), timeout=60_000)

    project = str(tmp_path / "movie.bridgetrack")
    assert main(["run", project, "--out", str(tmp_path / "headless")]) == 0
    expected = tables(tmp_path / "window")
    assert tables(tmp_path / "again") == expected
    assert tables(tmp_path / "headless") == expected


def test_cells_are_found_with_a_preview(viewer, qtbot, pixels):
    image, truth = (frames[:2, :200, 40:240] for frames in pixels)
    viewer.add_image(image, name="short", scale=(1, 0.645, 0.645))
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    panel = widget.segment
    assert panel.source.labels.layer is None
    panel.find.live.setChecked(True)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "preview") is not None, timeout=20_000)
    many = int(find_role(viewer.layers, "preview").data.max())
    n_true = len(np.unique(truth[0])) - 1
    assert 0.6 * n_true < many < 1.4 * n_true
    panel.find.faint.value = 0
    qtbot.waitUntil(
        lambda: int(find_role(viewer.layers, "preview").data.max()) != many, timeout=20_000
    )
    panel.find.faint.value = 0.5
    panel.find.go.click()
    session = state_of(viewer).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert find_role(viewer.layers, "preview") is None
    assert session.scene.detections.geometry.n_frames == 2


def test_painting_measures_again(open_short, viewer, qtbot, monkeypatch):
    open_short()
    session = state_of(viewer).session
    before = len(session.scene.detections)
    layer = viewer.layers["cells"]
    label = int(layer.data[0].max())
    where = np.argwhere(layer.data[0] == label)[0]
    read = []
    for name in ("frame", "channel_frame"):
        plain = getattr(Movie, name)
        monkeypatch.setattr(Movie, name, lambda *a, plain=plain: read.append(a[1]) or plain(*a))
    layer.fill((0, *where), 0)
    qtbot.waitUntil(
        lambda: session.scene is not None and len(session.scene.detections) == before - 1,
        timeout=20_000,
    )
    qtbot.waitUntil(lambda: not session.busy("measure", "track"), timeout=20_000)
    assert set(read) == {0, 1}, "the frame that was painted and the one it is compared with"
    viewer.layers.selection.active = layer
    layer.mode = "fill"
    layer.undo()
    qtbot.waitUntil(lambda: len(session.scene.detections) == before, timeout=20_000)
    qtbot.waitUntil(lambda: not session.busy("measure", "track"), timeout=20_000)
    assert viewer.layers.selection.active is layer, "the tool stays in the hand"
    layer.mode = "pan_zoom"


def test_the_window_beats_at_every_step_of_long_work(pace, viewer, qtbot, pixels, tmp_path):
    image = pixels[0][:3, 80:240, 80:240]
    viewer.add_image(image, name="short", scale=(1, 0.645, 0.645))
    widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")[1]
    state = state_of(viewer)
    session = state.session
    widget.segment.find.run()
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=120_000)
    for k, row in enumerate(range(12)):
        state.annotator.select(row)
        state.annotator.choose(1 + k % 3)  # some against the model, so that there is much to learn
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=60_000)
    widget.open_step(2)
    widget.train.go.click()
    assert state.session.trainer.training is None, "the click returned before the model was trained"
    qtbot.waitUntil(lambda: state.session.trainer.training is not None, timeout=120_000)
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=60_000)
    widget.open_step(3)
    qtbot.waitUntil(widget.track.export.save.isEnabled, timeout=20_000)
    widget.track.export.write(tmp_path / "out")
    qtbot.waitUntil(lambda: "Written" in widget.track.export.words.text(), timeout=60_000)

    assert threading.get_ident() not in pace.threads, "no work is done in the window's thread"
    frames = len(image)
    for stage in (
        "Finding candidates",
        "Looking for changes",
        "Measuring cells",
        "Comparing frames",
    ):
        assert pace.steps[stage] >= frames, f"{stage} is not cut into frames: {pace.steps}"
    assert pace.steps["Choosing events"] > 2
    assert pace.steps["Writing"] == 1
    assert pace.steps["Learning"] > 5
