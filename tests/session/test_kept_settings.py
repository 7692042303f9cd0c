"""The model in use, what can happen, and a scale that was set, are there again on opening."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds
from bridgetrack.models.shipped import shipped_model
from bridgetrack.progress import run
from bridgetrack.session.kept import KeptSettings, Scale, load_settings
from bridgetrack.session.project import resume, saving
from bridgetrack.session.session import Session
from bridgetrack.session.training import Outcome

WITHOUT = EventKinds.without(["merges"])


@pytest.fixture
def path(tmp_path):
    """Where the settings of the short movie are."""
    return tmp_path / "answers.json.settings.json"


@pytest.fixture
def taught():
    """A model that learned something."""
    shipped = shipped_model()
    return replace(shipped, weights=shipped.weights * 1.01, name="taught")


@pytest.fixture
def kept(session):
    """Keeps the settings of the session, whose movie is open."""
    made = KeptSettings(session)
    assert made.restore() == ()
    return made


def opened(source, file, library):
    """The movie opened anew: its session, what keeps its settings, and what was there again."""
    session = Session(library=library)
    kept = KeptSettings(session)
    assert session.open(source, file)
    return session, kept, kept.restore()


def test_what_was_set_is_there_again(session, kept, source, taught, path, library, tmp_path):
    assert not path.exists(), "nothing was set yet"
    session.set_kinds(WITHOUT)
    session.set_model(taught, shipped_model())
    session.close()
    again, still, back = opened(source, tmp_path / "answers.json", library)
    assert back == ("the model in use", "what can happen")
    assert again.kinds == WITHOUT and again.tracking.scene is not None
    np.testing.assert_array_equal(again.model.weights, taught.weights)
    assert again.model.name == "taught"
    np.testing.assert_array_equal(again.start.weights, shipped_model().weights)
    # Set back, nothing is left of it.
    again.trainer.use(shipped_model())
    again.set_kinds(EVERYTHING)
    again.close()
    assert still.restore() == () and load_settings(path).same(load_settings(tmp_path / "none"))


def test_what_a_training_said_is_told_again(session, kept, source, taught, path, library, tmp_path):
    scene, [first, *_] = session.scene, np.flatnonzero(session.tracking.solution.chosen)
    [event] = event_refs(scene.detections, scene.hypotheses.take(np.array([first])))
    session.note(Kind.CONFIRM, event, "test")
    [answer] = session.annotations
    said = Outcome(("About 97 % are right.", "The trained weights are kept."), True, ("a",))
    session.set_model(taught, shipped_model())
    session.trainer.resume(replace(said, doubtful=(answer.id, "gone")))
    session.close()
    again, _still, back = opened(source, tmp_path / "answers.json", library)
    assert back == ("the model in use", "what came of the training")
    trainer = again.trainer
    assert trainer.results() == list(said.words) and trainer.doubtful() == list(again.annotations)
    again.set_model(shipped_model())
    assert load_settings(path).outcome is None and not trainer.results()
    again.close()


def test_opened_again_in_the_same_session_nothing_is_learned_twice(
    session, kept, source, taught, tmp_path
):
    session.set_model(taught)
    kept.set_scale(Scale((0.5, 0.5), "micrometer", 10.0))
    assert session.open(source, tmp_path / "answers.json")
    assert kept.restore() == ("the model in use",)
    assert session.model is taught
    assert not session.can_undo


def test_a_scale_is_noted_with_the_one_that_the_movie_came_with(kept, path):
    given = Scale((0.5, 0.5), "micrometer", 10.0)
    kept.set_scale(Scale((0.4, 0.4), "micrometer"))
    kept.set_scale(given)
    found = load_settings(path)
    assert found.given == given and found.read == Scale((0.645, 0.645), "micrometer")
    assert found.read.like(Scale((0.645 + 1e-12, 0.645), "micrometer"))
    assert not found.read.like(given)


def test_a_damaged_file_is_told_and_stays(session, source, path, library, tmp_path):
    path.write_text("{}")
    made = Session(library=library)
    kept = KeptSettings(made)
    assert made.open(source, tmp_path / "answers.json")
    with made.hearing() as warnings:
        assert kept.restore() == ()
        made.message.emit("info", "a remark")
    [told] = warnings
    assert path.name in told
    made.set_kinds(WITHOUT)
    kept.set_scale(Scale((1.0, 1.0), "pixel"))
    assert path.read_text() == "{}"
    made.close()


def test_a_project_has_them_and_later_ones_come_first(session, kept, source, taught, tmp_path):
    session.set_kinds(WITHOUT)
    run(saving(session, tmp_path / "movie.json"))
    assert (tmp_path / "movie.settings.json").exists()
    other = Session()
    beside = KeptSettings(other)
    assert resume(other, source, tmp_path / "movie.json") and beside.restore()
    other.set_model(taught)
    other.close()
    assert resume(other, source, tmp_path / "movie.json")
    assert beside.restore() == ("the model in use", "what can happen")
    assert other.model.name == "taught" and other.kinds == WITHOUT
    other.close()
