"""Cells are taught by brushes: strokes of a real mouse, keys, undo, the next place, all frames."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.movie import open_labels, save_labels
from bridgetrack.segmentation.pixels import load_pixel_model, save_pixel_model
from bridgetrack.segmentation.readings import Reading
from bridgetrack.session.answers import autosave_path, cells_path
from bridgetrack.ui.layers import camera_of, find_role


@pytest.fixture
def pixels(pixels: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The middle of the short movie: its image and its cells."""
    return tuple(array[:, 66:322, 66:322] for array in pixels)


@pytest.fixture
def segment(viewer: Any, qtbot: Any, pixels: tuple[np.ndarray, np.ndarray]) -> Any:
    """The panel of step 1 on three frames of the short movie."""
    viewer.add_image(pixels[0][:3].copy(), name="short")
    viewer.dims.set_point(0, 0)
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    widget.segment.notice = widget.notice
    return widget.segment


def _drag(hand: Any, first: tuple[float, float], last: tuple[float, float]) -> None:
    from qtpy.QtCore import Qt

    hand.point(first)
    hand.qtbot.mousePress(hand.canvas, Qt.MouseButton.LeftButton, pos=hand._pixel(first))
    for share in np.linspace(0, 1, 6):
        place = np.asarray(first) + share * (np.asarray(last) - np.asarray(first))
        hand.move(hand._pixel(place), held=True)
    hand.qtbot.mouseRelease(hand.canvas, Qt.MouseButton.LeftButton, pos=hand._pixel(last))
    hand.qtbot.wait(10)


def _cell_and_gap(truth: np.ndarray) -> tuple[np.ndarray, tuple[float, float]]:
    """Centre of a cell in the middle of the frame, and a place without cells."""
    from scipy import ndimage as ndi

    labels = np.unique(truth)[1:]
    centres = np.array(ndi.center_of_mass(truth > 0, truth, labels))
    far = ndi.distance_transform_edt(np.pad(truth == 0, 1))[1:-1, 1:-1]
    middle = np.array(truth.shape) / 2
    cell = centres[np.argmin(np.linalg.norm(centres - middle, axis=1))]
    return cell, tuple(float(k) for k in np.unravel_index(np.argmax(far), far.shape))


def _teach(panel: Any, hand: Any, qtbot: Any, truth: np.ndarray) -> Any:
    """Two strokes, by key and by button; the panel's teacher, once it has learned."""
    teach = panel.find.teach
    cell, gap = _cell_and_gap(truth)
    shown = []
    panel.session.progress.connect(lambda name, _: shown.append((name, teach.work.isHidden())))
    teach.brushes[2].click()
    _drag(hand, (cell[0], cell[1] - 4), (cell[0], cell[1] + 4))
    qtbot.waitUntil(lambda: "background" in teach.words.text(), timeout=20_000)
    assert teach.model is None
    assert ("settings", False) in shown, "what takes long after the first stroke is seen"
    hand.key("B")
    assert teach.brushes[1].isChecked()
    _drag(hand, gap, (gap[0] + 3, gap[1] + 3))
    qtbot.waitUntil(lambda: teach.model is not None, timeout=20_000)
    return teach


