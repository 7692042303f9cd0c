"""The model in use, what can happen, and a scale that was set, are there again on opening."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Kind
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds
from bridgetrack.models.library import SHIPPED
from bridgetrack.models.model import model_to_json, save_model, shipped_model
from bridgetrack.pipeline.project import Outcome, Scale, Settings
from bridgetrack.session.session import Session
from bridgetrack.session.training import PRESENT
from session_fixtures import load_settings

WITHOUT = EventKinds.without(["merges"])
SAID = Outcome(("About 97 % are right.", "The trained weights are kept."), True, ("a",))


@pytest.fixture
def path(tmp_path):
    """The project of the short movie."""
    return tmp_path / "answers.bridgetrack"


@pytest.fixture
def taught():
    """A model that learned something."""
    shipped = shipped_model()
    return replace(shipped, weights=shipped.weights * 1.01, name="taught", loss="bridge")


@pytest.fixture
def again(session, source, path, library):
    """Opens the movie anew, in a session of its own."""
    opened = []

    def open_again():
        session.close()
        opened.append(Session(library=library))
        assert opened[-1].open(source, path)
        return opened[-1]

    yield open_again
    for made in opened:
        made.close()


def test_what_was_set_is_there_again_and_can_be_undone(session, source, taught, path, again):
    assert not (path / "answers.json").exists(), "nothing was set yet"
    session.settings.set_kinds(WITHOUT)
    session.settings.set_model(taught, shipped_model())
    made = again()
    assert made.kinds == WITHOUT and made.tracking.scene.kinds == WITHOUT
    np.testing.assert_array_equal(made.model.weights, taught.weights)
    assert made.model.name == "taught"
    np.testing.assert_array_equal(made.settings.start.weights, shipped_model().weights)
    made.undo()
    np.testing.assert_array_equal(made.model.weights, shipped_model().weights)
    assert made.settings.start is made.model is made.tracking.model
    made.undo()
    assert made.kinds == EVERYTHING and not made.can_undo
    assert load_settings(path) == Settings()
    made.redo()
    made.redo()
    made = again()
    assert made.kinds == WITHOUT and made.model.name == "taught"
    made.close()
    given = Session(source.labels, project=path, model=replace(taught, name="given"))
    assert (given.model.name, given.kinds) == ("given", WITHOUT), "before that of the project"
    given.close()


def test_undo_takes_answers_models_and_masks_in_turn(session, taught, path, again):
    event = session.ask().event
    session.edits.note(Kind.CONFIRM, event, "click")
    session.settings.set_model(taught)
    labels = session.movie.labels.channel_frame(1)
    place = np.argwhere(labels == labels[labels > 0][0]).mean(axis=0)
    session.mend("remove", 1, tuple(place.round()))
    made = again()
    assert len(made.masks.answers) == 1 and made.answers.resumed == 2
    said = []
    made.message.connect(lambda _, words: said.append(words))
    made.undo()
    assert "Undone: frame 1: this is not a cell. Redo (R) brings it back." in said
    assert not made.masks.answers and made.model.name == "taught"
    made.undo()
    assert any(words.startswith("Undone: the choice of the model.") for words in said)
    assert made.model.name == "shipped" and len(made.annotations) == 1
    made.undo()
    assert not len(made.annotations) and not made.can_undo
    for _ in range(3):
        made.redo()
    assert len(made.annotations) == len(made.masks.answers) == 1 and made.model.name == "taught"


def test_what_a_training_said_is_told_again(session, taught, path, again):
    scene, [first, *_] = session.scene, np.flatnonzero(session.tracking.solution.chosen)
    [event] = event_refs(scene.detections, scene.hypotheses.take(np.array([first])))
    session.edits.note(Kind.CONFIRM, event, "test")
    [answer] = session.annotations
    said = replace(SAID, doubtful=(answer.id, "gone"))
    session.settings.set_model(taught, shipped_model(), outcome=said)
    made = again()
    trainer = made.trainer
    assert trainer.results() == list(said.words) and trainer.doubtful() == list(made.annotations)
    made.trainer.use("shipped")
    assert load_settings(path).training is None and not trainer.results()
    made.undo()
    assert trainer.results() == list(said.words), "the model is in use again"


def test_opened_again_nothing_is_learned_twice_and_a_scale_is_noted(session, source, taught, path):
    session.settings.set_model(taught)
    session.settings.set_scale(Scale((0.5, 0.5), "micrometer", 10.0))
    assert session.open(source, path)
    assert session.model is taught
    session.undo()
    # A scale is noted with the one that the movie came with.
    given = Scale((0.5, 0.5), "micrometer", 10.0)
    session.settings.set_scale(Scale((0.4, 0.4), "micrometer"))
    session.settings.set_scale(given)
    found = load_settings(path)
    assert found.given == given and found.read == Scale((0.645, 0.645), "micrometer")
    assert found.read.like(Scale((0.645 + 1e-12, 0.645), "micrometer"))
    assert not found.read.like(given) and not session.can_undo


def test_settings_of_earlier_versions_are_taken_over_and_damaged_ones_told(
    source, taught, path, library
):
    earlier = path.with_name("answers.settings.json")
    head = {"format": "bridgetrack-settings", "version": 1}
    kept = {"model": model_to_json(taught), "without": ["merges"], "training": asdict(SAID)}
    for content, right in (
        ({**head, **kept}, True), ({**head, "without": ["miracles"]}, False), ("{", False),
    ):  # fmt: skip
        shutil.rmtree(path, ignore_errors=True)
        earlier.write_text(content if isinstance(content, str) else json.dumps(content))
        made, heard = Session(library=library), list[tuple[str, str]]()
        made.message.connect(lambda *said, heard=heard: heard.append(said))
        assert made.open(source, path)
        warnings = [told for level, told in heard if level != "info"]
        assert (made.model.name == "taught") == (made.kinds == WITHOUT) == right
        assert bool(warnings) == (not right)
        assert all("answers" in told for told in warnings)
        made.close()


def test_models_of_the_library_are_used_and_a_damaged_one_is_told(session, said, taught, library):
    trainer = session.trainer
    assert list(trainer.models()) == [SHIPPED]
    save_model(taught, library.folder / "lab.json")
    assert list(trainer.models()) == [SHIPPED, "lab"], "nothing is chosen for the user"
    trainer.use("lab")
    assert session.model.name == "lab"
    np.testing.assert_array_equal(session.model.weights, taught.weights)
    assert list(trainer.models()) == [PRESENT, SHIPPED, "lab"]
    save_model(taught, library.folder / "bad.json").write_text("{")
    trainer.use("bad")
    assert said[-1][0] == "error" and "bad" in said[-1][1]
    assert session.model.name == "lab"
