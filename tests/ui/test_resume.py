"""Answers that were given before are there when the movie is opened again."""

from __future__ import annotations

import pytest
import tifffile

from bridgetrack.annotations.files import load_annotations

pytestmark = pytest.mark.filterwarnings("ignore")


def test_answers_are_there_again(viewer, qtbot, pixels, tmp_path, another_viewer):
    from bridgetrack.ui.state import state_of
    from bridgetrack.ui.workflow import fill

    files = tmp_path / "movie.tif", tmp_path / "cells.tif"
    for file, frames in zip(files, pixels, strict=True):
        tifffile.imwrite(file, frames[:4], metadata={"axes": "TYX"})
    fill(viewer, *files)
    state = state_of(viewer)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    for row in range(0, 40, 10):
        state.annotator.select(row)
        state.annotator.accept()
    path, given = state.session.answers.path, list(state.session.annotations)
    assert path.parent == tmp_path, "the answers are kept beside the movie"
    assert len(given) == 4 and list(load_annotations(path)) == given
    viewer.close()

    again = another_viewer()
    widget = fill(again, *files)
    session = state_of(again).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert list(session.annotations) == given
    assert "There again, as you left them: 4 answers" in widget.notice.text()
    session.answers.undo()
    assert len(session.annotations) == 3, "undo reaches back, too"
    # All are deleted together, and brought back together.
    widget.open_step(1)
    table = widget.annotate.table
    qtbot.waitUntil(lambda: table.listed.rowCount() == 3, timeout=20_000)
    table.selectAll()
    widget.annotate.remove.click()
    assert len(session.annotations) == len(load_annotations(path)) == 0
    session.undo()
    assert len(session.annotations) == 3