def test_brushes_teach_and_the_cells_are_found(segment, viewer, hand, qtbot, pixels):
    truth = pixels[1]
    teach = _teach(segment, hand, qtbot, truth[0])
    strokes = find_role(viewer.layers, "strokes")
    assert strokes is teach.strokes
    assert set(np.unique(strokes.data[0])) == {0, 1, 2}
    assert not strokes.data[1:].any()
    assert segment.source.labels.layer is None  # strokes are no cells
    shown = find_role(viewer.layers, "probability")
    assert shown.data.shape == truth[0].shape
    inside = truth[0] > 0
    assert shown.data[inside].mean() > shown.data[~inside].mean() + 0.4
    assert viewer.layers.selection.active is strokes  # one goes on painting
    # Closing loses nothing of it, unless it cannot be kept.
    guard, path = segment.state.guard, teach._path
    assert not guard.losses and path.exists()
    path.unlink()
    path.mkdir()
    strokes.paint((1, 20, 20), 1)
    [lost] = guard.losses
    assert "What you painted" in lost and path.name in lost
    path.rmdir()
    assert not guard.losses and path.is_file()
    segment.find.go.click()
    found = segment.source.labels
    qtbot.waitUntil(lambda: found.layer is not None, timeout=60_000)
    qtbot.waitUntil(lambda: segment.session.movie is not None, timeout=20_000)
    assert not guard.losses
    labels = np.asarray(found.layer.data)
    assert labels.shape == truth[:3].shape
    n_true = len(np.unique(truth[0])) - 1
    assert 0.6 * n_true < labels[0].max() < 1.5 * n_true
    assert segment.session.taught is teach.model, "it counts for repairs and mends, too"
    # Strokes that cannot be kept stay when another movie is chosen, which has none of them; that
    # is still told when the cells that were kept of that one are there.
    path.unlink()
    path.mkdir()
    strokes.paint((1, 30, 30), 1)
    painted = strokes.data.copy()
    other, session = viewer.add_image(pixels[0][3:6] * 2.0, name="another"), segment.session
    before, movies = found.layer, []
    kept = cells_path(autosave_path(None, "another", session.movie.geometry))
    save_labels(open_labels(truth[3:6]), kept, dtype="uint16")
    session.movie_changed.connect(lambda: movies.append(session.movie))
    segment.source.image.choose(other)
    qtbot.waitUntil(lambda: len(movies) == 2, timeout=20_000)
    qtbot.wait(50)
    assert movies[0] is None, "what is read for the next movie is not waited for with this one"
    assert found.layer is not before
    assert session.taught is None and session.pixels is not None, "that was another movie"
    assert strokes in viewer.layers and not strokes.visible and teach.strokes is None
    assert strokes.name == "Strokes on short" and session.movie.layers == (other, found.layer)
    assert "stays in the hidden layer “Strokes on short”" in segment.notice.text()
    assert [lost for lost in guard.losses if "Strokes on short" in lost]
    teach.take(1)
    teach.strokes.paint((0, 20, 20), 1)
    np.testing.assert_array_equal(strokes.data, painted)


def test_undo_takes_back_what_a_stroke_taught(segment, viewer, hand, qtbot, pixels):
    teach = _teach(segment, hand, qtbot, pixels[1][0])
    taught = teach.model
    strokes = teach.strokes
    painted = np.count_nonzero(strokes.data)
    hand.key("Z", control=True)
    assert 0 < np.count_nonzero(strokes.data) < painted
    qtbot.waitUntil(lambda: teach.model is None, timeout=20_000)
    assert find_role(viewer.layers, "probability") is None
    hand.key("Z", control=True)
    assert not strokes.data.any()
    strokes.redo()
    strokes.redo()
    qtbot.waitUntil(lambda: teach.model is not None, timeout=20_000)
    np.testing.assert_array_equal(teach.model.painted.classes, taught.painted.classes)


