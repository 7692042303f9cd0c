"""Masks mended with real keys and clicks on the real canvas."""

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.regions.mend import MendKind, pixels_of
from bridgetrack.ui.picking import Mode, Picking
from window import middle, plugin, settled, texts_on, tracked, undone

SCALE = 0.645
T, FRAMES = 1, slice(1, 4)


def begun(*clicks, mode=Mode.CUT):
    """What is picked after clicks at places of labels, and the places of the last."""
    state, places = Picking(mode), ()
    for frame, y, label in clicks:
        places = state.point(frame, (y, 6.0), label)
    return state, places


def test_a_cut_is_a_click_on_a_cell_or_a_line_beside_it():
    assert begun((3, 5.0, 12))[1] == ((5.0, 6.0),)
    line = (3, 5.0, 0)
    waiting, _ = begun(line)
    assert not waiting.empty and "other side" in waiting.hint
    assert begun(line, (3, 9.0, 12)) == (Picking(Mode.CUT), ((5.0, 6.0), (9.0, 6.0)))
    elsewhere, places = begun(line, (4, 9.0, 0))
    assert places == () and elsewhere.place == (4, (9.0, 6.0))
    assert Picking(Mode.CUT).click(None) is None
    with pytest.raises(InputError, match="no cell here"):
        begun((3, 5.0, 0), mode=Mode.JOIN)


@pytest.fixture
def pair(whole_pixels):
    """Two touching cells in the middle of three frames of the sample."""
    labels = whole_pixels[1][FRAMES]
    a, b = labels[T][:, :-3], labels[T][:, 3:]
    for y, x in np.argwhere((a > 0) & (b > 0) & (a != b)):
        found = int(a[y, x]), int(b[y, x])
        if max(abs(y - 196), abs(x - 196)) < 130 and all(
            (labels[t] == k).sum() > 120 for t in range(T - 1, T + 2) for k in found
        ):
            return found
    raise AssertionError("no two cells touch")


@pytest.fixture
def opened(viewer, qtbot, whole_pixels, pair):
    """The state of a viewer in which two cells are drawn as one, with step 2 open in frame T."""
    image, truth = (frames[FRAMES] for frames in whole_pixels)
    labels = truth.copy()
    part = labels[T - 1 : T + 2]
    part[part == pair[1]] = pair[0]
    viewer.add_image(image, name="short", scale=(1, SCALE, SCALE))
    viewer.add_labels(labels, name="cells", scale=(1, SCALE, SCALE))
    state, widget = plugin(viewer)
    tracked(state.session, qtbot)
    widget.open_step(1)
    state.canvas.show(T, None)
    qtbot.wait(50)
    return state, widget, truth


def cells(viewer):
    return viewer.layers["cells"].data


def enter_cuts_the_cell_under_the_pointer(opened, viewer, hand, qtbot, pair):
    state, widget, truth = opened
    session, before = state.session, cells(viewer).copy()
    n = len(session.scene.detections)
    shown = viewer.layers["cells"]._slice.image.raw.copy()
    hand.point(SCALE * middle(truth[T] == pair[0]))
    hand.key("K")
    np.testing.assert_array_equal(cells(viewer), before, "the key only says what is meant")
    assert any("Two cells? [Enter]" in text for text in texts_on(state))
    hand.key("Return")
    assert "Saved: frame 1: these are two cells." in widget.notice.text()
    after = cells(viewer)[T].copy()
    for cell in pair:
        there = truth[T] == cell
        best = max(((after == k) & there).sum() / ((after == k) | there).sum()
                   for k in np.unique(after[there]) if k)  # fmt: skip
        assert best > 0.6
    assert (viewer.layers["cells"]._slice.image.raw != shown).any(), "shown at once"
    settled(state.session, qtbot)
    assert len(session.scene.detections) == n + 1
    assert state.annotator.picking.mode == Mode.CUT
    assert widget.annotate.modes[Mode.CUT].isChecked()
    hand.key("Z", control=True)
    np.testing.assert_array_equal(cells(viewer), before)
    hand.key("R")
    np.testing.assert_array_equal(cells(viewer)[T], after)
    settled(state.session, qtbot)


