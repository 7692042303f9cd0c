"""What people do by mistake loses nothing, and each is answered with a sentence."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt

from bridgetrack.annotations.annotation import Kind
from bridgetrack.session.cells import proposals
from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")
LEFT = Qt.MouseButton.LeftButton


def test_what_is_done_by_mistake_is_told_and_loses_nothing(
    open_short, viewer, qtbot, pace, tmp_path
):
    widget = open_short()
    state = state_of(viewer)
    an_image_of_another_size_is_told_and_nothing_is_called_ready(widget, state, viewer, qtbot)
    deleting_the_cells_during_training_ends_it(widget, state, viewer, qtbot, pace)
    results_are_written_where_the_movie_is_left_meanwhile(widget, state, qtbot, pace, tmp_path)


def an_image_of_another_size_is_told_and_nothing_is_called_ready(widget, state, viewer, qtbot):
    assert widget.next_words.text().startswith("Ready")
    assert "see the tracks in step 4" in widget.next_words.text(), "answers are not needed for that"
    viewer.add_image(np.zeros((8, 20, 20)), name="other")
    source = widget.segment.source
    source.image.setFocus()
    qtbot.keyClick(source.image, Qt.Key.Key_Down)
    assert source.image.layer.name == "other"
    qtbot.waitUntil(lambda: state.session.movie is None, timeout=20_000)
    assert source.labels.layer is None
    assert "“cells” are those of “short”" in widget.segment.summary.text()
    qtbot.keyClick(source.labels, Qt.Key.Key_Down)
    words = "“other”: 8 frames of 20 × 20 pixels; “cells”: "
    qtbot.waitUntil(lambda: words in source.notice.text(), timeout=20_000)
    assert "Ready" not in widget.next_words.text()
    assert state.session.movie is None, "what was open before is not what is chosen"
    qtbot.keyClick(source.image, Qt.Key.Key_Up)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    assert widget.next_words.text().startswith("Ready") and not source.notice.isVisible()


def deleting_the_cells_during_training_ends_it(widget, state, viewer, qtbot, pace):
    session = state.session
    rows = [r for r in range(40) if proposals(session.tracking, r)][:10]
    for row in rows:
        session.edits.note(Kind.CONFIRM, proposals(session.tracking, row)[0].event, "click")
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=20_000)
    given, path = len(session.annotations), session.answers.path
    assert given > 5
    widget.open_step(2)
    widget.train.go.click()
    qtbot.waitUntil(lambda: session.trainer.busy, timeout=20_000)
    pace.held = True
    layer = viewer.layers["cells"]
    viewer.layers.remove(layer)
    qtbot.waitUntil(lambda: session.movie is None, timeout=20_000)
    assert "Training ended before it was done" in widget.notice.text()
    pace.held = False
    qtbot.waitUntil(lambda: not session.trainer.busy, timeout=20_000)
    assert session.trainer.training is None
    assert "step 1" in widget.next_words.text()
    viewer.add_layer(layer)
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert session.answers.path == path and len(session.annotations) == given


def results_are_written_where_the_movie_is_left_meanwhile(widget, state, qtbot, pace, tmp_path):
    session = state.session
    widget.open_step(3)
    export = widget.track.export
    qtbot.waitUntil(export.save.isEnabled, timeout=20_000)
    export.write(tmp_path / "out")
    pace.held = True
    widget.segment.source.labels.choose(None)
    qtbot.waitUntil(lambda: session.movie is None, timeout=20_000)
    assert export.words.text() == "Writing…"
    export.write(tmp_path / "other")
    pace.held = False
    told = f"The results of “short” are written to {tmp_path / 'out'}."
    qtbot.waitUntil(lambda: told in widget.notice.text(), timeout=60_000)
    assert "Written" in export.words.text() and (tmp_path / "out" / "tracks.csv").exists()
    assert not (tmp_path / "other").exists()
