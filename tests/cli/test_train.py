"""Weights from answers, alone and with earlier movies and models."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.files import load_annotations, save_annotations
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.library import ENVIRONMENT
from bridgetrack.models.model import load_model, save_model, untrained_model
from cli.conftest import project_of
from project_files import write_project


@pytest.fixture
def project(truth, clicks, tmp_path):
    """A project of the small movie with answers."""
    return project_of(truth, clicks, tmp_path / "earlier.bridgetrack")


def test_answers_to_a_model_that_tracks(run, movie, truth, clicks, tmp_path):
    model, plain = tmp_path / "m.json", untrained_model()
    # the answers contradict weights that would have no cell move
    turned = np.where(np.array(plain.keys) == "move.bias", -5.0, plain.weights)
    start = save_model(replace(plain, weights=turned), tmp_path / "start.json")
    given = (truth, "--image", movie / "01", "--annotations", clicks, "--out", model)
    record = run("train", *given, "--prior", start, "--lambda", 0.1, "--json").json
    assert record["annotations"] > 0 and record["gap"] is not None
    assert (record["lambda"], record["prior"]) == (0.1, str(start))
    for change in record["changes"].values():
        assert change["after"] - change["before"] == change["gained"] - change["lost"]
    trained = load_model(model)
    assert not np.array_equal(trained.weights, turned)
    tracked = run("track", truth, "--model", model, "--out", tmp_path / "out", "--json")
    assert tracked.json["model"]["name"] == trained.name


def test_unusual_answers_are_named(run, truth, clicks, tmp_path):
    said = load_annotations(clicks)
    moves = [a for a in said if a.events[0].event == Event.MOVE]
    one = moves[0]
    frame = one.events[0].sources[0].frame
    other = next(a for a in moves[1:] if a.events[0].sources[0].frame == frame)
    slips = {
        a.id: replace(a, events=(replace(a.events[0], targets=b.events[0].targets),))
        for a, b in ((one, other), (other, one))
    }
    save_annotations(AnnotationSet(said.geometry, (slips.get(a.id, a) for a in said)), clicks)
    words = ("train", truth, "--annotations", clicks, "--out", tmp_path / "m.json", "--json")
    assert set(run(*words).json["unusual"]) == set(slips)


# ------------------------------------------------------------------ earlier movies and models


def test_an_earlier_project_helps(run, truth, clicks, project, tmp_path):
    given = (truth, "--annotations", project, "--out", tmp_path / "own.json")
    run("train", *given)  # the answers of a project, as any others
    model = tmp_path / "m.json"
    given = (truth, "--annotations", clicks, "--out", model, "--source", project)
    record = run("train", *given, "--lambda", 0.1, "--json").json
    assert (record["strategy"], record["prior"]) == ("transfer", "shipped")
    assert record["sources"] == ["TRA (25 annotations)"]
    assert load_model(model).provenance["sources"] == record["sources"]


def test_a_model_is_the_start_by_its_file_and_its_name(
    run, truth, clicks, project, tmp_path, monkeypatch
):
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "library"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(project, "my nuclei.bridgetrack")  # of the same name, but for its ending
    file = save_model(untrained_model(), tmp_path / "source.json")
    (tmp_path / "library").mkdir()
    shutil.copy(file, tmp_path / "library" / "my nuclei.json")
    found = []
    for more in (
        ("--source", file, "--strategy", "prior"),
        ("--source", "my nuclei"),
        ("--source", file, "--strategy", "delta"),
        ("--prior", file),
    ):
        out = tmp_path / "m.json"
        shown = run("train", truth, "--annotations", clicks, "--lambda", 0.1, *more, "--out", out)
        assert f"starting from {more[1]}\n" in shown.out
        found.append(load_model(out).weights)
    for weights in found[1:]:
        np.testing.assert_array_equal(found[0], weights)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--strategy", "transfer"), "give projects"),
        (("--strategy", "delta"), "exactly one model"),
        (("--source", "MODEL", "--strategy", "target"), "uses no source"),
        (("--source", "PROJECT", "--strategy", "delta"), "projects go with transfer"),
        (("--source", "MODEL", "--prior", "MODEL"), "leave the other out"),
        (("--source", "BROKEN"), "broken.json"),
        (("--source", "EMPTY"), "holds no answers to learn from"),
    ],
)
def test_sources_that_cannot_be_used(refused, truth, clicks, project, tmp_path, words, says):
    places = {
        "MODEL": save_model(untrained_model(), tmp_path / "s.json"),
        "PROJECT": project,
        "BROKEN": tmp_path / "broken.json",
        "EMPTY": write_project(tmp_path / "empty.bridgetrack", truth),
    }
    places["BROKEN"].write_text("{}")
    given = [places.get(word, word) for word in words]
    refused(("train", truth, "--annotations", clicks, "--out", tmp_path / "m.json", *given), says)


@pytest.mark.parametrize("more", [(), ("--source", "MODEL")])
def test_answers_are_needed_unless_movies_stand_in(refused, truth, tmp_path, more):
    model = save_model(untrained_model(), tmp_path / "s.json")
    given = [model if word == "MODEL" else word for word in more]
    refused(("train", truth, "--out", tmp_path / "m.json", *given), "annotation")