def all_in_view_is_right(opened, viewer, hand, qtbot, pair):
    # What cannot be done is said and nothing changes.
    state, widget, truth = opened
    before = cells(viewer).copy()
    hand.key("N")
    empty = np.argwhere(cells(viewer)[T][60:330, 60:330] == 0)[0] + 60
    taken = np.argwhere(cells(viewer)[T][60:330, 60:330] > 0)[0] + 60
    hand.click(SCALE * taken)
    assert "here is the mask of" in widget.notice.text()
    hand.point(SCALE * empty)
    hand.key("E")
    hand.click(SCALE * empty)
    assert "no cell" in widget.notice.text()
    np.testing.assert_array_equal(cells(viewer), before)
    assert not state.session.can_undo
    hand.key("Escape")
    # All in view is right at enter and not before.
    session = state.session
    viewer.camera.center = (0.0, *(SCALE * np.array(truth.shape[-2:]) / 2))
    viewer.camera.zoom = 1.7 * viewer.camera.zoom
    qtbot.wait(50)
    (top, left), (bottom, right) = state.canvas.area
    assert 0 < top < bottom < truth.shape[-2] - 1 and 0 < left < right < truth.shape[-1] - 1
    assert (bottom - top) * (right - left) < 0.7 * truth[0].size
    hand.key("I")
    assert not session.masks.answers, "the key only says what is meant"
    assert "no cell is missing" in widget.annotate.hint.text()
    hand.key("Return")
    [answer] = session.masks.answers
    assert answer.kind == MendKind.CHECK and answer.frame == T
    labels = cells(viewer)[T]
    seen = np.zeros(labels.shape, dtype=bool)
    seen[round(top) : round(bottom) + 1, round(left) : round(right) + 1] = True
    whole = set(np.unique(labels[seen])) - set(np.unique(labels[~seen])) - {0}
    assert {int(labels.ravel()[runs[0][0]]) for runs in answer.right} == whole
    assert session.masks.answers.checked == len(whole) > 3
    told = widget.notice.text()
    assert str(len(whole)) in told and "16 more" in told
    hand.key("Z", control=True)
    assert not session.masks.answers


def what_is_painted_is_an_answer(opened, viewer, hand, qtbot, pair):
    state, layer = opened[0], viewer.layers["cells"]
    spot = tuple(int(k) for k in np.argwhere(layer.data[T] == 0)[1000])
    new = int(layer.data.max()) + 1
    viewer.layers.selection.active = layer
    layer.mode = "paint"
    layer.selected_label, layer.brush_size = new, 7
    layer.paint((T, *spot), new)
    painted = np.flatnonzero(layer.data[T] == new)
    qtbot.waitUntil(lambda: state.session.masks.answers.past != ())
    [answer] = state.session.masks.answers
    assert answer.kind == MendKind.PAINT and len(painted) > 20
    assert "Saved: frame 1: these masks are right." in opened[1].notice.text()
    assert any(np.array_equal(pixels_of(p), painted) for p in answer.right)
    settled(state.session, qtbot)
    layer.undo()
    qtbot.waitUntil(lambda: state.session.masks.answers.past == ())
    assert "Undone: frame 1: these masks are right." in opened[1].notice.text()


def the_outline_of_another_layer_is_taken(opened, viewer, hand, qtbot, pair):
    state, widget, truth = opened
    place, before = SCALE * middle(truth[T] == pair[0]), cells(viewer).copy()
    state.canvas.show(T, None)
    hand.key("O")
    hand.click(place, shift=True)
    assert "No other visible layer of masks" in widget.notice.text()
    other = viewer.add_labels(truth.copy(), name="others", scale=(1, SCALE, SCALE))
    state.canvas.activate()
    hand.click(place, shift=True)
    np.testing.assert_array_equal(cells(viewer)[T] == pair[0], truth[T] == pair[0])
    qtbot.waitUntil(lambda: state.session.masks.answers.past != ())
    [answer] = state.session.masks.answers
    assert answer.kind == MendKind.PAINT and answer.frame == T
    hand.key("Z")
    np.testing.assert_array_equal(cells(viewer), before)
    viewer.layers.remove(other)


@pytest.mark.slow
def test_masks_are_mended_by_keys_clicks_and_brushes(opened, viewer, hand, qtbot, pair):
    for part in (
        enter_cuts_the_cell_under_the_pointer,
        all_in_view_is_right,
        what_is_painted_is_an_answer,
        the_outline_of_another_layer_is_taken,
    ):
        part(opened, viewer, hand, qtbot, pair)
        undone(opened[0].session, qtbot)
        opened[0].canvas.activate()
        hand.key("Escape")
