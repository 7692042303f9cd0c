"""Training again starts where the first training started, so that answers count once."""

import numpy as np
import pytest

from bridgetrack.annotations.history import AnswerChange
from bridgetrack.models.model import shipped_model
from bridgetrack.ui.picking import Mode


@pytest.fixture
def answered(session, annotator, at, row):
    """The short movie with a slip and some right answers."""
    tracking = session.tracking
    h = tracking.scene.hypotheses
    annotator.set_mode(Mode.MOVE)
    right = next(int(c) for c in np.flatnonzero(tracking.solution.chosen) if h.sources[c, 0] == row)
    rivals = h.targets[(h.event == h.event[right]) & (h.sources[:, 0] == row), 0]
    annotator.click(*at(row))
    annotator.click(*at(int(next(r for r in rivals if r != h.targets[right, 0]))))
    annotator.set_mode(Mode.REVIEW)
    later = session.scene.detections.frame > session.scene.detections.frame[row] + 1
    for other in np.flatnonzero(later)[::40][:4].tolist():
        annotator.select(other)
        annotator.accept()
    return session


def test_training_twice_is_training_once(answered):
    answered.trainer.train()
    first = answered.model
    assert first is not answered.settings.start
    assert "again from the shipped model" in answered.trainer.begins
    answered.trainer.train()
    np.testing.assert_array_equal(answered.model.weights, first.weights)


def test_nothing_is_left_of_a_slip_that_was_taken_back(answered):
    answered.trainer.train()
    slipped = answered.model
    answered.answers.edit(AnswerChange(removed=(next(iter(answered.annotations)),)))
    answered.trainer.train()
    mended = answered.model
    assert not np.allclose(mended.weights, slipped.weights)
    answered.settings.set_model(shipped_model())
    answered.trainer.train()
    np.testing.assert_array_equal(answered.model.weights, mended.weights)


def test_the_next_movie_starts_from_what_this_one_taught(answered, source, tmp_path):
    answered.trainer.train()
    trained, start = answered.model, answered.settings.start
    assert start is not trained
    answered.settings.set_model(shipped_model())
    answered.undo()
    assert (answered.model, answered.settings.start) == (trained, start)
    path = answered.project.path
    assert answered.open(source, tmp_path / "next.json")
    assert answered.model is trained
    assert answered.settings.start is trained
    answered.settings.set_model(shipped_model())
    answered.undo()
    assert answered.settings.start is trained, "going back keeps what the other movie taught"
    assert answered.open(source, path)
    assert answered.settings.start is start, "the same answers again"
