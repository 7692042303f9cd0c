"""Cells are found with their tracks, answers about masks hold when they are found again."""

import threading

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QSlider

from bridgetrack.annotations.mask_answers import honoured
from bridgetrack.movie import open_movie
from bridgetrack.pipeline import finding
from bridgetrack.pipeline.finding import Finding
from bridgetrack.progress import run
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.ui.layers import FOUND, find_role
from drawn_movie import colony
from window import middle, plugin, press, press_row, settled, undone


@pytest.fixture
def image(whole_pixels):
    """Three frames of a part of the sample."""
    return whole_pixels[0][:3, 100:240, 100:240].copy()


@pytest.fixture
def opened(viewer, qtbot, image):
    """State and workflow of a viewer with a movie whose cells are not known."""
    viewer.add_image(image, name="part")
    opened = plugin(viewer)
    qtbot.wait(50)
    return opened


def found(state, widget, qtbot):
    """Find the cells by the button; the layer that comes of it, once it is tracked."""
    before = widget.segment.source.labels.layer
    widget.segment.find.go.click()
    source = widget.segment.source.labels
    qtbot.waitUntil(lambda: source.layer not in (None, before))
    settled(state.session, qtbot)
    assert state.session.movie.layers[1] is source.layer
    return source.layer


def central(frame):
    """The cell nearest to the middle of a frame."""
    away = [np.abs(middle(frame == k) - 70).max() for k in np.unique(frame)[1:]]
    return int(np.unique(frame)[1:][int(np.argmin(away))])


def test_cells_are_found_with_a_preview_and_what_is_said_of_them_holds(
    opened, viewer, hand, qtbot, whole_pixels
):
    state, widget = opened
    a_preview_follows_the_settings(widget, viewer, qtbot, whole_pixels)
    widget.segment.find.size.value = 17
    first = found(state, widget, qtbot)
    assert find_role(viewer.layers, "preview") is None
    sections_opened_later_are_not_squashed(widget, viewer, qtbot)
    # This is no cell: it stays gone when cells are found again.
    session = state.session
    there = middle(first.data[1] == central(first.data[1]))
    session.mend("remove", 1, tuple(there.tolist()))
    settled(state.session, qtbot)
    answers = session.masks.answers
    second = found(state, widget, qtbot)
    assert second is not first
    assert session.masks.answers == answers
    assert honoured(second.data[1], answers, 1)


def a_preview_follows_the_settings(widget, viewer, qtbot, whole_pixels):
    find, told = widget.segment.find, []
    assert widget.segment.source.labels.layer is None
    assert find.size.native.text() == "automatic", "nothing is estimated yet"
    widget.session.progress.connect(lambda *_: told.append(find.words.text()))
    find.live.setChecked(True)
    qtbot.waitUntil(lambda: find_role(viewer.layers, "preview") is not None)
    assert "Computing the preview…" in told and find.words.text().endswith("cells in this frame.")

    def seen():
        return find_role(viewer.layers, "preview").data

    before = seen().copy()
    many, n_true = before.max(), len(np.unique(whole_pixels[1][0, 100:240, 100:240])) - 1
    assert 0.6 * n_true < many < 1.4 * n_true
    find.faint.value = 0
    qtbot.waitUntil(lambda: not np.array_equal(seen(), before))
    find.faint.value = 0.5


def sections_opened_later_are_not_squashed(widget, viewer, qtbot):
    viewer.window.resize(1366, 768)
    find = widget.segment.find
    widget.segment.finding.open()
    qtbot.wait(200)
    press(qtbot, widget.segment.more.head)
    qtbot.wait(700)
    for part in (find.size.native, find.split.native, find.expert):
        assert part.height() >= part.sizeHint().height()
    for part in (find.words, find.estimate):
        assert part.height() >= part.heightForWidth(part.width())


def test_answers_about_masks_are_listed_and_masks_chosen_again(opened, viewer, hand, qtbot):
    state, widget = opened
    layer = found(state, widget, qtbot)
    widget.open_step(1)
    table, before = widget.annotate.given, layer.data.copy()
    for t in (0, 1):
        state.canvas.show(t, None)
        qtbot.wait(50)
        hand.point(middle(layer.data[t] == central(layer.data[t])))
        name = state.session.names(state.annotator.finder.ref(state.annotator.outlined))
        hand.key("E")
        hand.key("Return")
        assert f"Saved: frame {t}: {name} is not a cell." in widget.notice.text()
        assert name.startswith("#")
        settled(state.session, qtbot)
    qtbot.waitUntil(lambda: table.listed.rowCount() == 2)
    assert widget.next_words.text().startswith("0 of about 20 answers and 2 about masks;")
    listed = table.listed
    # The latest first, also of those that were given within a second.
    rows = [listed.data(listed.index(k)) for k in range(2)]
    assert rows == [f"− frame {t}: this is not a cell" for t in (1, 0)]
    widget.annotate.tabs.setCurrentIndex(2)
    press_row(qtbot, table, 1)
    assert state.canvas.frame == 0
    gone = layer.data.copy()
    press(qtbot, widget.annotate.remove)
    np.testing.assert_array_equal(layer.data[0], before[0])
    np.testing.assert_array_equal(layer.data[1], gone[1])
    undone(state.session, qtbot)
    # Masks are chosen again by the button, and undo brings the earlier back.
    lost = layer.data[2] == central(layer.data[2])
    layer.data[2][lost] = 0  # as if it had not been found
    state.session.tracker.measure(touched={2})
    settled(state.session, qtbot)
    before = layer.data.copy()
    qtbot.waitUntil(widget.annotate.again.isEnabled)
    press(qtbot, widget.annotate.again)
    qtbot.waitUntil(lambda: not state.session.busy("choose"))
    settled(state.session, qtbot)
    assert (layer.data[2][lost] > 0).mean() > 0.6
    hand.key("Z")
    np.testing.assert_array_equal(layer.data, before)
    settled(state.session, qtbot)


