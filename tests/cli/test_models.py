"""``bridgetrack models``, and names of the library in place of model files."""

import json

import pytest

from bridgetrack.models.library import ENVIRONMENT
from bridgetrack.models.model import save_model, untrained_model


@pytest.fixture(autouse=True)
def library(tmp_path, monkeypatch):
    """An empty library."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "library"))
    return tmp_path / "library"


@pytest.fixture
def file(tmp_path):
    """A model file."""
    return save_model(untrained_model(), tmp_path / "mine.json")


def test_models_of_the_library_are_given_by_name(run, truth, library, tmp_path):
    assert "no models" in run("models").out
    library.mkdir()
    save_model(untrained_model(), library / "HeLa lab 3.json")
    (library / "bad.json").write_text("{}")
    shown = run("models")
    assert "HeLa lab 3: weights set by hand" in shown.out and str(library) in shown.out
    assert "bad: damaged" in shown.out
    _, found = run("models", "--json").json["models"]
    assert found["name"] == "HeLa lab 3" and found["file"] == str(library / "HeLa lab 3.json")
    out = tmp_path / "result"
    run("track", truth, "--model", "HeLa lab 3", "--out", out)
    run("explain", out, "--frame", 1, "--cell", 1)


@pytest.mark.parametrize("command", ["track", "train --source"])
def test_a_model_without_some_features_is_named(refused, truth, file, tmp_path, command):
    content = json.loads(file.read_text())
    gone = content["features"].pop(0)["name"]
    file.write_text(json.dumps(content))
    learning = ("--annotations", "a.json", "--out", tmp_path / "m.json")
    words = {
        "track": (truth, "--model", file, "--out", tmp_path / "r"),
        "train --source": (truth, "--source", file, *learning),
    }
    refused((command.split(maxsplit=1)[0], *words[command]), "mine.json: ", gone)


def test_names_that_are_nothing(refused, truth, clicks, library, tmp_path):
    library.mkdir()
    save_model(untrained_model(), library / "mine.json")
    for words in (
        ("track", truth, "--model", "other", "--out", tmp_path / "r"),
        ("suggest", truth, "--model", "other"),
        ("train", truth, "--prior", "other", "--annotations", clicks, "--out", "m.json"),
    ):
        refused(words, "'other'", "mine")
