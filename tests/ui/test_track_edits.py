"""Tracks are verified, deleted, cut and taken over by keys and clicks."""

import numpy as np
import pytest
from qtpy.QtWidgets import QFileDialog

import bridgetrack as bt
from bridgetrack.annotations.annotation import CellRef, EventRef, Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.tracks.table import verified_tracks
from bridgetrack.ui.picking import Mode
from window import plugin, press, settled, texts_on, tracked

PLACES = ((12, 12), (12, 44), (44, 24))
FRAMES = 5


@pytest.fixture
def labels():
    """Three cells that stand still."""
    made = np.zeros((FRAMES, 60, 60), dtype=np.uint16)
    for k, (y, x) in enumerate(PLACES, 1):
        made[:, y - 5 : y + 6, x - 5 : x + 6] = k
    return made


def test_tracks_are_edited_by_keys_and_clicks(labels, viewer, hand, qtbot, tmp_path, monkeypatch):
    viewer.add_labels(labels, name="cells")
    state, widget = plugin(viewer)
    session = state.session
    tracked(session, qtbot)
    widget.open_step(1)

    def track(t, k):
        return session.names.track(CellRef(t, k + 1, tuple(map(float, PLACES[k]))))

    def act(mode, *clicks, shift=False):
        press(qtbot, widget.annotate.modes[mode])
        before = session.annotations
        for t, k in clicks:
            state.canvas.show(t, None)
            assert session.annotations is before, "it takes all clicks"
            hand.click(PLACES[k], shift=shift)
        settled(session, qtbot)

    notice = widget.notice
    # A button alone says nothing; a click verifies, and the name has a tick on the image.
    act(Mode.VERIFY)
    assert state.annotator.picking.mode == Mode.VERIFY and not len(session.annotations)
    assert widget.annotate.modes[Mode.VERIFY].isChecked()
    act(Mode.VERIFY, (1, 0))
    assert verified_tracks(session.tracking.tracks) == {track(0, 0)}
    hand.key("Escape")
    hand.point(PLACES[0])
    assert any(t.startswith(f"#{track(0, 0)}✓ ") for t in texts_on(state))
    # It is locked: against edits, and against single answers.
    kept = session.annotations
    act(Mode.FALSE, (2, 0), shift=True)
    assert "locked" in notice.text() and session.annotations is kept
    qtbot.wait(50)
    seen = notice.visibleRegion().boundingRect()
    assert seen == notice.rect(), "what is said is in view, however long the step is"
    hand.key("Escape")
    hand.point(PLACES[0])
    hand.key("Backspace")
    assert "locked" in notice.text() and session.annotations is kept
    act(Mode.VERIFY, (3, 0))
    assert not len(session.annotations), "released"
    # Deleted, and there again by one Undo.
    act(Mode.FALSE, (2, 0), shift=True)
    assert track(0, 0) == track(4, 0) == 0
    assert "nothing in track" in notice.text()
    hand.key("Z")
    assert notice.text().startswith("✓ Undone: ")
    settled(session, qtbot)
    assert track(0, 0) == track(4, 0) > 0
    # Taken over from a file of another program, and one that is none is told.
    other = bt.Session(labels)
    ends = [CellRef(t, 2, tuple(map(float, PLACES[1]))) for t in (1, 2)]
    link = EventRef(Event.MOVE, (ends[0],), (ends[1],))
    other.edits.note_all([(Kind.REJECT, link)], "click", "")
    other.tracking.save(tmp_path / "other")
    chosen = [tmp_path / "other" / "units.json", tmp_path / "other" / "detections.csv"]
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(chosen.pop(0)), ""))
    widget.annotate.take_over.click()
    qtbot.waitUntil(lambda: "no tracks are known" in notice.text())
    assert not len(session.annotations)
    widget.annotate.take_over.click()
    qtbot.waitUntil(lambda: len(session.annotations) > 0)
    settled(session, qtbot)
    assert track(1, 1) != track(2, 1)
    assert "Imported from detections.csv: 1 event has changed" in notice.text()
