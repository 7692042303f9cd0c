"""Questions about masks in a real viewer, answered with real keys and clicks."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt

from bridgetrack.active.mask_questions import MaskQuestion
from bridgetrack.progress import run
from bridgetrack.regions.mend import MendKind
from bridgetrack.ui.mask_drawing import MASK_COLOURS
from drawn_movie import drawn

pytestmark = pytest.mark.filterwarnings("ignore")
T = 1


@pytest.fixture
def state(viewer, qtbot):
    """A movie in which two cells are drawn as one in two frames, with masks asked about."""
    from bridgetrack.ui.panel import state_of

    images, labels = drawn()
    for t in (T, T + 1):
        labels[t][labels[t] == 2] = 1
    viewer.add_image(images, name="nuclei")
    viewer.add_labels(labels, name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    state.widget = widget
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    widget.open_step(1)
    state.session.questions.prepare()
    qtbot.waitUntil(lambda: state.session.questions.active is not None, timeout=60_000)
    return state


@pytest.fixture
def asked(state, hand, qtbot):
    """As `state`, with the question whether the cell is two in view."""
    questions = state.session.questions
    widget = state.widget
    hand.key("G")
    assert not widget.suggest.masks.isChecked()
    widget.suggest.masks.click()
    assert questions.masks.on
    qtbot.waitUntil(lambda: bool(questions.masks.open) and not questions.masks.busy, timeout=60_000)
    qtbot.waitUntil(lambda: not questions.busy, timeout=60_000)
    for _ in range(10):
        if isinstance(questions.current, MaskQuestion) and questions.current.kind == MendKind.CUT:
            return state
        hand.key("G")
    raise AssertionError("it is not asked")


def cells(viewer):
    return viewer.layers["cells"].data


def settled(state, qtbot):
    session = state.session
    qtbot.waitUntil(
        lambda: session.tracking is not None and not session.busy("measure", "track"),
        timeout=60_000,
    )


def outlined(state, side):
    """How many points of the canvas have the colour of a side."""
    faces = np.asarray(state.canvas.marks_layer.face_color)
    return int((np.abs(faces - MASK_COLOURS[side]) < 1e-3).all(axis=1).sum())


def test_both_masks_are_shown_and_enter_says_they_are_right(asked, viewer, hand, qtbot):
    # Both masks are shown on the canvas and in pictures.
    question, panel = asked.session.questions.current, asked.widget.suggest
    qtbot.waitUntil(lambda: panel.question.text() == "Is this one cell, or two?", timeout=20_000)
    assert "depend on it" in panel.reason.text()
    assert asked.canvas.frame == T
    assert [panel.choices.item(k).text()[:12] for k in (0, 1)] == ["1  One cell,", "2  Two cells"]
    qtbot.waitUntil(lambda: len(panel.frames.pictures) == 2, timeout=20_000)
    drawn_, instead = panel.frames.pictures
    assert (drawn_.words, instead.words) == ("one cell, as drawn", "two cells")
    assert (drawn_.pixels != instead.pixels).any()
    for side, picture in enumerate((drawn_, instead)):
        colour = (255 * np.array(MASK_COLOURS[side][:3])).astype(np.uint8)
        assert (picture.pixels == colour).all(axis=-1).sum() > 100
    assert outlined(asked, 0) > 20 and outlined(asked, 1) == 0
    hand.key("T")
    qtbot.waitUntil(lambda: outlined(asked, 1) > 20, timeout=20_000)
    assert any("two cells" in str(t) for t in asked.canvas.marks_layer.features["text"])
    assert asked.canvas.frame == T
    qtbot.mouseClick(panel.frames, Qt.MouseButton.LeftButton, pos=panel.frames._place(0).center())
    qtbot.waitUntil(lambda: outlined(asked, 1) == 0, timeout=20_000)
    assert asked.session.questions.current is question
    # Enter says they are right and the questions go on.
    before = cells(viewer).copy()
    hand.key("Return")
    np.testing.assert_array_equal(cells(viewer), before)
    [answer] = asked.session.masks.answers
    assert answer.kind == MendKind.KEEP
    questions = asked.session.questions
    qtbot.waitUntil(lambda: questions.current not in (None, question), timeout=20_000)
    for _ in range(3):
        qtbot.waitUntil(lambda: questions.current is not None, timeout=20_000)
        hand.key("U")
    assert len(asked.session.masks.answers) == 1


def test_backspace_cuts_and_z_takes_it_back(asked, viewer, hand, qtbot):
    question, before = asked.session.questions.current, cells(viewer).copy()
    n = len(asked.session.scene.detections)
    hand.key("Backspace")
    assert len(np.unique(cells(viewer)[T])) == len(np.unique(before[T])) + 1
    np.testing.assert_array_equal(np.delete(cells(viewer), T, 0), np.delete(before, T, 0))
    settled(asked, qtbot)
    assert len(asked.session.scene.detections) == n + 1
    assert asked.session.questions.current is not question
    hand.key("Z")
    np.testing.assert_array_equal(cells(viewer), before)
    assert asked.session.questions.current is question
    assert asked.annotator.asking, "the next key answers it again"
    settled(asked, qtbot)
    assert not asked.session.busy("propose") and not asked.session.proposed
    hand.key("2")
    assert len(np.unique(cells(viewer)[T])) == len(np.unique(before[T])) + 1
    settled(asked, qtbot)
    # The same is offered in the frame beside it, which is shown first.
    same = asked.widget.suggest.same
    qtbot.waitUntil(same.isVisible, timeout=20_000)
    assert same.words.text() == f"The same cut in frame {T + 1} too?"
    np.testing.assert_array_equal(cells(viewer)[T + 1], before[T + 1])
    hand.key("P")
    assert asked.canvas.frame == T + 1
    hand.key("P")
    assert len(np.unique(cells(viewer)[T + 1])) == len(np.unique(before[T + 1])) + 1
    assert not same.isVisible()
    settled(asked, qtbot)


def test_a_mask_mended_by_hand_is_no_question_any_more(asked, viewer, hand, qtbot):
    question = asked.session.questions.current
    hand.key("K")
    hand.click((21.0, 21.0))
    settled(asked, qtbot)
    qtbot.waitUntil(lambda: not asked.session.busy("propose"), timeout=20_000)
    assert asked.session.questions.current is not question


def test_looking_is_cancelled_and_turned_off(state, hand, qtbot, pace):
    hand.key("G")
    panel, masks = state.widget.suggest, state.session.questions.masks
    pace.held = True
    panel.masks.setChecked(True)
    qtbot.waitUntil(lambda: masks.busy, timeout=20_000)
    qtbot.waitUntil(panel.looking.isVisible, timeout=20_000)
    panel.masks.setChecked(False)
    assert not masks.busy and not masks.on
    pace.held = False
    qtbot.wait(50)
    assert not masks.open
    assert not isinstance(state.session.questions.current, MaskQuestion)


def test_pictures_in_three_dimensions_show_the_plane(stack):
    from bridgetrack.movie import open_labels, open_movie
    from bridgetrack.pipeline.mask_doubts import MaskDoubt
    from bridgetrack.session.movie import MovieAndCells
    from bridgetrack.ui.question_pictures import mask_picture_steps

    labels = np.asarray(stack.data)
    whole = np.flatnonzero(labels[0] == 2)
    x = np.unravel_index(whole, labels.shape[1:])[-1]
    doubt = MaskDoubt(0, labels.shape[1:], (whole,), (whole[x < 40], whole[x >= 40]), 0.4, 1, 4)
    image = open_movie(labels.astype(np.float32), axes="TZYX")
    source = MovieAndCells(open_labels(labels, axes="TZYX"), image)
    one, two = run(mask_picture_steps(source, MaskQuestion(doubt), 10.0))
    assert one.pixels.shape == two.pixels.shape and (one.pixels != two.pixels).any()
    alone = run(mask_picture_steps(MovieAndCells(source.labels), MaskQuestion(doubt), 10.0))
    assert alone[0].pixels.any(), "outlines are there without an image"
