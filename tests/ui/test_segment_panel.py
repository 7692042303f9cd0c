"""Step 1: the scale of a movie."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from qtpy.QtCore import Qt

from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")


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
    state, box = state_of(viewer), widget.segment.scale
    widget.segment.more.open()
    assert box.pixel.value() == pytest.approx(0.645)
    assert box.minutes.text() == "not known" and not box.plane.isVisible()
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
    qtbot.waitUntil(lambda: state.session.movie.geometry.frame_interval == 10, timeout=20_000)
    assert channel.scale.tolist() == [1, 0.5, 0.5], "channels stay on each other"
    assert apart.scale.tolist() == [1, 3, 3]
    viewer.layers.remove(apart)
    settled(state, qtbot)
    geometry = state.session.movie.geometry
    assert geometry.scale == (0.5, 0.5) and geometry.unit == "micrometer"
    assert geometry.frame_interval == 10
    assert list(state.session.annotations) == answers
    assert {layer.name: layer.scale.tolist() for layer in viewer.layers}["short"] == [1, 0.5, 0.5]
    widget.open_step(3)
    export = widget.track.export
    qtbot.waitUntil(export.save.isEnabled, timeout=20_000)
    export.write(tmp_path / "out")
    qtbot.waitUntil(lambda: "Written" in export.words.text(), timeout=60_000)
    tracks = pd.read_csv(tmp_path / "out" / "tracks.csv")
    units = json.loads((tmp_path / "out" / "units.json").read_text())
    assert "min" in json.dumps(units) and "micrometer" in json.dumps(units)
    assert len(tracks) and len(before) == len(state.session.tracking.tracks.nodes)