def test_what_was_taught_is_shown_kept_and_forgotten(
    segment, viewer, hand, qtbot, pixels, tmp_path
):
    # The frame in view is shown and the next place is gone to.
    teach = _teach(segment, hand, qtbot, pixels[1][0])
    first = np.array(find_role(viewer.layers, "probability").data)
    viewer.dims.set_point(0, 2)
    qtbot.waitUntil(
        lambda: not np.array_equal(find_role(viewer.layers, "probability").data, first),
        timeout=20_000,
    )
    before = camera_of(viewer).center
    hand.key("G")
    qtbot.waitUntil(lambda: "uncertain" in teach.words.text(), timeout=20_000)
    assert camera_of(viewer).center != before
    at = [round(p) for p in camera_of(viewer).center[-2:]]
    frame = round(viewer.dims.point[0])
    near = teach.strokes.data[frame][max(0, at[0] - 2) : at[0] + 3, max(0, at[1] - 2) : at[1] + 3]
    assert not near.any()
    # A project keeps what was taught.
    session = bt.Session(pixels[1][:3], pixels[0][:3])
    session.pixels = teach.model
    session.save(tmp_path / "movie.json")
    again = bt.Session.from_project(tmp_path / "movie.json")
    np.testing.assert_array_equal(again.pixels.painted.features, teach.model.painted.features)
    assert bt.Session(pixels[1][:3]).pixels is None
    # Forgetting.
    teach.forget.click()
    assert teach.model is None
    assert find_role(viewer.layers, "strokes") is None
    assert find_role(viewer.layers, "probability") is None
    assert not teach.forget.isVisibleTo(teach)


def test_what_was_forgotten_by_a_slip_is_brought_back(segment, viewer, hand, qtbot, pixels):
    teach = _teach(segment, hand, qtbot, pixels[1][0])
    assert not teach.back.isVisibleTo(teach)
    path, taught, painted = teach._path, teach.model, teach.strokes.data.copy()
    teach.forget.click()
    assert teach.strokes is None and not path.exists()
    assert "can be brought back" in teach.words.text()
    teach.back.click()
    np.testing.assert_array_equal(teach.strokes.data, painted)
    assert path.exists() and not teach.back.isVisibleTo(teach)
    qtbot.waitUntil(lambda: teach.model is not None, timeout=20_000)
    assert teach.model.painted == taught.painted
    # Also when somebody has painted since, which stays.
    teach.forget.click()
    teach.take(1)
    teach.strokes.paint((1, 20, 20), 1)
    since = teach.strokes.data.copy()
    assert since.any()
    teach.back.click()
    np.testing.assert_array_equal(teach.strokes.data, np.where(since > 0, since, painted))
    qtbot.waitUntil(lambda: teach.model is not None, timeout=20_000)
    assert 0 < np.count_nonzero(since) < np.count_nonzero(teach.strokes.data)
    # It is of this movie alone.
    teach.forget.click()
    segment.source.image.choose(viewer.add_image(pixels[0][3:6] * 2.0, name="another"))
    assert not teach.back.isVisibleTo(teach)


