"""What was found, painted and answered is there again; closing asks about what is not kept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tifffile
from qtpy.QtCore import QPoint, Qt, QTimer
from qtpy.QtWidgets import QApplication, QFileDialog, QMessageBox

from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.models.shipped import shipped_model
from bridgetrack.ui.layers import camera_of, find_role, tags_of
from bridgetrack.ui.state import may_close, state_of
from bridgetrack.ui.workflow import fill

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def file(pixels, tmp_path: Path) -> Path:
    """Two frames of a part of the sample, in a folder of their own."""
    folder = tmp_path / "movies"
    folder.mkdir()
    tifffile.imwrite(folder / "part.tif", pixels[0][:2, 100:200, 100:200], photometric="minisblack")
    return folder / "part.tif"


def settled(state, qtbot) -> None:
    session = state.session
    work = ("measure", "track", "correct", "keep cells", "segment", "settings")
    qtbot.waitUntil(
        lambda: session.tracking is not None and not session.busy(*work), timeout=120_000
    )
    qtbot.wait(50)


@pytest.fixture
def found(viewer, qtbot, file):
    """A viewer with that movie, its cells found by the plain segmentation."""
    widget = fill(viewer, file, None)
    state = state_of(viewer)
    qtbot.waitUntil(widget.segment.find.go.isEnabled, timeout=20_000)
    widget.segment.find.method.value = "plain"
    widget.segment.find.size.value = 17
    widget.segment.find.go.click()
    settled(state, qtbot)
    return state, widget


def test_cells_that_were_found_and_mended_are_there_again(
    found, viewer, hand, qtbot, file, another_viewer
):
    state, widget = found
    assert (file.with_name("part.bridgetrack") / "cells.zarr").is_dir()
    layer = find_role(viewer.layers, "labels")
    cells = layer.data.copy()
    [label, *_] = np.unique(cells[1])[1:]
    state.canvas.show(1, None)
    place = np.argwhere(cells[1] == label)
    middle = place[np.abs(place - place.mean(axis=0)).sum(axis=1).argmin()]
    qtbot.wait(50)
    hand.key("E")
    hand.click(middle)
    settled(state, qtbot)
    # What was set and learned is kept as well.
    formats = widget.track.export.formats
    widget.open_step(3)
    row = formats.visualItemRect(formats.item(2))
    for right, ticked in ((8, ("csv", "geff")), (80, ("csv",)), (80, ("csv", "geff"))):
        place = row.topLeft() + QPoint(right, row.height() // 2)
        qtbot.mouseClick(formats.viewport(), Qt.MouseButton.LeftButton, pos=place)
        assert formats.ticked == ticked
    state.session.set_kinds(EventKinds.without(["merges"]))
    shipped = shipped_model()
    taught = replace(shipped, weights=1.01 * shipped.weights, name="taught")
    state.session.set_model(taught, shipped)
    box = widget.segment.scale
    box.pixel.setValue(0.5)
    box.minutes.setValue(10)
    box.apply()
    settled(state, qtbot)
    assert state.session.kinds.words == ("merges",), "another scale allows nothing else"
    mended = layer.data.copy()
    assert (mended != cells).any() and not (mended[1] == label).any()
    assert not state.guard.losses
    viewer.close()

    again = another_viewer()
    panel = fill(again, file, None)
    other = state_of(again)
    settled(other, qtbot)
    file = other.session.project.path.name
    assert panel.notice.text() == (
        f"✓ Restored from {file}: 1 answer, the cells that you found or painted, the model in use, "
        "what can happen."
    )
    back = find_role(again.layers, "labels")
    np.testing.assert_array_equal(back.data, mended)
    assert back.scale.tolist() == layer.scale.tolist()
    assert tags_of(back)["found"] == tags_of(layer)["found"]
    assert "Found here by the plain segmentation" in panel.segment.summary.text()
    geometry = other.session.movie.geometry
    assert (geometry.scale, geometry.unit) == ((0.5, 0.5), "micrometer")
    assert geometry.frame_interval == 10 and panel.segment.scale.minutes.value() == 10
    assert again.layers["part"].scale.tolist() == [1, 0.5, 0.5]
    assert np.allclose(camera_of(again).center[-2:], 0.5 * 99 / 2, atol=0.5), "it is in view"
    assert other.session.model.name == "taught" and other.session.kinds.words == ("merges",)
    assert (other.session.start.weights == shipped.weights).all()
    assert panel.track.export.formats.ticked == ("csv", "geff")
    assert panel.segment.find.size.value == 17
    hand_back = other.session.masks.answers
    assert [a.kind.value for a in hand_back] == ["remove"]
    for _ in range(3):  # the model, what can happen, and the cell
        np.testing.assert_array_equal(back.data, mended)
        other.session.undo()
        settled(other, qtbot)
    np.testing.assert_array_equal(back.data, cells)
    assert not other.session.kinds.words and not other.session.can_undo


def test_the_cells_of_a_movie_are_those_that_it_had_last(found, viewer, qtbot, file, tmp_path):
    state, widget = found
    assert (state.session.project.path / "cells.zarr").exists()
    own = tmp_path / "own.tif"
    tifffile.imwrite(own, find_role(viewer.layers, "labels").data.astype(np.uint16) * 2)
    viewer.layers.clear()
    qtbot.waitUntil(lambda: state.session.movie is None, timeout=20_000)
    fill(viewer, file, own)
    settled(state, qtbot)
    assert [layer.name for layer in viewer.layers if tags_of(layer).get("role") == "labels"] == [
        "Cells"
    ]
    assert widget.segment.source.labels.layer.name == "Cells"
    # The next time they come back with the movie, in place of those that were found before.
    viewer.layers.clear()
    qtbot.waitUntil(lambda: state.session.movie is None, timeout=20_000)
    fill(viewer, file, None)
    settled(state, qtbot)
    back = widget.segment.source.labels.layer
    assert back.name == "own" and state.session.movie.files[1] == own


def answer(qtbot, words: str) -> list[str]:
    """Click a button of the next question that comes up; what it said."""
    heard: list[str] = []

    def click() -> None:
        box = QApplication.activeModalWidget()
        assert isinstance(box, QMessageBox)
        heard.append(box.text())
        [wanted] = [b for b in box.buttons() if b.text().replace("&", "") == words]
        qtbot.mouseClick(wanted, Qt.MouseButton.LeftButton)

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
    qtbot.waitUntil(widget.segment.find.go.isEnabled, timeout=20_000)
    widget.segment.find.method.value = "plain"
    widget.segment.find.go.click()
    qtbot.waitUntil(lambda: state.session.busy("segment"), timeout=60_000)
    pace.held = True
    heard = answer(qtbot, "Stay")
    window.close()
    assert "The search for the cells" in heard[0]
    assert window.isVisible() and state.session.busy("segment")
    pace.held = False
    settled(state, qtbot)
    heard = answer(qtbot, "Stay")
    window.close()
    assert "a file where a folder is needed" in heard[0]
    assert window.isVisible() and state.session.movie is not None
    assert theirs.read_text() == "mine"
    heard = answer(qtbot, "Close and lose it")
    assert may_close(window, state.guard.losses) and heard
    theirs.unlink()
    state.kept.keep()
    settled(state, qtbot)
    assert not state.guard.losses and theirs.is_dir()


def test_a_project_is_saved_and_opened_at_the_head(
    found, viewer, qtbot, file, tmp_path, monkeypatch, another_viewer
):
    _, widget = found
    click = Qt.MouseButton.LeftButton
    asked = str(tmp_path / "kept")
    begun = []
    save = lambda *given: begun.append(given[2]) or (asked, "")  # noqa: E731
    monkeypatch.setattr(QFileDialog, "getSaveFileName", save)
    assert widget.step == 0 and widget.save.isVisible()
    qtbot.mouseClick(widget.save, click)
    qtbot.waitUntil(lambda: "Saved" in widget.notice.text(), timeout=60_000)
    assert Path(begun[0]).parent == file.parent, "the dialog begins where the movie is"
    assert (tmp_path / "kept.bridgetrack").is_dir() and not Path(asked).exists()
    cells = find_role(viewer.layers, "labels").data.copy()
    how = tags_of(find_role(viewer.layers, "labels"))["found"]
    viewer.close()

    again = another_viewer()
    again.add_image(np.zeros((2, 8, 8)), name="another")
    _, panel = again.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    qtbot.wait(50)
    chosen = tmp_path / "kept.bridgetrack" / "project.json"
    monkeypatch.setattr("bridgetrack.ui.segment_panel.ask_open", lambda *_: chosen)
    qtbot.mouseClick(panel.segment.open, click)
    settled(state_of(again), qtbot)
    session = state_of(again).session
    np.testing.assert_array_equal(session.movie.layers[1].data, cells)
    assert session.movie.layers[0].name == "part" and not again.layers["another"].visible
    assert session.movie.found == how
    assert "Found here by the plain segmentation" in panel.segment.summary.text()