def test_a_search_shows_what_it_finds_and_can_be_left(opened, viewer, image, qtbot, monkeypatch):
    state, widget = opened
    find, source = widget.segment.find, widget.segment.source.labels
    find.method.value = "plain"
    looked, held, real = [], threading.Event(), finding.plain_frame

    def slow(job, t):
        # Frames that take less than a report are not told one by one.
        held.wait(30 if len(looked) == 2 else 0.1)
        looked.append(t)
        return real(job, t)

    def two_frames_are_shown():
        looked.clear()
        held.clear()
        find.go.click()
        qtbot.waitUntil(lambda: find_role(viewer.layers, FOUND) is not None)
        qtbot.waitUntil(lambda: len(looked) == 2)
        shown = find_role(viewer.layers, FOUND)
        assert shown.data.any() and shown not in source

    monkeypatch.setattr(finding, "plain_frame", slow)
    qtbot.wait(50)
    place = widget.stack.geometry()
    two_frames_are_shown()
    qtbot.wait(50)
    assert widget.work.isVisible() and widget.stack.geometry() == place, "nothing moves"
    press(qtbot, widget.work.stop)
    assert not state.session.busy("segment"), "it is over as soon as the button is released"
    held.set()
    qtbot.waitUntil(lambda: len(looked) == 3)
    assert find_role(viewer.layers, FOUND) is None and source.layer is None
    assert "Cancelled" in widget.notice.text()
    # Another movie that is opened ends the search, too, and says so.
    two_frames_are_shown()
    other = viewer.add_image(image + 1, name="other")
    cells = viewer.add_labels((image > np.quantile(image, 0.9)).astype(int), name="cells")
    widget.segment.source.image.choose(other)
    widget.segment.source.labels.choose(cells)
    session = state.session
    # what gives None counts as met
    both = (other, cells)
    qtbot.waitUntil(lambda: bool(session.movie and session.movie.layers == both))
    assert not session.busy("segment")
    assert "The search for the cells of “part” ended" in widget.notice.text()
    held.set()


def looked_for(state, find, qtbot):
    """The settings that cells are looked for with, once that begins; it is ended there."""
    qtbot.waitUntil(lambda: state.session.busy("segment"))
    state.session.cancel("segment")
    return find._search.finding.settings


def test_cells_are_looked_for_as_somebody_said_or_as_the_movie_says(opened, viewer, qtbot):
    state, widget = opened
    find = widget.segment.find
    find.method.value = "plain"
    # A size that is set before the estimate comes stays.
    find.go.click()
    assert state.session.busy("settings")
    find.live.setChecked(True)  # the preview waits for the estimate, too, and ends no search
    find.size.value = 31
    assert looked_for(state, find, qtbot).diameter == 31
    assert find.size.value == 31 and "31 pixels wide" in find.estimate.text()
    find.size.value = find.size.min  # left to the movie again
    find.go.click()
    assert looked_for(state, find, qtbot).diameter == pytest.approx(find.size.value, abs=0.1)
    assert find.size.min < find.size.value < 30
    find.size.value = 31
    # It is of that movie alone.
    other = viewer.add_image(viewer.layers["part"].data + 1, name="other")
    widget.segment.source.image.choose(other)
    assert find.size.native.text() == "automatic"
    find.size.value = 30
    find.size.value = find.size.min
    find.go.click()
    said = looked_for(state, find, qtbot)
    assert said.foreground == "bright" and said.diameter < 40
    assert find.estimate.text().startswith("Cells look bright")
    what_is_decided_is_what_the_command_line_decides(state, widget, viewer, qtbot)
    (slider,), share = find.split.native.findChildren(QSlider), find.split.value
    qtbot.keyClick(slider, Qt.Key.Key_PageUp)
    assert find.split.value == pytest.approx(share + 0.1, abs=0.01)
    # What was chosen under More holds until it is chosen otherwise, and is told.
    find.foreground.value = "texture"
    find.go.click()
    assert looked_for(state, find, qtbot).foreground == "texture"
    assert find.estimate.text().startswith("Cells look structured")
    widget.segment.source.image.choose(viewer.layers["part"])
    assert find.foreground.value == "texture"


def what_is_decided_is_what_the_command_line_decides(state, widget, viewer, qtbot):
    find, rods = widget.segment.find, colony(bright=True)[0][:1, 60:190, 40:180]
    movie, sizes = open_movie(rods), {}
    widget.segment.source.image.choose(viewer.add_image(rods, name="rods"))
    for way in ("jointly", "plain"):
        find.method.value = way
        find.go.click()
        found = looked_for(state, find, qtbot)
        assert found == run(Finding(choose=way).decided(movie)).settings
        assert find.size.value == round(found.diameter, 1), "as it is read when it is opened again"
        sizes[way] = found.diameter
    assert sizes["jointly"] < 0.8 * sizes["plain"], "candidates see that these are several cells"
    find.method.value = "jointly"
    find.size.value = 33
    find.go.click()
    said = Finding(SegmentationSettings(diameter=33.0), "jointly")
    assert looked_for(state, find, qtbot) == run(said.decided(movie)).settings
