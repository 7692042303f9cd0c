"""Layers that other programs and keys change are followed: pixels, extent and scale."""

import threading
from functools import partialmethod

import numpy as np
import pytest
from qtpy.QtCore import Qt

from bridgetrack.movie import Movie
from bridgetrack.session.project import JOB
from bridgetrack.ui.state import state_of
from window import plugin, settled, tracked

ELSEWHERE = ("bridgetrack look", f"bridgetrack {JOB}")
"""Threads that go through all frames now and then, whatever is painted meanwhile."""


def cells_of(labels):
    return sum(len(np.unique(frame)) - 1 for frame in labels)


def test_layers_that_others_change_are_followed(
    open_short, viewer, hand, qtbot, tmp_path, monkeypatch
):
    widget = open_short()
    a_scale_that_is_typed_is_used_and_answers_stay(widget, viewer, qtbot, tmp_path)
    state_of(viewer).session.undo()
    session, image, cells = state_of(viewer).session, viewer.layers["short"], viewer.layers["cells"]
    before = len(session.scene.detections)
    painting_measures_one_frame_again(session, viewer, hand, cells, qtbot)
    # A key of napari outside of its painting tools.
    cells.mode = "pan_zoom"
    viewer.layers.selection.active = cells
    hand.key("Z", control=True)
    qtbot.waitUntil(lambda: len(session.scene.detections) == before)
    settled(session, qtbot)
    # In place, by a script.
    [label, *_] = np.unique(cells.data[1])[1:]
    cells.data[1][cells.data[1] == label] = 0
    cells.refresh()
    qtbot.waitUntil(lambda: len(session.scene.detections) == before - 1)
    # Other pixels.
    half = np.where(cells.data > np.median(cells.data[cells.data > 0]), cells.data, 0)
    cells.data = half
    qtbot.waitUntil(lambda: session.tracking is not None and
                    len(session.scene.detections) == cells_of(half))  # fmt: skip
    # Fewer frames: first of the cells alone, which are then those of another movie.
    cells.data = half[:4]
    words = "they must be the same: choose the cells of this movie"
    qtbot.waitUntil(lambda: words in widget.segment.source.notice.text())
    assert session.movie is None
    image.data = image.data[:4]
    qtbot.waitUntil(lambda: session.tracking is not None)
    assert session.scene.detections.geometry.n_frames == 4
    assert len(session.scene.detections) == cells_of(half[:4])
    assert not widget.segment.source.notice.isVisible()
    # A scale that is set later.
    row = 3
    area = session.scene.detections.table["area"][row]
    before = session.movie.geometry.scale[-1]
    image.scale = cells.scale = (1, 2 * before, 2 * before)
    wanted = pytest.approx(2 * before)
    qtbot.waitUntil(lambda: session.tracking is not None and
                    session.movie.geometry.scale[-1] == wanted)  # fmt: skip
    assert session.scene.detections.table["area"][row] == pytest.approx(area)
    assert session.scene.detections.geometry.scale[-1] == wanted
    # Cells that were deleted, and cells that are none, are told.
    viewer.layers.remove(cells)
    qtbot.waitUntil(lambda: session.movie is None)
    assert "“cells” was deleted" in widget.notice.text()
    assert "answers are saved" in widget.notice.text()
    none = viewer.add_labels(np.zeros(image.data.shape, np.uint8), name="nothing")
    widget.segment.source.labels.choose(none)
    qtbot.waitUntil(lambda: "✕ there is no cell in any" in widget.notice.text())
    assert "cannot be tracked" in widget.next_words.text()
    # What went wrong is over once something works.
    again = viewer.add_labels(cells.data, name="again", scale=cells.scale)
    widget.segment.source.labels.choose(again)
    qtbot.waitUntil(lambda: session.tracking is not None)
    assert not widget.notice.isVisible() and widget.next_words.text().startswith("Ready")


def write(qtbot, field, words):
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, words)
    qtbot.keyClick(field, Qt.Key.Key_Tab)


def a_scale_that_is_typed_is_used_and_answers_stay(widget, viewer, qtbot, tmp_path):
    state, box = state_of(viewer), widget.segment.scale
    widget.segment.more.open()
    assert box.pixel.value() == pytest.approx(0.645)
    assert box.minutes.text() == "not known" and not box.plane.isVisible()
    assert box.words.text() == "Tables and speeds are in micrometres and frames."
    state.annotator.select(3)
    state.annotator.accept()
    settled(state.session, qtbot)
    answers = list(state.session.annotations)
    before = state.session.tracking.tracks.nodes
    where = {"scale": (1, 0.645, 0.645), "metadata": {}}
    channel = viewer.add_image(viewer.layers["short"].data, name="other channel", **where)
    apart = viewer.add_image(np.zeros((3, 8, 8)), name="another", scale=(1, 3, 3))
    write(qtbot, box.pixel, "0.5")
    write(qtbot, box.minutes, "10")
    qtbot.waitUntil(lambda: state.session.movie.geometry.frame_interval == 10)
    assert channel.scale.tolist() == [1, 0.5, 0.5], "channels stay on each other"
    assert apart.scale.tolist() == [1, 3, 3]
    viewer.layers.remove(apart)
    settled(state.session, qtbot)
    geometry = state.session.movie.geometry
    assert geometry.scale == (0.5, 0.5) and geometry.unit == "micrometer"
    assert geometry.frame_interval == 10
    assert list(state.session.annotations) == answers
    assert {layer.name: layer.scale.tolist() for layer in viewer.layers}["short"] == [1, 0.5, 0.5]
    assert len(before) == len(state.session.tracking.tracks.nodes)
    viewer.layers.remove(channel)
    widget.open_step(0)


def painting_measures_one_frame_again(session, viewer, hand, cells, qtbot):
    before, read = len(session.scene.detections), []

    def measured(n):
        qtbot.waitUntil(lambda: session.scene and len(session.scene.detections) == n)
        settled(session, qtbot)
        assert viewer.layers.selection.active is cells, "the tool stays in the hand"

    viewer.layers.selection.active = cells
    cells.mode = "fill"
    at = tuple(np.argwhere(cells.data[2] == np.unique(cells.data[2])[1])[0])

    def watch(movie, t, *channel, plain):
        if threading.current_thread().name not in ELSEWHERE:
            read.append(t)
        return plain(movie, t, *channel)

    with pytest.MonkeyPatch.context() as watched:
        for name in ("frame", "channel_frame"):
            watched.setattr(Movie, name, partialmethod(watch, plain=getattr(Movie, name)))
        cells.fill((2, *at), 0)
        measured(before - 1)
        assert set(read) == {1, 2, 3}, "the frame that was painted and those it is compared with"
    cells.undo()
    measured(before)
    cells.redo()
    measured(before - 1)


def test_a_movie_whose_last_axis_is_time_is_asked_about(viewer, qtbot, pixels, monkeypatch):
    part = [frames[:5, :200, :200] for frames in pixels]
    image, labels = (np.moveaxis(each, 0, -1) for each in part)
    asked = []
    monkeypatch.setattr(
        "bridgetrack.ui.source_panel.confirmed", lambda *said: bool(asked.append(said[-1])) or True
    )
    viewer.add_image(image, name="short")
    viewer.add_labels(labels.copy(), name="cells")
    session = plugin(viewer)[0].session
    tracked(session, qtbot)
    geometry = session.scene.detections.geometry
    assert (geometry.n_frames, *geometry.shape) == part[0].shape
    assert len(asked) == 1 and "Is time the last axis (5 frames of" in asked[0]
    np.testing.assert_array_equal(viewer.layers["cells"].data, part[1])
