"""What was found, painted and answered is there again; closing asks about what is not kept."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from qtpy.QtCore import QPoint, QTimer
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox

from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.models.model import shipped_model
from bridgetrack.ui.layers import camera_of, find_role, tags_of
from bridgetrack.ui.state import may_close, state_of
from bridgetrack.ui.workflow import fill
from window import press, settled


@pytest.fixture
def file(pixels, tmp_path):
    """Two frames of a part of the sample, in a folder of their own."""
    folder = tmp_path / "movies"
    folder.mkdir()
    tifffile.imwrite(folder / "part.tif", pixels[0][:2, 100:200, 100:200], photometric="minisblack")
    return folder / "part.tif"


def test_what_was_found_mended_and_set_is_there_again(
    viewer, hand, qtbot, file, tmp_path, monkeypatch, another_viewer
):
    widget = fill(viewer, file, None)
    state = state_of(viewer)
    qtbot.waitUntil(widget.segment.find.go.isEnabled)
    widget.segment.find.method.value = "plain"
    widget.segment.find.size.value = 17
    widget.segment.find.go.click()
    settled(state.session, qtbot)
    assert (file.with_name("part.bridgetrack") / "cells.zarr").is_dir()
    layer = find_role(viewer.layers, "labels")
    cells, how = layer.data.copy(), tags_of(layer)["found"]
    save_a_copy_at_the_head(widget, qtbot, monkeypatch, file, tmp_path)
    mend_and_set(state, widget, hand, qtbot, cells)
    mended, scale = layer.data.copy(), layer.scale.tolist()
    assert not state.guard.losses
    viewer.close()

    again = another_viewer()
    panel, other = fill(again, file, None), state_of(again)
    settled(other.session, qtbot)
    told = "✓ Restored from part.bridgetrack: 1 answer, the cells that you found or painted."
    assert panel.notice.text() == told
    back = find_role(again.layers, "labels")
    assert back.scale.tolist() == scale and tags_of(back)["found"] == how
    assert "Found here by the plain segmentation" in panel.segment.summary.text()
    geometry = other.session.movie.geometry
    assert (geometry.scale, geometry.unit) == ((0.5, 0.5), "micrometer")
    assert geometry.frame_interval == 10 and panel.segment.scale.minutes.value() == 10
    assert again.layers["part"].scale.tolist() == [1, 0.5, 0.5]
    assert np.allclose(camera_of(again).center[-2:], 0.5 * 99 / 2, atol=0.5), "it is in view"
    assert other.session.model.name == "taught" and other.session.kinds.words == ("merges",)
    assert (other.session.settings.start.weights == shipped_model().weights).all()
    assert panel.track.export.formats.ticked == ("csv", "geff")
    assert panel.segment.find.size.value == 17
    assert [a.kind.value for a in other.session.masks.answers] == ["remove"]
    for _ in range(3):  # the model, what can happen, and the cell
        np.testing.assert_array_equal(back.data, mended)
        other.session.undo()
        settled(other.session, qtbot)
    np.testing.assert_array_equal(back.data, cells)
    assert not other.session.kinds.words and not other.session.can_undo

    open_the_copy_at_the_head(again, panel, qtbot, monkeypatch, tmp_path)
    np.testing.assert_array_equal(other.session.movie.layers[1].data, cells)
    assert other.session.movie.found == how
    cells_are_those_that_the_movie_had_last(again, panel, qtbot, file, tmp_path)


def save_a_copy_at_the_head(widget, qtbot, monkeypatch, file, tmp_path):
    asked, begun = str(tmp_path / "kept"), []
    save = lambda *given: begun.append(given[2]) or (asked, "")  # noqa: E731
    monkeypatch.setattr(QFileDialog, "getSaveFileName", save)
    assert widget.step == 0 and widget.save.isVisible()
    press(qtbot, widget.save)
    qtbot.waitUntil(lambda: "Saved" in widget.notice.text())
    assert Path(begun[0]).parent == file.parent, "the dialog begins where the movie is"
    assert (tmp_path / "kept.bridgetrack").is_dir() and not Path(asked).exists()


def mend_and_set(state, widget, hand, qtbot, cells):
    [label, *_] = np.unique(cells[1])[1:]
    state.canvas.show(1, None)
    place = np.argwhere(cells[1] == label)
    middle = place[np.abs(place - place.mean(axis=0)).sum(axis=1).argmin()]
    qtbot.wait(50)
    hand.key("E")
    hand.click(middle)
    settled(state.session, qtbot)
    formats = widget.track.export.formats
    widget.open_step(3)
    row = formats.visualItemRect(formats.item(2))
    for right, ticked in ((8, ("csv", "geff")), (80, ("csv",)), (80, ("csv", "geff"))):
        place = row.topLeft() + QPoint(right, row.height() // 2)
        press(qtbot, formats.viewport(), place)
        assert formats.ticked == ticked
    state.session.settings.set_kinds(EventKinds.without(["merges"]))
    shipped = shipped_model()
    taught = replace(shipped, weights=1.01 * shipped.weights, name="taught")
    state.session.settings.set_model(taught, shipped)
    box = widget.segment.scale
    box.pixel.setValue(0.5)
    box.minutes.setValue(10)
    box.apply()
    settled(state.session, qtbot)
    assert state.session.kinds.words == ("merges",), "another scale allows nothing else"
    mended = find_role(state.viewer.layers, "labels").data
    assert (mended != cells).any() and not (mended[1] == label).any()


def open_the_copy_at_the_head(viewer, panel, qtbot, monkeypatch, tmp_path):
    state, before = state_of(viewer), viewer.layers["part"]
    chosen = tmp_path / "kept.bridgetrack" / "project.json"
    monkeypatch.setattr("bridgetrack.ui.segment_panel.ask_open", lambda *_: chosen)
    panel.open_step(0)
    press(qtbot, panel.segment.open)
    qtbot.waitUntil(lambda: state.session.project.path == chosen.parent)
    settled(state.session, qtbot)
    assert state.session.movie.layers[0] is not before and not before.visible
    assert "Found here by the plain segmentation" in panel.segment.summary.text()


def cells_are_those_that_the_movie_had_last(viewer, panel, qtbot, file, tmp_path):
    state, own = state_of(viewer), tmp_path / "own.tif"
    tifffile.imwrite(own, state.session.movie.layers[1].data.astype(np.uint16) * 2)

    def opened(cells):
        viewer.layers.clear()
        qtbot.waitUntil(lambda: state.session.movie is None)
        fill(viewer, file, cells)
        settled(state.session, qtbot)
        assert len([x for x in viewer.layers if tags_of(x).get("role") == "labels"]) == 1
        return panel.segment.source.labels.layer

    assert opened(own).name == "Cells"
    # The next time they come back with the movie, in place of those that were found before.
    assert opened(None).name == "own" and state.session.movie.files[1] == own


def answer(qtbot, words):
    """Click a button of the next question that comes up; what it said."""
    heard: list[str] = []

    def click():
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        heard.append(box.text())
        [wanted] = [b for b in box.buttons() if b.text().replace("&", "") == words]
        press(qtbot, wanted)

    QTimer.singleShot(300, click)
    return heard


@pytest.mark.asks_before_closing
def test_closing_asks_where_something_cannot_be_kept(viewer, qtbot, file, pace):
    theirs = file.with_name("part.bridgetrack") / "cells.zarr"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    widget = fill(viewer, file, None)
    state = state_of(viewer)
    window = viewer.window._qt_window
    qtbot.waitUntil(widget.segment.find.go.isEnabled)
    widget.segment.find.method.value = "plain"
    widget.segment.find.go.click()
    qtbot.waitUntil(lambda: state.session.busy("segment"))
    pace.held = True
    heard = answer(qtbot, "Stay")
    window.close()
    assert "The search for the cells" in heard[0]
    assert window.isVisible() and state.session.busy("segment")
    pace.held = False
    settled(state.session, qtbot)
    heard = answer(qtbot, "Stay")
    window.close()
    assert "cannot be written" in heard[0]
    assert window.isVisible() and state.session.movie is not None
    assert theirs.read_text() == "mine"
    heard = answer(qtbot, "Close and lose it")
    assert may_close(window, state.guard.losses) and heard
    theirs.unlink()
    state.session.project.keep()
    settled(state.session, qtbot)
    assert not state.guard.losses and theirs.is_dir()
