"""``bridgetrack models``, and names of the library in place of model files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgetrack.models.library import ENVIRONMENT
from bridgetrack.models.model import save_model
from bridgetrack.models.shipped import untrained_model
from cli.conftest import Run


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty library."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "library"))
    return tmp_path / "library"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model file."""
    return save_model(untrained_model(), tmp_path / "mine.json")


def test_from_adding_to_tracking_by_name(
    run: Run, truth: Path, file: Path, library: Path, tmp_path: Path
) -> None:
    assert run("models", "list").status == 0
    assert run("models", "add", file, "--name", "HeLa lab 3").status == 0
    (found,) = json.loads(run("models", "list", "--json").out)["models"]
    assert found["name"] == "HeLa lab 3" and found["file"] == str(library / "HeLa lab 3.json")
    shown = run("models", "show", "hela lab 3").out
    assert str(library) in shown and "weights set by hand" in shown
    out = tmp_path / "result"
    assert run("track", truth, "--model", "HeLa lab 3", "--out", out).status == 0
    assert run("explain", out, "--frame", 1, "--cell", 1).status == 0
    assert run("models", "add", file, "--name", "hela LAB 3").status == 1
    assert run("models", "remove", "hela lab 3").status == 0
    assert run("models", "remove", "hela lab 3").status == 1
    assert not list(library.glob("*.json"))
    assert json.loads(run("models", "list", "--json").out)["models"] == []


def test_a_damaged_model_is_listed(run: Run, file: Path, library: Path) -> None:
    run("models", "add", file, "--name", "good")
    (library / "bad.json").write_text("{}")
    listed = run("models", "list")
    assert listed.status == 0
    assert "good" in listed.out and "bad: damaged" in listed.out
    assert run("models", "show", "bad").status == 1


@pytest.mark.parametrize("command", ["track", "train --source", "models"])
def test_a_model_without_some_features_is_named(
    run: Run, truth: Path, file: Path, tmp_path: Path, command: str
) -> None:
    content = json.loads(file.read_text())
    gone = content["features"].pop(0)["name"]
    file.write_text(json.dumps(content))
    learning = ("--annotations", "a.json", "--out", tmp_path / "m.json")
    words = {
        "track": (truth, "--model", file, "--out", tmp_path / "r"),
        "train --source": (truth, "--source", file, *learning),
        "models": ("add", file),
    }
    told = run(command.split(maxsplit=1)[0], *words[command])
    assert told.status == 1
    assert "mine.json: " in told.err and gone in told.err


def test_names_that_are_nothing(run: Run, truth: Path, file: Path, tmp_path: Path) -> None:
    run("models", "add", file)
    for words in (
        ("track", truth, "--model", "other", "--out", tmp_path / "r"),
        ("suggest", truth, "--model", "other"),
        ("train", truth, "--prior", "other", "--annotations", "a.json", "--out", "m.json"),
    ):
        told = run(*words)
        assert told.status == 1, words
        assert "'other'" in told.err and "mine" in told.err
