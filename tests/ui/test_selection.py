"""One selection, shared by the list of doubtful events and the canvas."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from qtpy.QtWidgets import QTableWidget

from bridgetrack.annotations.annotation import Kind
from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")
LEFT = Qt.MouseButton.LeftButton


@pytest.fixture
def opened(open_short, viewer, qtbot):
    """The state of a viewer whose tracks are listed in step 4, and its panel."""
    widget = open_short()
    widget.open_step(3)
    widget.track.go.click()
    qtbot.waitUntil(lambda: widget.track.doubts.rowCount() > 5, timeout=20_000)
    return state_of(viewer), widget.track


def press(qtbot, table: QTableWidget, key: Qt.Key) -> None:
    qtbot.keyClick(table, key)
    qtbot.wait(20)


def choose(qtbot, table: QTableWidget, k: int) -> None:
    """A click on a row."""
    place = table.visualItemRect(table.item(k, 1)).center()
    qtbot.mouseClick(table.viewport(), LEFT, pos=place)
    qtbot.wait(20)


def listed(state, panel) -> tuple[str, str] | None:
    """Frame and event that the list highlights; None where nothing is."""
    marked = {i.row() for i in panel.doubts.selectedIndexes()}
    assert len(marked) <= 1
    assert marked == ({panel.doubts.currentRow()} - {-1})
    if not marked:
        return None
    [k] = marked
    return panel.doubts.item(k, 0).text(), panel.doubts.item(k, 1).text()


def settled(state, qtbot) -> None:
    qtbot.waitUntil(lambda: not state.session.busy("correct", "track"), timeout=20_000)
    qtbot.wait(100)


def keys_act_on_the_row_that_is_highlighted(opened, qtbot):
    state, panel = opened
    session, table = state.session, panel.doubts
    choose(qtbot, table, 0)
    first = state.annotator.outlined
    assert first >= 0 and listed(state, panel)[0] == str(state.canvas.frame)
    before = state.annotator.proposals[0].event
    press(qtbot, table, Qt.Key.Key_Backspace)
    settled(state, qtbot)
    assert [(a.kind, a.events[0].key) for a in session.annotations] == [(Kind.REJECT, before.key)]
    marked = table.currentRow()
    assert state.annotator.outlined == first
    assert marked < 0 or panel._rows[marked][0] == first, "the list was sorted anew"
    for k in range(4):
        press(qtbot, table, Qt.Key.Key_Down)
        assert listed(state, panel)[0] == str(state.canvas.frame)
        assert panel._rows[table.currentRow()][0] == state.annotator.outlined
        wanted = state.annotator.proposals[0].event
        press(qtbot, table, Qt.Key.Key_Return)
        settled(state, qtbot)
        assert len(session.annotations) == k + 2
        assert wanted.key in [a.events[0].key for a in session.annotations]
    assert next(iter(session.annotations)).kind == Kind.REJECT, "no answer is reversed"


def list_and_canvas_share_one_selection(opened, hand, qtbot):
    # Up and down on the image move the list and the view.
    state, panel = opened
    hand.key("Down")
    assert panel.doubts.currentRow() == 0
    places = []
    for key, k in (("Down", 1), ("Down", 2), ("Up", 1), ("Up", 0), ("Up", 0)):
        hand.key(key)
        assert panel.doubts.currentRow() == k
        assert panel._rows[k][0] == state.annotator.outlined
        assert state.canvas.frame == int(panel.doubts.item(k, 0).text())
        places.append(state.annotator.outlined)
    assert places[0] == places[2] and places[3] == places[4]
    # Pointing at a cell takes the highlight along.
    choose(qtbot, panel.doubts, 0)
    detections = state.session.scene.detections
    here = state.annotator.outlined
    frame = int(detections.frame[here])
    away = np.linalg.norm(detections.position - detections.position[here], axis=1)
    near = np.flatnonzero((detections.frame == frame) & (away > 5))
    near = near[np.argsort(away[near])]
    other = next(int(r) for r in near if (int(r), False) not in panel._rows)
    hand.point(detections.position[other])
    assert state.annotator.outlined == other
    assert listed(state, panel) is None
    hand.point(detections.position[here])
    assert panel.doubts.currentRow() == 0 or panel._rows[0][1]
    # A selected cell stays until the pointer comes to another.
    hand.point((126.0, 126.0))
    hand.key("Down")
    selected = state.annotator.outlined
    assert selected >= 0
    hand.move(hand._pixel((126.0, 126.0)))
    hand.key("Down")
    hand.key("Up")
    assert state.annotator.outlined == selected


def test_the_list_of_doubtful_events(opened, hand, qtbot):
    list_and_canvas_share_one_selection(opened, hand, qtbot)
    keys_act_on_the_row_that_is_highlighted(opened, qtbot)
