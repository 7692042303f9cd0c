"""Pixel size, distance of planes and minutes per frame: shown, set, and used in every number."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from napari.utils.notifications import notification_manager
from qtpy.QtCore import Qt
from superqt import QCollapsible

from bridgetrack.ui.layers import IMPORTED, scale_of, tag
from bridgetrack.ui.panel import state_of

pytestmark = pytest.mark.filterwarnings("ignore")


def unfolded(widget):
    box = widget.segment.scale
    section = next(s for s in widget.segment.findChildren(QCollapsible) if s.isAncestorOf(box))
    section.expand(animate=False)
    return box


def write(qtbot, field, words: str) -> None:
    field.setFocus()
    field.selectAll()
    qtbot.keyClicks(field, words)
    qtbot.keyClick(field, Qt.Key.Key_Tab)


def settled(state, qtbot) -> None:
    qtbot.waitUntil(
        lambda: state.session.tracking is not None
        and not state.session.busy("measure", "track", "correct"),
        timeout=60_000,
    )  # fmt: skip


def test_what_is_typed_is_used_and_answers_stay(open_short, viewer, hand, qtbot, tmp_path):
    widget = open_short()
    state, box = state_of(viewer), unfolded(widget)
    assert box.pixel.value() == pytest.approx(0.645)
    assert box.minutes.text() == "not known" and not box.plane.isVisible()
    assert not box.set.isEnabled()
    assert box.words.text() == "Tables and speeds are in micrometres and frames."
    state.annotator.select(3)
    state.annotator.accept()
    settled(state, qtbot)
    answers = list(state.session.annotations)
    before = state.session.tracking.tracks.nodes
    where = {"scale": (1, 0.645, 0.645), "metadata": {}}
    channel = viewer.add_image(viewer.layers["short"].data, name="other channel", **where)
    apart = viewer.add_image(np.zeros((3, 8, 8)), name="another", scale=(1, 3, 3))
    write(qtbot, box.pixel, "0.5")
    write(qtbot, box.minutes, "10")
    qtbot.mouseClick(box.set, Qt.MouseButton.LeftButton)
    assert channel.scale.tolist() == [1, 0.5, 0.5], "channels stay on each other"
    assert apart.scale.tolist() == [1, 3, 3]
    # napari warns where units differ, once it draws; this one has none.
    assert viewer.layers.extent.units is not None
    viewer.layers.remove(apart)
    settled(state, qtbot)
    geometry = state.session.movie.geometry
    assert geometry.scale == (0.5, 0.5) and geometry.unit == "micrometer"
    assert geometry.frame_interval == 10
    assert list(state.session.annotations) == answers
    assert {layer.name: layer.scale.tolist() for layer in viewer.layers}["short"] == [1, 0.5, 0.5]
    widget.open_step(3)
    widget.track.go.click()
    export = widget.track.export
    qtbot.waitUntil(export.save.isEnabled, timeout=20_000)
    export.write(tmp_path / "out")
    qtbot.waitUntil(lambda: "Written" in export.words.text(), timeout=60_000)
    tracks = pd.read_csv(tmp_path / "out" / "tracks.csv")
    units = json.loads((tmp_path / "out" / "units.json").read_text())
    assert "min" in json.dumps(units) and "micrometer" in json.dumps(units)
    assert len(tracks) and len(before) == len(state.session.tracking.tracks.nodes)
    # Links that another program scored are given in step 1, too.
    widget.open_step(0)
    scores = widget.segment.scores
    section = next(s for s in widget.segment.findChildren(QCollapsible) if s.isAncestorOf(scores))
    section.expand(animate=False)
    assert not scores.drop.isEnabled()

    def asks_for_a_file() -> None:  # once the section is laid out
        qtbot.mouseClick(scores.use, Qt.MouseButton.LeftButton)
        assert "Choose a file first" in scores.words.text()

    qtbot.waitUntil(asks_for_a_file, timeout=20_000)
    path = tmp_path / "scores.csv"
    path.write_text("frame,source,target,score\n0,1,1,0.9\n0,2,77777,0.5\n")
    scores.file.value = path
    qtbot.mouseClick(scores.use, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: scores.words.text().startswith("1 of 2 scored links"), timeout=20_000)
    settled(state, qtbot)
    assert "move.link_score" in state.session.scene.matrix.features.keys
    assert list(state.session.annotations) == answers
    qtbot.mouseClick(scores.drop, Qt.MouseButton.LeftButton)
    settled(state, qtbot)
    assert "move.link_score" not in state.session.scene.matrix.features.keys
    # What cannot be used is told there and changes nothing.
    for words, told in (("a,b\n1,2\n", "frame"), ("frame,source,target,score\n0,1,1,?\n", "score")):
        path.write_text(words)
        scores.file.value = path
        qtbot.mouseClick(scores.use, Qt.MouseButton.LeftButton)
        qtbot.waitUntil(lambda: scores.words.text().startswith("✕"), timeout=20_000)
        assert path.name in scores.words.text() and told in scores.words.text()
    assert "move.link_score" not in state.session.scene.matrix.features.keys


@pytest.mark.thorough  # planes have it as pixels do
def test_stacks_have_a_distance_of_planes(stack, viewer, qtbot):
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    settled(state, qtbot)
    box = unfolded(widget)
    assert box.plane.isVisible()
    assert (box.pixel.value(), box.plane.value()) == (0.5, 2.0)
    write(qtbot, box.plane, "3")
    qtbot.keyClick(box.set, Qt.Key.Key_Space)
    settled(state, qtbot)
    assert state.session.movie.geometry.scale == (3.0, 0.5, 0.5)
    assert stack.scale.tolist() == [1, 3, 0.5, 0.5]
    # What comes without a scale is drawn where the other is, and measured alike.
    image = viewer.add_image(np.zeros(stack.data.shape), name="unscaled")
    qtbot.waitUntil(lambda: state.session.movie.layers == (image, stack), timeout=20_000)
    assert image.scale.tolist() == [1, 3, 0.5, 0.5] and image.units == stack.units
    assert viewer.layers.extent.units is not None, "napari warns where they differ"
    masks = viewer.add_labels(stack.data.copy(), name="masks")
    widget.segment.source.labels.choose(masks)
    qtbot.waitUntil(lambda: state.session.movie.layers == (image, masks), timeout=20_000)
    settled(state, qtbot)
    assert masks.scale.tolist() == [1, 3, 0.5, 0.5]
    assert state.session.scene.detections.geometry.scale == (3.0, 0.5, 0.5)
    assert state.session.scene.detections.geometry.unit == "micrometer"
    # What is opened here is so before it is drawn: napari warns where units differ.
    warned = len(notification_manager.records)
    brought = {"name": "brought", "metadata": tag("labels")}
    widget.segment.bring("brought", lambda: [(stack.data.copy(), brought, "labels")])
    qtbot.waitUntil(lambda: state.session.movie.layers[1].name == "brought", timeout=20_000)
    qtbot.wait(100)
    assert viewer.layers["brought"].scale.tolist() == [1, 3, 0.5, 0.5]
    # So is what is dropped on a movie and not chosen.
    tracks = np.array([[1, t, 2.0, 15.0, 15.0 + t] for t in range(4)])
    dropped = [
        (stack.data.copy(), {"name": "dropped", "metadata": tag("labels")}, "labels"),
        (tracks, {"name": "theirs", "metadata": tag(IMPORTED)}, "tracks"),
    ]
    for layer in state.add_layers(dropped):
        assert layer.scale.tolist() == [1, 3, 0.5, 0.5], layer.name
    qtbot.wait(50)
    assert not [r.message for r in list(notification_manager.records)[warned:]]
    # Beside another movie without units, which somebody added, all are drawn in pixels; the masks
    # of a movie in its own units.
    viewer.add_image(np.zeros((2, 4, 9, 9), np.uint16), name="another movie")
    qtbot.wait(50)
    warned = len(notification_manager.records)
    known = {"name": "with units", "metadata": tag("labels"), "scale": (1, 3, 0.5, 0.5)}
    known["units"] = ("pixel", *["micrometer"] * 3)
    [made] = state.add_layers([(stack.data.copy(), known, "labels")])
    qtbot.wait(50)
    assert {str(unit) for layer in viewer.layers for unit in layer.units} == {"pixel"}
    assert scale_of(made) == scale_of(image) == ((3.0, 0.5, 0.5), "micrometer")
    assert not [r.message for r in list(notification_manager.records)[warned:]]
    # What is typed for a movie whose masks alone have a scale is there again with both.
    source, units = widget.segment.source, ("pixel", *["micrometer"] * 3)
    for typed in (True, False):
        bare = viewer.add_image(np.zeros(stack.data.shape), name="bare")
        masks = viewer.add_labels(
            stack.data.copy(), name="scaled", scale=(1, 3, 0.5, 0.5), units=units
        )
        source.image.choose(bare)
        source.labels.choose(masks)
        qtbot.waitUntil(lambda: state.session.movie.layers == (bare, masks), timeout=20_000)  # noqa: B023
        settled(state, qtbot)
        if typed:
            assert (box.pixel.value(), box.plane.value()) == (0.5, 3.0)
            write(qtbot, box.plane, "4")
            qtbot.keyClick(box.set, Qt.Key.Key_Space)
            settled(state, qtbot)
        assert box.plane.value() == 4
        assert bare.scale.tolist() == masks.scale.tolist() == [1, 4, 0.5, 0.5]
        for layer in (bare, masks):
            viewer.layers.remove(layer)
