"""Pointing at cells makes answers, without a window."""

import numpy as np
import pytest

from bridgetrack.annotations.annotation import Kind, describe
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.library import Library
from bridgetrack.session.cells import proposals
from bridgetrack.session.session import Session
from bridgetrack.ui.annotator import Annotator
from bridgetrack.ui.picking import Mode
from session_fixtures import chosen_event


def test_a_click_is_about_the_cell_under_the_pointer(session, annotator, at, row):
    other = next(
        r
        for r in np.flatnonzero(session.scene.detections.frame == at(row)[0]).tolist()
        if r != row and proposals(session.tracking, r)
    )
    annotator.hover(*at(other))
    annotator.select(row)  # by a list, while the pointer rests on another cell
    annotator.click(*at(other))
    assert len(session.annotations) == 0 and annotator.outlined == other
    annotator.click(*at(other))
    assert len(session.annotations) == 0
    annotator.accept()
    (answer,) = session.annotations
    assert (at(other)[0], int(session.scene.detections.label[other])) in [
        c.cell for c in answer.cells
    ]
    annotator.select(row)
    annotator.set_mode(Mode.FALSE)
    annotator.click(*at(other))
    event = list(session.annotations)[-1].events[0]
    assert event.event == Event.FALSE
    assert event.cells[0].label == int(session.scene.detections.label[other])


def test_accepting_twice_is_one_answer(session, annotator, at, row):
    annotator.click(*at(row))
    assert len(session.annotations) == 0, "a click only chooses"
    annotator.accept()
    annotator.accept()
    assert len(session.annotations) == 1


def test_rejecting_changes_the_proposal_and_undo_brings_it_back(session, annotator, at, said, row):
    before = chosen_event(session.tracking, row)
    annotator.hover(*at(row))
    annotator.reject()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    after = chosen_event(session.tracking, row)
    assert after.key != before.key
    assert annotator.proposals[0].event.key == after.key
    assert "What happened instead? Press its number" in said[-1][1]
    # Pressed twice, a key says nothing of what it brought into view.
    with pytest.MonkeyPatch.context() as slow:
        slow.setattr("bridgetrack.ui.annotator.GLANCE", 1e6)
        for again in (annotator.reject, annotator.cannot_tell, annotator.accept):
            again()
    assert [a.kind for a in session.annotations] == [Kind.REJECT]
    (answer,) = session.annotations
    no = describe(answer, session.names)
    assert no.startswith("not: #")
    annotator.undo()
    assert said[-1][1] == f"Undone: {no}. Redo (R) brings it back."
    assert annotator.hint.startswith("Point at a cell")
    assert chosen_event(session.tracking, row).key == before.key
    annotator.redo()
    assert chosen_event(session.tracking, row).key == after.key


def test_every_tool_mends_the_masks_that_are_clicked(session, annotator, at, row):
    frame, place = at(row)
    label, drawn = session.masks.label_at(frame, place), []
    for mode in (Mode.REMOVE, Mode.GROW, Mode.OUTLINE):
        annotator.set_mode(mode)
        annotator.click(frame, place)
        drawn.append(session.masks.label_at(frame, place))
    assert drawn[0] == 0 and drawn[1] == drawn[2] > label
    for _ in drawn:
        annotator.undo()
    assert session.masks.label_at(frame, place) == label
    # Two that lie beside each other are one.
    pixels = session.movie.labels.channel_frame(1)
    left, right = pixels[:, :-3], pixels[:, 3:]
    y, x = np.argwhere((left > 0) & (right > 0) & (left != right))[0].tolist()
    annotator.set_mode(Mode.JOIN)
    for column in (x, x + 3):
        assert not session.masks.answers
        annotator.click(1, (float(y), float(column)))
    assert [a.kind.value for a in session.masks.answers] == ["join"]
    assert session.masks.label_at(1, (y, x)) == session.masks.label_at(1, (y, x + 3))


def test_a_contradicting_answer_replaces_the_earlier_in_one_step(session, annotator, at, said, row):
    annotator.click(*at(row))
    annotator.accept()
    other = annotator.proposals[1].event
    annotator.choose(2)
    assert [a.events[0].key for a in session.annotations] == [other.key]
    assert any("replaces" in words for _, words in said)
    annotator.undo()
    assert len(session.annotations) == 1
    assert [a.events[0].key for a in session.annotations] != [other.key]


def test_acts_at_the_wrong_moment_say_so_and_record_nothing(
    session, annotator, at, said, row, tmp_path
):
    far = tmp_path / "far.csv"
    far.write_text("track_id,frame,y,x\n1,0,9000,9000\n1,1,9000,9000\n")
    frame, place = at(row)
    later = int(np.flatnonzero(session.scene.detections.frame == 1)[0])

    def connect(*clicks):
        annotator.set_mode(Mode.MOVE)
        for click in clicks:
            annotator.click(*click)

    def take_over():
        with session.telling():
            session.edits.take_over(far)

    tracking, model = session.tracking, session.model
    for act, words in (
        (annotator.undo, "nothing to undo"),
        (annotator.accept, "Point at a cell"),
        (lambda: (annotator.set_mode(Mode.DISAPPEAR), annotator.accept()), "cell"),
        (lambda: connect(at(later), at(0)), "frame"),
        (lambda: connect((frame, place), (frame + 1, (-5.0, -5.0))), "no cell here"),
        (take_over, "far.csv"),
    ):
        annotator.set_mode(Mode.REVIEW)
        annotator.hover(0, (-5.0, -5.0))
        said.clear()
        act()
        assert said and words in said[-1][1] and said[-1][0] != "info", "it is no success"
        assert not len(session.annotations) and not session.can_undo
        assert session.tracking is tracking and session.model is model


def test_acts_without_a_movie_say_what_is_missing(tmp_path):
    session, told = Session(library=Library(tmp_path / "models")), []
    session.message.connect(lambda _, words: told.append(words))
    keys = Annotator(session)
    keys.click(0, (3.0, 3.0))
    assert told[-1] == "Choose a movie with its cells first; see step 1."
    keys.suggest()
    assert "step 1" in keys.hint and "Choose a movie" in told[-1] and len(told) == 2
    assert keys.picking.mode == Mode.REVIEW and not session.questions.engaged
    session.trainer.train()
    assert "Choose a movie" in session.trainer.problem
    for act in (session.ask, session.train, session.choose_again):
        with pytest.raises(InputError, match="no movie"):
            act()
    session.tracker.track()
    assert session.tracking is None
