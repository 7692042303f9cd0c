"""Movies, masks and tables are brought by dropping, by the buttons of step 1 and by the command."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import tifffile
from qtpy.QtCore import QMimeData, QPointF, Qt, QTimer, QUrl
from qtpy.QtGui import QDropEvent
from qtpy.QtWidgets import (
    QApplication,
    QComboBox,
    QDialogButtonBox,
    QFileDialog,
    QLineEdit,
    QRadioButton,
)

import bridgetrack as bt
from bridgetrack.movie import looks_like_labels, open_labels, open_movie, save_labels
from bridgetrack.pipeline.project import load_project
from bridgetrack.progress import run
from bridgetrack.session.project import saving
from bridgetrack.ui.file_menu import layers_of
from bridgetrack.ui.layers import path_of, role_of, tags_of
from bridgetrack.ui.segment_panel import ask_open
from bridgetrack.ui.state import state_of
from bridgetrack.ui.workflow import fill
from window import tracked

CLICK = Qt.MouseButton.LeftButton


@pytest.fixture
def files(pixels, tmp_path):
    """Three frames of a part of the sample as files of many kinds."""
    image, labels = (frames[:3, 60:200, 60:200] for frames in pixels)
    for name, frames in (("frames", image), ("masks", labels.astype(np.uint16))):
        (tmp_path / name).mkdir()
        for t, frame in enumerate(frames):
            tifffile.imwrite(tmp_path / name / f"t{t:03d}.tif", frame, photometric="minisblack")
    stack, store = tmp_path / "cells.tif", tmp_path / "cells.ome.zarr"
    save_labels(open_labels(labels, axes="TYX", scale=(0.5, 0.5)), stack)
    save_labels(open_labels(labels, axes="TYX", scale=(0.5, 0.5)), store)
    table = tmp_path / "spots.csv"
    rows = [(t, int(k), *np.argwhere(labels[t] == k).mean(axis=0))
            for t in range(3) for k in np.unique(labels[t])[1:]]  # fmt: skip
    pd.DataFrame(rows, columns=["frame", "label", "y", "x"]).to_csv(table, index=False)
    named = {"stack": stack, "store": store, "table": table}
    return named | {name: tmp_path / name for name in ("frames", "masks")}


def drop(viewer, path):
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path))])
    canvas = viewer.window._qt_viewer
    where = QPointF(canvas.rect().center())
    no_key = Qt.KeyboardModifier.NoModifier
    canvas.dropEvent(QDropEvent(where, Qt.DropAction.CopyAction, mime, CLICK, no_key))


@contextmanager
def choosing(name):
    """Choose a reader in the questions that napari asks meanwhile."""

    def click():
        dialog = QApplication.activeModalWidget()
        if dialog is None:
            return
        wanted = [b for b in dialog.findChildren(QRadioButton) if name in b.text()]
        if wanted:
            wanted[0].setChecked(True)
        dialog.accept() if wanted else dialog.reject()

    looking = QTimer()
    looking.timeout.connect(click)
    looking.start(50)
    yield
    looking.stop()


def chosen(widget, kind):
    return getattr(widget.segment.source, kind).layer


def test_what_is_dropped_is_read_beside_the_window(viewer, qtbot, files):
    widget = fill(viewer, None, None)
    state = state_of(viewer)
    beside: list[bool] = []

    def dropping(path):
        """Drop in an event of the window, as a mouse does; nothing is read when it returns."""
        n, before = len(viewer.layers), len(beside)

        def act():
            drop(viewer, path)
            beside.append(state.elsewhere.busy("open") and len(viewer.layers) == n)

        with choosing("Bridgetrack"):
            QTimer.singleShot(0, act)
            qtbot.waitUntil(lambda: len(beside) > before)
        qtbot.waitUntil(lambda: not state.elsewhere.busy("open"))

    dropping(files["frames"])
    assert chosen(widget, "image").name == "frames" and chosen(widget, "labels") is None
    masks_that_napari_took_for_an_image_are_used(viewer, widget, qtbot, files)
    dropping(files["masks"])
    tracked(state.session, qtbot)
    assert chosen(widget, "labels").name == "masks"
    assert type(chosen(widget, "labels")).__name__ == "Labels"
    there = list(viewer.layers)
    for name, text, told in (
        ("broken.csv", files["table"].read_text() + "3,1,here,4\n", "here"),
        ("other.csv", "name,value\na,1\n", "column"),
    ):
        broken = files["table"].with_name(name)
        broken.write_text(text)
        dropping(broken)
        notice = widget.notice
        assert notice.isVisible() and name in notice.text() and told in notice.text()
        assert list(viewer.layers) == there and chosen(widget, "labels").name == "masks"
    strange = pd.read_csv(files["table"]).assign(Label="cell", Slice=lambda t: t.frame + 1)
    strange.drop(columns=["label", "frame"]).to_csv(files["table"].with_name("w.csv"), index=False)
    dropping(files["table"].with_name("w.csv"))
    assert notice.text().startswith("⚠")
    assert "'Label' holds words" in notice.text() and "'Slice' counts from 1" in notice.text()
    assert beside == [True] * 5
    # A script, which is no event of the window, gets the layers at once.
    [points] = viewer.open(str(files["table"]), plugin="bridgetrack")
    assert points in viewer.layers


def masks_that_napari_took_for_an_image_are_used(viewer, widget, qtbot, files):
    state, source = state_of(viewer), widget.segment.source
    drop(viewer, files["stack"])
    qtbot.waitUntil(lambda: len(viewer.layers) > 1)
    taken = viewer.layers["cells"]
    assert type(taken).__name__ == "Image"
    qtbot.wait(100)
    assert chosen(widget, "image").name == "frames", "it is not taken for the movie"
    assert chosen(widget, "labels") is None and state.session.movie is None
    words = [source.labels.itemText(k) for k in range(source.labels.count())]
    assert words[1:] == ["cells (use as cells)"]
    source.labels.setFocus()
    qtbot.keyClick(source.labels, Qt.Key.Key_Down)
    tracked(state.session, qtbot)
    made = chosen(widget, "labels")
    assert type(made).__name__ == "Labels" and not taken.visible
    np.testing.assert_array_equal(made.data, taken.data)
    assert path_of(made) == files["stack"]
    # So are whole numbers that were written as floats, in a layer or a file.
    theirs = viewer.add_image(taken.data.astype(np.float32), name="theirs")
    source.labels.choose(theirs)
    qtbot.waitUntil(lambda: chosen(widget, "labels").name == "theirs cells")
    np.testing.assert_array_equal(chosen(widget, "labels").data, taken.data)
    for layer in (chosen(widget, "labels"), theirs, made, taken):
        viewer.layers.remove(layer)
    qtbot.waitUntil(lambda: state.session.movie is None)
    floats = files["stack"].with_name("floats.tif")
    tifffile.imwrite(floats, theirs.data, metadata={"axes": "TYX"})
    [(data, _, kind)] = layers_of(floats)
    assert kind == "labels" and data.dtype.kind == "u"
    np.testing.assert_array_equal(data, taken.data)


def test_images_are_no_masks(pixels):
    image, labels = pixels
    assert looks_like_labels(open_movie(labels, axes="TYX"))
    assert not looks_like_labels(open_movie(image, axes="TYX"))
    assert not looks_like_labels(open_movie((image > 200).astype(np.uint8), axes="TYX"))
    assert looks_like_labels(open_movie(labels.astype(np.float32), axes="TYX"))
    assert not looks_like_labels(open_movie(labels + np.float32(0.5) * (labels > 0), axes="TYX"))
    counts = np.random.default_rng(0).poisson(0.2, labels.shape).astype(np.uint16)
    assert not looks_like_labels(open_movie(counts, axes="TYX"))


def test_the_command_opens_whatever_it_is_given(viewer, qtbot, files):
    broken = files["table"].with_name("broken.csv")
    broken.write_text("name,colour\ncat,black\n")

    def opened(*given):
        viewer.layers.clear()
        qtbot.waitUntil(lambda: state_of(viewer).session.movie is None)
        widget = fill(viewer, *given)
        files_of = state_of(viewer).elsewhere
        assert files_of.busy("open") and not viewer.layers, "the window is there at once"
        qtbot.waitUntil(lambda: not files_of.busy("open"))
        return widget

    widget = opened(broken, None)
    assert not viewer.layers and "broken.csv" in widget.notice.text()
    opened(files["store"], None)
    tracked(state_of(viewer).session, qtbot)
    assert chosen(widget, "labels").name == "cells"
    assert tags_of(chosen(widget, "labels"))["role"] == "labels"
    widget = opened(files["frames"], files["table"])
    assert type(viewer.layers["Cells"]).__name__ == "Points"
    assert chosen(widget, "image").name == "frames"


def test_any_frame_of_a_folder_of_stacks_opens_the_folder(tmp_path):
    stacks = np.random.default_rng(0).integers(0, 200, (3, 4, 20, 30)).astype(np.uint8)
    for kind, name in (("frames", "t{:03}.tif"), ("positions", "pos{}.tif")):
        (tmp_path / kind).mkdir()
        for k, stack in enumerate(stacks):
            file = tmp_path / kind / name.format(k)
            tifffile.imwrite(file, stack, photometric="minisblack")
    [(volumes, *_)] = layers_of(tmp_path / "frames" / "t001.tif")
    np.testing.assert_array_equal(volumes, stacks)
    # Movies of several positions lie side by side, too, but each is opened by itself.
    [(movie, *_)] = layers_of(tmp_path / "positions" / "pos1.tif")
    np.testing.assert_array_equal(movie, stacks[1])


def test_every_channel_of_a_movie_is_there_and_the_first_is_chosen(viewer, qtbot, files, tmp_path):
    frames = np.stack([tifffile.imread(f) for f in sorted(files["frames"].glob("*.tif"))])
    both, movie = np.stack([frames, frames.max() - frames], axis=1), tmp_path / "two.tif"
    tifffile.imwrite(movie, both, imagej=True, metadata={"axes": "TCYX"})
    widget = fill(viewer, movie, files["masks"] / "t000.tif")
    state = state_of(viewer)
    tracked(state.session, qtbot)
    first, second = (x for x in viewer.layers if role_of(x) == "image")
    assert chosen(widget, "image") is first
    assert str(second.blending) == "additive" and first.name != second.name
    for k, layer in enumerate((first, second)):
        np.testing.assert_array_equal(layer.data, both[:, k])
    # The cells are those of the movie, whichever of its channels shows them.
    cells = chosen(widget, "labels")
    widget.segment.source.image.choose(second)
    qtbot.waitUntil(lambda: state.session.movie.layers[0] is second)
    assert chosen(widget, "labels") is cells
    np.testing.assert_array_equal(state.session.movie.image.frame(1)[0], both[1, 1])
    # A project keeps the channel that was chosen.
    run(saving(state.session, tmp_path / "project.bridgetrack"))
    _, image = load_project(tmp_path / "project.bridgetrack").open()
    np.testing.assert_array_equal(image.frame(1)[0], both[1, 1])


def test_columns_that_nobody_knows_are_named_in_a_dialog(viewer, qtbot, tmp_path, monkeypatch):
    table = tmp_path / "spots.csv"
    rows = [f"{t},{10 * k + t},{20 * k},c{k}" for t in range(3) for k in range(1, 4)]
    table.write_text("\n".join(["bild,oben,links,name", *rows]))
    monkeypatch.setattr("bridgetrack.ui.segment_panel.ask_open", lambda *_: table)
    widget = fill(viewer, None, None)
    state = state_of(viewer)

    def answering(answer):
        QTimer.singleShot(200, lambda: answer(QApplication.activeModalWidget()))
        qtbot.mouseClick(widget.segment.open, CLICK)

    def press(dialog, kind):
        [buttons] = dialog.findChildren(QDialogButtonBox)
        qtbot.mouseClick(buttons.button(kind), CLICK)

    def naming(dialog):
        choices = dialog.findChildren(QComboBox)
        for choice, words in zip(choices, ("bild", "oben", "links"), strict=False):
            choice.setFocus()
            qtbot.keyClicks(choice, words[0])
        press(dialog, QDialogButtonBox.StandardButton.Ok)

    answering(lambda dialog: press(dialog, QDialogButtonBox.StandardButton.Cancel))
    qtbot.wait(100)
    assert not len(viewer.layers), "nobody said what they are"
    answering(lambda dialog: press(dialog, QDialogButtonBox.StandardButton.Ok))
    qtbot.waitUntil(lambda: "column" in widget.notice.text())
    assert not len(viewer.layers)
    answering(naming)
    tracked(state.session, qtbot)
    cells = state.session.scene.detections
    assert len(cells) == 9 and cells.table["y"].tolist()[:3] == [10, 20, 30]


def test_masks_and_their_movie_opened_one_after_the_other_are_measured_once(viewer, qtbot, files):
    widget, opened = fill(viewer, None, None), []
    session = state_of(viewer).session
    session.movie_changed.connect(lambda: opened.append(session.movie))
    for name in ("masks", "frames"):
        widget.segment.bring(name, lambda path=files[name]: layers_of(path))
    tracked(session, qtbot)
    assert [tuple(layer.name for layer in movie.layers) for movie in opened] == [
        ("frames", "masks")
    ]


def test_few_actions_lead_to_a_table(viewer, qtbot, files, tmp_path, pixels, monkeypatch):
    """From a raw movie four, from masks and points three; a file with its dialog is one."""
    widget = fill(viewer, None, None)
    state, actions = state_of(viewer), []

    def press(target):
        qtbot.waitUntil(lambda: target.isVisible() and target.isEnabled())
        actions.append(target.text())
        qtbot.mouseClick(target, CLICK)

    def open_file(path):
        def choose():
            dialog = QApplication.activeModalWidget()
            if dialog is not None:
                dialog.findChild(QLineEdit).setText(str(path))
                dialog.accept()

        actions.clear()
        looking = QTimer()
        looking.timeout.connect(choose)
        looking.start(50)
        press(widget.segment.open)
        looking.stop()
        assert state.elsewhere.busy("open"), "not in the window's thread"
        qtbot.waitUntil(lambda: not state.elsewhere.busy("open"))

    def cells_are(name):
        qtbot.waitUntil(lambda: chosen(widget, "labels").name == name)
        tracked(state.session, qtbot)

    def export(name):
        press(widget.tabs[3])
        box = widget.track.export
        press(box.save)
        qtbot.waitUntil((tmp_path / f"{name}_tracks" / "tracks.csv").is_file)
        qtbot.waitUntil(lambda: "Written" in box.words.text())
        qtbot.waitUntil(lambda: box.words.visibleRegion().boundingRect() == box.words.rect())
        widget.open_step(0)
        return len(actions)

    raw, second = tmp_path / "raw.tif", tmp_path / "second.tif"
    tifffile.imwrite(raw, pixels[0][:2, 100:220, 100:220], photometric="minisblack")
    open_file(raw)
    press(widget.segment.find.go)
    tracked(state.session, qtbot)
    assert export("raw") <= 5, actions
    state.session.forget()
    viewer.layers.clear()
    open_file(files["masks"] / "t000.tif")
    cells_are("masks")
    assert export("masks") == 3, actions
    n = len(state.session.scene.detections)
    open_file(files["table"])
    cells_are("spots")
    assert len(state.session.scene.detections) == n
    assert export("spots") == 3, actions
    # What an export replaces is told before, and of other tracks nothing is said to be written.
    box = widget.track.export
    widget.open_step(3)
    assert not box.replaced.isVisible()
    state.session.tracker.track()
    qtbot.waitUntil(box.replaced.isVisible)
    folder = tmp_path / "spots_tracks"
    assert box.replaced.text() == f"Export replaces the earlier result in {folder}."
    assert "Written" not in box.words.text()
    # Elsewhere, in a folder of the same name.
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path / "masks"))
    widget.open_step(3)
    press(widget.track.export.elsewhere)
    qtbot.waitUntil((tmp_path / "masks" / "spots_tracks" / "tracks.csv").is_file)
    # A frame opens its folder; cells are those of one movie, and not of another that is opened.
    widget.open_step(0)
    open_file(files["frames"] / "t001.tif")
    qtbot.waitUntil(lambda: chosen(widget, "image") is not None)
    assert chosen(widget, "image").name == "frames" and len(chosen(widget, "image").data) == 3
    cells_are("spots")
    tifffile.imwrite(second, np.asarray(chosen(widget, "image").data), photometric="minisblack")
    open_file(second)
    qtbot.waitUntil(lambda: state.session.movie is None)
    assert chosen(widget, "image").name == "second" and chosen(widget, "labels") is None
    assert "belongs to “frames”; select it above" in widget.segment.summary.text()
    assert not viewer.layers["frames"].visible


def test_the_folder_of_a_project_is_opened_as_it_is(viewer, qtbot, files, tmp_path):
    folder = bt.Session(files["masks"], files["frames"]).save(tmp_path / "copy")
    widget = fill(viewer, None, None)
    session = state_of(viewer).session
    with choosing("Bridgetrack"):
        QTimer.singleShot(0, lambda: drop(viewer, folder))
        tracked(session, qtbot)
    assert session.project.path == folder
    # In the dialog: chosen, or gone into.
    for go in ("choose", "enter"):

        def act(go=go):
            dialog = QApplication.activeModalWidget()
            if go == "choose":
                dialog.findChild(QLineEdit).setText(str(folder))
                dialog.accept()
            else:
                dialog.directoryEntered.emit(str(folder))

        QTimer.singleShot(200, act)
        assert ask_open(widget) == folder, go
