"""Suggest next in a real viewer, answered with real keys on the real canvas."""

import re
from dataclasses import replace

import numpy as np
import pytest
from qtpy.QtCore import QTimer
from qtpy.QtWidgets import QApplication, QFileDialog, QLineEdit

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import load_model, save_model
from bridgetrack.session.cells import question_words, shown_diameter
from bridgetrack.training.estimate import estimate_accuracy
from bridgetrack.ui.layers import camera_of
from bridgetrack.ui.looks import LOOKS
from bridgetrack.ui.picking import Mode
from bridgetrack.ui.state import state_of
from session_fixtures import FRAMES
from window import press, settled, texts_on, undone


@pytest.fixture
def state(open_short, viewer, qtbot):
    """A state whose first questions are there, with the keys on the canvas."""
    widget = open_short()
    state = state_of(viewer)
    state.widget = widget
    widget.open_step(1)
    state.session.questions.prepare()
    qtbot.waitUntil(lambda: bool(state.session.questions.active.queue))
    return state


@pytest.mark.slow
def test_questions_in_the_window(state, hand, viewer, qtbot, tmp_path, monkeypatch):
    the_view_before_the_questions_comes_back(state, hand, viewer, qtbot)
    for part in (
        the_queue_goes_on_while_it_learns,
        one_question_at_a_time_and_undo_says_what_it_takes,
        a_sample_of_the_tracks_is_checked,
        a_question_is_shown_left_come_back_to_and_ended,
    ):
        hand.key("Escape")
        undone(state.session, qtbot)
        state.widget.open_step(1)
        hand.key("G")
        assert state.session.questions.current is not None
        part(state, hand, viewer, qtbot, tmp_path, monkeypatch)


def the_view_before_the_questions_comes_back(state, hand, viewer, qtbot):
    # Without a choice or a question, Yes and No say what is missing.
    panel, notice = state.widget.annotate, state.widget.notice
    state.annotator.point_at(-1)
    for name in ("accept", "reject", "unsure"):
        notice.say("", "")
        press(qtbot, panel.actions[name])
        assert notice.isVisible() and notice.text().startswith("Point at a cell"), name
    assert not len(state.session.annotations)
    camera = camera_of(viewer)

    def view():
        return *camera.center[-2:], camera.zoom, viewer.dims.current_step[0]

    def look(frame):
        viewer.dims.set_point(0, frame)
        camera.center, camera.zoom = (0.0, 70.0, 50.0), 3.0
        qtbot.wait(30)
        return view()

    before = look(4)
    hand.key("G")
    hand.key("Return")
    assert view() != before
    press(qtbot, state.widget.annotate.stop)
    assert view() == pytest.approx(before)
    # The same where the last question was answered.
    before = look(2)
    hand.key("G")
    assert view() != before
    questions = state.session.questions
    with pytest.MonkeyPatch.context() as last:
        last.setattr(questions, "_next", lambda: None)
        last.setattr(questions, "_update", lambda: setattr(questions, "problem", "none"))
        hand.key("U")
    qtbot.waitUntil(lambda: view() == pytest.approx(before))


def the_queue_goes_on_while_it_learns(asked, hand, viewer, qtbot, *_):
    panel, window = asked.widget.annotate, asked.widget.window()
    yes, lengths = panel.actions["accept"], set()
    qtbot.waitUntil(panel.question.isVisible)
    qtbot.wait(100)
    place = yes.mapTo(window, yes.rect().center())
    for tool in panel.modes.values():  # nor does another tool move it, however long its hint
        tool.click()
        qtbot.wait(50)
        assert yes.mapTo(window, yes.rect().center()) == place, tool.text()
    hand.key("G")
    for k in range(9):
        qtbot.waitUntil(lambda: asked.session.questions.current is not None)
        qtbot.wait(50)
        # The mouse stays where it is: Yes is below it at every question, however long.
        lengths.add(len(panel.question.text() + panel.hint.text()))
        assert yes.mapTo(window, yes.rect().center()) == place
        assert window.childAt(place) is yes
        press(qtbot, yes)
        assert len(asked.session.annotations) == k + 1
    assert len(lengths) > 2
    qtbot.waitUntil(lambda: not asked.session.questions.busy)
    asked.widget.open_step(2)
    train = asked.widget.train
    assert "9 questions answered" in train.verdict.text()
    assert "at least 8 are needed to say how accurate it is" in train.verdict.text()
    assert not train.plot.isVisible()
    known = estimate_accuracy(np.zeros(40), np.ones(40), np.zeros(40))
    asked.session.questions.active.curve |= {30: known, 40: known}
    asked.session.questions.changed.emit()
    qtbot.waitUntil(train.plot.isVisible)
    line = train.plot.listDataItems()[-1]
    assert line.getData()[0].tolist() == [30, 40] and line.getData()[1].tolist() == [100, 100]


