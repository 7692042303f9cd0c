"""A sample of the tracks is checked with one key an event."""

from __future__ import annotations

import pytest
from qtpy.QtCore import Qt

from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import InputError
from bridgetrack.evaluation.sample import SampleOptions, Verdict
from bridgetrack.session.check import SampleQuestion
from bridgetrack.session.session import Session
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import state_of

pytestmark = pytest.mark.filterwarnings("ignore")


def test_in_the_window(open_short, viewer, hand, qtbot, tmp_path, monkeypatch):
    widget = open_short()
    state, questions = state_of(viewer), state_of(viewer).session.questions
    widget.open_step(3)
    box, asking = widget.track.check, widget.annotate
    monkeypatch.setattr("bridgetrack.ui.track_panel.EACH", 5)
    tracking, before = state.session.tracking, len(state.session.annotations)
    qtbot.mouseClick(box.go, Qt.MouseButton.LeftButton)
    first = questions.current
    assert isinstance(first, SampleQuestion)
    assert state.annotator.asking
    assert state.canvas.frame == first.frame
    qtbot.waitUntil(lambda: asking.question.text().startswith("Is this right?"), timeout=20_000)
    assert asking.reason.text().startswith("Number 1 of 5 drawn at random")
    assert asking.choices.isHidden(), "what the model believes would sway the answer"
    assert widget.step == 1
    assert widget.next_words.text().startswith("Look at the event in both frames")
    shown = [str(t) for t in state.canvas.overlay.marks.features["text"]]
    assert any("frame" in t for t in shown)
    assert not any("%" in t for t in shown)
    hand.key("Return")
    assert questions.current.number == 1
    hand.key("Backspace")
    qtbot.waitUntil(asking.undo.isEnabled, timeout=20_000)
    qtbot.mouseClick(asking.undo, Qt.MouseButton.LeftButton)
    assert questions.current.number == 1
    hand.key("Backspace")
    hand.key("G")
    assert questions.current.number == 3, "another one first"
    hand.key("U")
    assert asking.stop.isVisible()
    qtbot.mouseClick(asking.stop, Qt.MouseButton.LeftButton)
    assert (widget.step, questions.current) == (3, None)
    assert box.words.text() == "3 of 5 looked at."
    assert box.go.text() == "Go on checking"
    qtbot.mouseClick(box.go, Qt.MouseButton.LeftButton)
    assert questions.current.number == 2
    hand.key("Return")
    hand.key("Return")
    assert widget.step == 3
    assert not state.annotator.asking
    assert box.words.text().startswith("Links 75.0 % right (95 % interval 19.4-99.4, 4 random")
    assert state.session.tracking is tracking
    assert len(state.session.annotations) == before, "it is no answer"
    assert box.go.text() == "Check more"
    assert asking.stop.isHidden()
    widget.track.export.write(tmp_path / "out")
    methods = tmp_path / "out" / "methods.txt"
    qtbot.waitUntil(methods.is_file, timeout=20_000)
    told = " ".join(methods.read_text(encoding="utf-8").split())
    assert "How right it is: links 75.0 % right" in told
    assert "in the masks described below, with intensities:" in told


def test_the_sample_is_kept_and_belongs_to_its_tracks(table, tmp_path, source, library):
    questions, session = table.questions, table.session
    questions.check_sample(SampleOptions(3))
    for _ in range(2):
        table.annotator.accept()
    third = questions.current
    again = Session(library=library)
    assert again.open(source, session.project.path)
    assert again.questions.check.sample.verdicts == (Verdict.RIGHT, Verdict.RIGHT, Verdict.OPEN)
    again.close()
    table.annotator.accept()
    check = questions.check
    assert check.finished is not None
    assert table.annotator.picking.mode == Mode.REVIEW
    with pytest.raises(InputError, match="all 3 events were looked at already"):
        questions.check_sample(SampleOptions(3))
    questions.check_sample(SampleOptions(4))
    assert questions.current.number == 3, "a longer one goes on where the shorter one ended"
    table.annotator.accept()
    assert check.finished is not None
    session.edits.note(Kind.REJECT, third.event, "click", 1.0)
    assert check.finished is None
    assert "The tracks have changed since" in check.words
