"""Answers about events and about masks are deleted and brought back together."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.annotations.annotation import Kind
from bridgetrack.session.proposals import chosen_event
from drawn_movie import drawn

T = 1


@pytest.fixture
def answered(tmp_path: Path):
    """A session opened again on a movie with an answer of each kind; its labels before."""
    images, truth = drawn()
    path = tmp_path / "cells.annotations.json"
    first = bt.Session(truth.copy(), images, answers=path)
    row = first.scene.detections.row_of(0, 3)
    first.note(Kind.CONFIRM, chosen_event(first.tracking, row), "click")
    first.mend("remove", T, (65.0, 70.5))
    first.close()
    made = bt.Session(truth.copy(), images, answers=path)
    assert len(made.annotations) == len(made.masks.answers) == made.resumed - 1 == 1
    yield made, truth
    made.close()


def frame(session) -> np.ndarray:
    return np.asarray(session.movie.labels.channel_frame(T))


def test_answers_are_deleted_with_those_about_masks(answered) -> None:
    session, _ = answered
    session.mend("outline", T, (61.0, 24.5))
    cell = session.scene.detections.row_of(T, 3)
    event = chosen_event(session.tracking, cell)
    session.note(Kind.CONFIRM, event, "click")
    before, outlined = len(session.masks.answers), frame(session)
    events = [a.id for a in session.annotations if a.events[0].key == event.key]
    session.remove(events, [session.masks.answers.past[-1].id])
    assert len(session.masks.answers) == before - 1
    assert not [a for a in session.annotations if a.events[0].key == event.key]
    assert (frame(session) != outlined).any()
    session.undo()
    assert len(session.masks.answers) == before
    assert [a for a in session.annotations if a.events[0].key == event.key]
    np.testing.assert_array_equal(frame(session), outlined)