def one_question_at_a_time_and_undo_says_what_it_takes(
    asked, hand, viewer, qtbot, tmp_path, monkeypatch
):
    panel, questions = asked.widget.annotate, asked.session.questions
    for _ in range(20):
        if questions.current.alternatives:
            break
        hand.key("G")
    first, names = questions.current, asked.session.names
    qtbot.waitUntil(panel.question.isVisible)
    # The question and the first of the list are about the same cell, in the same words.
    listed = panel.choices.item(0).text().split("  ")[-1].rpartition(":")[0]
    cell = f"{names(first.asked)} in frame {first.asked.frame}"
    assert panel.question.text() == f"Is this right? {cell} {listed}."
    image = asked.viewer.layers[0]
    asked.viewer.layers.selection.active = image  # whose own keys choose its tools
    assert panel.choices.item(0).text().split("  ")[0] == LOOKS[first.event.event].sign
    press(qtbot, panel.actions["reject"])
    qtbot.waitUntil(lambda: "instead?" in panel.question.text())
    assert questions.current is first and cell in panel.question.text()
    lines = [panel.choices.item(k).text() for k in range(panel.choices.count())]
    assert [line.split()[0] for line in lines] == [
        str(k) for k in range(2, 2 + len(first.alternatives))
    ]
    assert not panel.actions["accept"].isEnabled()
    qtbot.waitUntil(lambda: "What happened instead?" in texts_on(asked))
    line = panel.choices.visualItemRect(panel.choices.item(0)).center()
    press(qtbot, panel.choices.viewport(), line)
    assert [a.events[0].key for a in asked.session.annotations] == [first.alternatives[0].key]
    qtbot.waitUntil(lambda: "Is this right" in panel.question.text())
    a_cell_keeps_its_name_in_the_question_after_a_no(asked, hand, qtbot)
    # Training is a step of its own, and is called so before it is taken back.
    asked.widget.open_step(2)
    press(qtbot, asked.widget.train.go)
    qtbot.waitUntil(lambda: asked.session.model.trained)
    train, models = asked.widget.train, asked.widget.train.choice

    def type_a_name():
        dialog = QApplication.activeModalWidget()
        dialog.findChild(QLineEdit).setText("my model")
        dialog.accept()

    QTimer.singleShot(200, type_a_name)
    assert "save" in models.itemText(models.count() - 1)
    models.activated.emit(models.count() - 1)
    file = train.trainer.library.folder / "my model.json"
    assert load_model(file).name == "my model" and models.findText("my model") > 0
    assert models.currentIndex() == 0, "the model in use"
    # It is not called learned unless that is known.
    said, outcome = asked.widget.next_words, asked.session.trainer.outcome
    assert said.text().startswith("Trained.") and outcome.better is None
    asked.session.settings.describe_model(asked.session.model, replace(outcome, better=False))
    asked.session.trainer.changed.emit()
    assert said.text().startswith("Worse than before on held-out answers")
    press(qtbot, asked.widget.tabs[1])
    press(qtbot, panel.undo)
    assert "Undone: training." in asked.widget.notice.text()
    assert len(asked.session.annotations) == 1
    asked.widget.open_step(2)
    other = replace(load_model(file), name="trained")
    save_model(other, tmp_path / "lab.json")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(tmp_path / "lab.json"), ""))
    models.activated.emit(models.count() - 2)
    assert models.itemText(0) == "the model in use (lab)"


def a_cell_keeps_its_name_in_the_question_after_a_no(asked, hand, qtbot):
    panel, questions, session = asked.widget.annotate, asked.session.questions, asked.session
    for _ in range(60):
        first, before = questions.current, session.tracking
        qtbot.wait(50)
        if first.kind != Event.MOVE or not first.alternatives:
            hand.key("G")
            continue
        [name] = re.findall(r"#\d+", panel.question.text())[:1]
        hand.key("Backspace")
        noted = asked.widget.notice.text()
        qtbot.waitUntil(lambda before=before: session.tracking is not before)
        qtbot.wait(50)
        if session.names(first.asked) != name:
            break
        hand.key("Z")
        settled(session, qtbot)
        hand.key("G")
    assert session.names(first.asked) != name, "it has another track now"
    assert name in panel.question.text() and "instead?" in panel.question.text()
    # What is undone is called as it was noted.
    hand.key("Z")
    undone = asked.widget.notice.text()
    assert undone.startswith(noted.replace("Saved", "Undone").removesuffix("."))
    settled(session, qtbot)
    assert questions.current is first


