"""``bridgetrack models``, and names of the library in place of model files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgetrack.models.library import ENVIRONMENT
from bridgetrack.models.model import save_model
from bridgetrack.models.shipped import untrained_model
from cli.conftest import Refused, Run


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty library."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "library"))
    return tmp_path / "library"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model file."""
    return save_model(untrained_model(), tmp_path / "mine.json")


def test_models_of_the_library_are_given_by_name(
    run: Run, truth: Path, library: Path, tmp_path: Path
) -> None:
    assert "no models" in run("models").out
    library.mkdir()
    save_model(untrained_model(), library / "HeLa lab 3.json")
    (library / "bad.json").write_text("{}")
    shown = run("models")
    assert "HeLa lab 3: weights set by hand" in shown.out and str(library) in shown.out
    assert "bad: damaged" in shown.out
    _, found = json.loads(run("models", "--json").out)["models"]
    assert found["name"] == "HeLa lab 3" and found["file"] == str(library / "HeLa lab 3.json")
    out = tmp_path / "result"
    assert run("track", truth, "--model", "HeLa lab 3", "--out", out).status == 0
    assert run("explain", out, "--frame", 1, "--cell", 1).status == 0


@pytest.mark.parametrize("command", ["track", "train --source"])
def test_a_model_without_some_features_is_named(
    refused: Refused, truth: Path, file: Path, tmp_path: Path, command: str
) -> None:
    content = json.loads(file.read_text())
    gone = content["features"].pop(0)["name"]
    file.write_text(json.dumps(content))
    learning = ("--annotations", "a.json", "--out", tmp_path / "m.json")
    words = {
        "track": (truth, "--model", file, "--out", tmp_path / "r"),
        "train --source": (truth, "--source", file, *learning),
    }
    refused((command.split(maxsplit=1)[0], *words[command]), "mine.json: ", gone)


def test_names_that_are_nothing(
    refused: Refused, truth: Path, library: Path, tmp_path: Path
) -> None:
    library.mkdir()
    save_model(untrained_model(), library / "mine.json")
    for words in (
        ("track", truth, "--model", "other", "--out", tmp_path / "r"),
        ("suggest", truth, "--model", "other"),
        ("train", truth, "--prior", "other", "--annotations", "a.json", "--out", "m.json"),
    ):
        refused(words, "'other'", "mine")
