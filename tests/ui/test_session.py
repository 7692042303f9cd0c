"""Movie, answers, model and tracking of one viewer, without Qt."""

from __future__ import annotations

import numpy as np

from bridgetrack.errors import OutputError
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.session.session import Session


def test_a_failing_disk_is_told_and_loses_nothing(session, annotator, at, said, monkeypatch, row):

    def fail(*_):
        raise OutputError("the disk is full")

    monkeypatch.setattr("bridgetrack.annotations.store.AutosavingStore.edit", fail)
    annotator.click(*at(row))
    annotator.accept()
    assert ("error", "the disk is full") in said
    assert len(session.annotations) == 0


def test_layers_that_do_not_fit_are_explained(source, tmp_path):
    from dataclasses import replace

    from bridgetrack.movie import open_movie

    heard = []
    session = Session()
    session.message.connect(lambda level, words: heard.append((level, words)))
    wrong = open_movie(np.zeros((3, 10, 10)), axes="TYX")
    assert not session.open(replace(source, image=wrong), tmp_path / "a.json")
    assert heard[-1][0] == "error"
    assert "must be the same" in heard[-1][1]
    assert session.movie is None


def test_changes_of_the_model_and_of_what_can_happen_are_undone_as_answers_are(session):
    from dataclasses import replace

    first = session.model
    other = replace(first, weights=first.weights * 2.0)
    session.set_model(other)
    assert session.tracking.model is other
    session.undo()
    assert session.model is first
    assert session.tracking.model is first
    session.redo()
    assert session.model is other
    session.undo()
    session.set_kinds(EventKinds.without(("merges",)))
    session.undo()
    assert session.kinds == EventKinds() and not session.can_undo