def a_sample_of_the_tracks_is_checked(state, hand, viewer, qtbot, tmp_path, monkeypatch):
    widget, questions = state.widget, state.session.questions
    hand.key("Escape")
    widget.open_step(3)
    box, asking = widget.track.check, widget.annotate
    monkeypatch.setattr("bridgetrack.ui.track_panel.EACH", 5)
    tracking, before = state.session.tracking, len(state.session.annotations)
    qtbot.waitUntil(lambda: "Tracks" in viewer.layers)
    lines = viewer.layers["Tracks"]
    press(qtbot, box.go)
    assert not lines.visible, "they would sway the answer"
    first = questions.current
    assert first.sampled
    assert state.annotator.asking
    assert state.canvas.frame == first.frame
    qtbot.waitUntil(lambda: asking.question.text().startswith("Is this right?"))
    assert asking.hint.text().startswith("Number 1 of 5 drawn at random")
    assert asking.choices.isHidden(), "what the model believes would sway the answer"
    assert widget.step == 1
    assert widget.next_words.text().startswith("Look at the event in both frames")
    shown = texts_on(state)
    assert any("frame" in t for t in shown)
    assert not any("%" in t for t in shown)
    hand.key("Return")
    assert questions.current.number == 1
    hand.key("Backspace")
    qtbot.waitUntil(asking.undo.isEnabled)
    press(qtbot, asking.undo)
    assert questions.current.number == 1
    hand.key("Backspace")
    hand.key("U")
    assert asking.stop.isVisible()
    press(qtbot, asking.stop)
    assert (widget.step, questions.current) == (3, None)
    assert box.words.text() == "3 of 5 judged." and lines.visible
    lines.visible = False
    assert box.go.text() == "Go on checking"
    press(qtbot, box.go)
    assert questions.current.number == 3
    hand.key("Return")
    hand.key("Return")
    assert widget.step == 3
    assert not state.annotator.asking and not lines.visible, "they are as they were"
    lines.visible = True
    assert box.words.text().startswith("75.0 % of the links are correct (95 % confidence")
    assert state.session.tracking is tracking
    assert len(state.session.annotations) == before, "it is no answer"
    assert box.go.text() == "Check more"
    assert asking.stop.isHidden()
    widget.track.export.write(tmp_path / "out")
    methods = tmp_path / "out" / "methods.txt"
    qtbot.waitUntil(methods.is_file)
    written = " ".join(methods.read_text(encoding="utf-8").split())
    assert "75.0 % of the links are correct" in written


def a_question_is_shown_left_come_back_to_and_ended(
    asked, hand, viewer, qtbot, tmp_path, monkeypatch
):
    # G goes to the event.
    question, widget = asked.session.questions.current, asked.widget
    assert widget.step == 1
    said = question_words(question, asked.session.names)
    qtbot.waitUntil(lambda: widget.annotate.question.text() == said)
    assert " #" in said
    assert widget.annotate.choices.count() == 1 + len(question.alternatives)
    assert asked.canvas.frame == question.frame
    middle = np.array(question.position[-2:]) * 0.645
    near = 3 * shown_diameter(asked.session.scene.detections) * 0.645
    assert np.abs(camera_of(viewer).center[-2:] - middle).max() < near
    assert viewer.layers.selection.active is asked.canvas.overlay.events
    qtbot.waitUntil(lambda: any("frame" in text for text in texts_on(asked)))
    strip = widget.annotate.frames
    qtbot.waitUntil(lambda: len(strip.pictures) > 0)
    assert [p.frame for p in strip.pictures] == [question.frame, question.last_frame]
    for k, frame in ((1, question.last_frame), (0, question.frame)):
        press(qtbot, strip.buttons[k])
        assert [b.isChecked() for b in strip.buttons] == [k == 0, k == 1]
        assert asked.canvas.frame == frame, "a click on a picture shows its frame"
        qtbot.wait(50)
        assert len(asked.canvas.overlay.marks.data) > 5, "cells are outlined in either frame"
    hand.key("G")
    # G comes back from another frame, and escape ends it.
    question = asked.session.questions.current
    far = (question.frame + 3) % FRAMES
    viewer.dims.set_point(0, far)
    qtbot.wait(30)
    assert asked.canvas.frame == far
    hand.key("G")
    assert asked.session.questions.current is question
    assert asked.canvas.frame == question.frame
    camera = camera_of(viewer)
    camera.zoom = camera.zoom / 2
    zoom = camera.zoom
    # Who presses a key twice has not seen what comes then.
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr("bridgetrack.ui.annotator.GLANCE", 1e6)
        hand.key("Return")
        assert "Look at it first" in asked.widget.notice.text()
        assert not len(asked.session.annotations)
    hand.key("Return")
    assert camera.zoom == zoom, "the zoom chosen stays"
    assert len(asked.session.annotations) == 1
    hand.key("Escape")
    assert asked.annotator.picking.mode == Mode.REVIEW
    hint = asked.widget.annotate.hint
    qtbot.waitUntil(lambda: "Point at a cell" in hint.text())
    hand.key("Z")
    # Deleting the overlay is survived deleting the cells ends it.
    viewer.layers.remove(asked.canvas.overlay.events)
    qtbot.wait(30)
    asked.widget.annotate.next.click()
    assert asked.canvas.overlay.events in viewer.layers
    hand.key("Return")
    assert len(asked.session.annotations) == 1
    viewer.layers.remove("cells")
    qtbot.waitUntil(lambda: asked.session.movie is None)
    assert asked.session.questions.current is None
    hint = asked.widget.annotate.hint
    qtbot.waitUntil(lambda: "Choose a movie" in hint.text())
    assert not len(asked.canvas.overlay.marks.data), "nothing of it is left on the image"
    viewer.dims.ndisplay = 3  # frames as a volume: drawing that raises nothing
    qtbot.wait(100)
