"""Answers that were given before are there when the movie is opened again."""

from __future__ import annotations

import pytest
import tifffile

from bridgetrack.annotations.store import load_annotations

pytestmark = pytest.mark.filterwarnings("ignore")


def test_answers_are_there_again_or_begun_afresh(
    viewer, qtbot, pixels, tmp_path, make_napari_viewer
):
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

    again = make_napari_viewer(show=True)
    resume = fill(again, *files).segment.resume
    session = state_of(again).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    assert list(session.annotations) == given
    assert resume.isVisible() and "4 answers" in resume.words.text()
    session.answers.undo()
    assert len(session.annotations) == 3, "undo reaches back, too"
    qtbot.waitUntil(lambda: not session.busy("track", "correct"), timeout=20_000)
    resume.afresh.click()
    assert len(session.annotations) == len(load_annotations(path)) == 0
    assert len(load_annotations(path.with_name(path.name + ".old"))) == 3