def test_what_was_taught_is_offered_on_the_next_movie(segment, viewer, hand, qtbot, pixels):
    teach = _teach(segment, hand, qtbot, pixels[1][0])
    assert not teach.again.isVisibleTo(teach)
    taught = teach.model
    strokes, first = teach.strokes.data.copy(), segment.source.image.layer
    other = viewer.add_image(pixels[0][3:6] * 2.0, name="another")
    session, find, leaving = segment.session, segment.find, ["pixels"]

    def leave(name, _):
        if name in leaving:
            leaving.remove(name)
            segment.source.image.choose(other)

    # What is being learned of a movie is not that of another one chosen meanwhile.
    session.progress.connect(leave)
    viewer.dims.set_point(0, 2)
    qtbot.waitUntil(lambda: not leaving and not session.busy("pixels"), timeout=20_000)
    qtbot.waitUntil(lambda: teach.strokes is None, timeout=20_000)
    assert segment.source.image.layer is other and teach.model is None
    assert teach.again.isVisibleTo(teach)
    assert "short" in teach.again.text()
    teach.again.click()
    qtbot.waitUntil(lambda: teach.model is not None, timeout=20_000)
    np.testing.assert_array_equal(teach.model.painted.features, taught.painted.features)
    # Each movie has its own.
    assert teach.strokes is None
    segment.source.image.choose(first)
    qtbot.waitUntil(lambda: teach.strokes is not None and teach.model is not None, timeout=20_000)
    np.testing.assert_array_equal(teach.strokes.data, strokes)
    teach.forget.click()
    segment.source.image.choose(other)
    segment.source.image.choose(first)
    qtbot.wait(300)
    assert teach.strokes is None and teach.model is None
    # Neither is what suits it.
    segment.source.image.choose(first)
    leaving.append("settings")
    find.go.click()
    qtbot.waitUntil(lambda: not leaving and not session.busy("settings"), timeout=20_000)
    assert segment.source.image.layer is other and find._decided is None
    assert not session.busy("segment")
    words = "The search for the cells of “short” ended before its first frame, as another movie"
    qtbot.waitUntil(lambda: words in segment.notice.text(), timeout=20_000)
    # Nor where to paint next, nor how large its cells are.
    segment.source.image.choose(first)
    teach.take(2)
    teach.strokes.paint((0, 20, 20), 2)
    teach.strokes.paint((0, 60, 60), 1)
    qtbot.waitUntil(lambda: teach.model is not None, timeout=20_000)
    middle = camera_of(viewer).center
    leaving.append("next pixels")
    teach.next.click()
    qtbot.waitUntil(lambda: not leaving and not session.busy("next pixels"), timeout=20_000)
    qtbot.waitUntil(lambda: teach.strokes is None, timeout=20_000)
    assert camera_of(viewer).center == middle and "uncertain" not in teach.words.text()
    segment.source.image.choose(first)
    size = find.looks["diameter"].value
    find.size.click()
    leaving.append("size")
    for place in ((0, 20, 20), (0, 60, 60), (0, 90, 90)):
        find_role(viewer.layers, "sizes").add([place])
    qtbot.waitUntil(lambda: not leaving and not session.busy("size"), timeout=20_000)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "sizes") is None, timeout=20_000)
    assert find.looks["diameter"].value == size and "No way" not in find.words.text()


def test_three_clicks_set_the_size(segment, viewer, hand, qtbot, pixels):
    from scipy import ndimage as ndi

    truth = pixels[1][0]
    labels = np.unique(truth)[1:]
    centres = ndi.center_of_mass(truth > 0, truth, labels)
    inner = [
        c for c in centres if all(60 < k < n - 60 for k, n in zip(c, truth.shape, strict=True))
    ]
    areas = np.bincount(truth.ravel())[labels]
    find = segment.find
    find.looks["diameter"].value = 70
    find.size.click()
    layer = find_role(viewer.layers, "sizes")
    assert segment.source.labels.layer is None  # these points are no cells
    for centre in inner[:3]:
        hand.click(centre)
    assert len(layer.data) == 3
    qtbot.waitUntil(lambda: find_role(viewer.layers, "sizes") is None, timeout=30_000)
    expected = 2 * np.sqrt(np.median(areas) / np.pi)
    assert find.looks["diameter"].value == pytest.approx(expected, rel=0.3)
    assert find.expert["foreground"].value == "bright"


def test_strokes_teach_with_the_size_that_is_shown(segment, viewer, hand, qtbot, pixels):
    def taught_with(diameter):
        qtbot.waitUntil(
            lambda: teach.model is not None and teach.model.diameter == diameter, timeout=30_000
        )
        return teach.model.painted

    teach, find = _teach(segment, hand, qtbot, pixels[1][0]), segment.find
    first = teach.model
    assert first.diameter == pytest.approx(find.looks["diameter"].value, abs=0.5)
    find.looks["diameter"].value = 35
    painted = taught_with(35)
    assert set(painted.classes) == set(first.painted.classes)
    find._on_size(Reading("bright", 28.0))
    taught_with(28)
    # It is there again with the strokes, and with the size that they were learned with.
    image = segment.source.image.layer
    segment.source.image.choose(viewer.add_image(pixels[0][3:6] * 2.0, name="another"))
    segment.source.image.choose(image)
    taught_with(28)
    assert find.looks["diameter"].value == 28
    # Without the strokes, the movie says how large its cells are; then a person does.
    teach.forget.click()
    for size in (first.diameter, 40):
        if size == 40:
            find.looks["diameter"].value = size
        teach.take(2)
        teach.strokes.paint((0, 20, 20), 2)
        teach.strokes.paint((0, 60, 60), 1)
        taught_with(size)


@pytest.mark.thorough  # the command line and the next movie say nearly the same
def test_what_was_taught_is_saved_and_opened_on_another_movie(
    segment, viewer, hand, qtbot, pixels, tmp_path, monkeypatch
):
    from qtpy.QtWidgets import QFileDialog

    chosen = tmp_path / "lab.pixels.json"
    for ask in ("getOpenFileName", "getSaveFileName"):
        monkeypatch.setattr(QFileDialog, ask, lambda *_: (str(chosen), ""))
    teach = segment.find.teach
    file = teach.file
    assert not file.save.isEnabled() and not file.without.isVisibleTo(file)
    taught = _teach(segment, hand, qtbot, pixels[1][0]).model
    file.save.click()
    assert f"Saved what the strokes taught to {chosen}" in segment.notice.text()
    kept = load_pixel_model(chosen)
    np.testing.assert_array_equal(kept.painted.features, taught.painted.features)
    # Another program, or another day: on another movie nothing is known.
    other = viewer.add_image(pixels[0][3:6] * 2.0, name="another")
    segment.source.image.choose(other)
    segment.session.pixels = None
    assert teach.model is None and not file.save.isEnabled()
    for bad, words in (("nothing of this kind", "lab.pixels.json"), (None, "No such file")):
        if bad is None:
            chosen.unlink()
        else:
            chosen.write_text(bad)
        file.open.click()
        qtbot.waitUntil(lambda words=words: words in segment.notice.text(), timeout=20_000)
        assert teach.model is None
    save_pixel_model(taught, chosen)
    file.open.click()
    qtbot.waitUntil(lambda: teach.model is not None, timeout=30_000)
    np.testing.assert_array_equal(teach.model.painted.features, taught.painted.features)
    assert find_role(viewer.layers, "probability") is not None
    assert segment.find._finding().pixels is teach.model
    assert segment.session.pixels is teach.model, "a project keeps it"
    assert "short" in file.without.text() and teach.strokes is None
    # It is there again with its movie, before anybody painted on that.
    segment.source.image.choose(viewer.add_image(pixels[0][6:9] * 3.0, name="a third"))
    assert teach.model is None and not file.without.isVisibleTo(file)
    segment.source.image.choose(other)
    qtbot.waitUntil(lambda: teach.model is not None, timeout=30_000)
    # Strokes are added to it, and stay where it is done without.
    teach.take(2)
    teach.strokes.paint((0, 20, 20), 2)
    teach.strokes.paint((0, 60, 60), 1)
    few = len(taught.painted.classes)
    qtbot.waitUntil(lambda: len(teach.model.painted.classes) > few, timeout=30_000)
    strokes = teach.strokes.data.copy()
    both = len(teach.model.painted.classes)
    file.without.click()
    qtbot.waitUntil(lambda: teach.model is not None, timeout=30_000)
    assert len(teach.model.painted.classes) <= both - few
    np.testing.assert_array_equal(teach.strokes.data, strokes)
    assert not file.without.isVisibleTo(file)
    # What is no such model stays as it is.
    chosen.write_text("somebody's")
    file.save.click()
    assert "is not replaced" in segment.notice.text() and chosen.read_text() == "somebody's"
    # Forgotten for good.
    save_pixel_model(taught, chosen)
    file.open.click()
    qtbot.waitUntil(lambda: file.without.isVisibleTo(file), timeout=30_000)
    teach.forget.click()
    assert teach.model is None and not teach.forget.isVisibleTo(teach)
    segment.source.image.choose(segment.source.image.layer)
    qtbot.wait(300)
    assert teach.model is None and not file.without.isVisibleTo(file)
