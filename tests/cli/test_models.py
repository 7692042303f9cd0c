"""``bridgetrack models``, and names of the library in place of model files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgetrack.models.library import ENVIRONMENT
from bridgetrack.models.model import save_model
from bridgetrack.models.shipped import untrained_model


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty library."""
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "library"))
    return tmp_path / "library"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model file."""
    return save_model(untrained_model(), tmp_path / "mine.json")


def test_from_saving_to_tracking_by_name(
    run, movie: Path, truth: Path, file: Path, library: Path, tmp_path: Path
) -> None:
    empty = run("models", "list")
    assert empty.status == 0 and "there are no models" in empty.out
    saved = run("models", "save", file, "--name", "HeLa lab 3", "--description", "20x",
                "--labels", truth, "--image", movie / "01", "--json")  # fmt: skip
    assert saved.status == 0, saved.err
    assert json.loads(saved.out)["name"] == "HeLa lab 3"
    assert (library / "HeLa lab 3" / "preview.png").stat().st_size > 2000

    found = json.loads(run("models", "list", "--for", truth, "--json").out)
    (model,) = found["models"]
    assert model["similarity"]["level"] == "very similar"
    assert found["most_suitable"] == "HeLa lab 3"
    told = run("models", "list", "--for", truth, "--image", movie / "01")
    assert "very similar to your movie" in told.out and "start from: HeLa lab 3" in told.out
    shown = run("models", "show", "hela lab 3")
    assert "20x" in shown.out and "2D movie" in shown.out

    out = tmp_path / "result"
    tracked = run("track", truth, "--model", "HeLa lab 3", "--out", out, "--json")
    assert tracked.status == 0, tracked.err
    assert json.loads((out / "run.json").read_text())["model"]
    explained = run("explain", out, "--frame", 1, "--cell", 1)
    assert explained.status == 0, explained.err


def test_remove_restore_export(run, file: Path, tmp_path: Path) -> None:
    assert run("models", "save", file).status == 0
    assert "mine" in run("models", "list").out
    taken = run("models", "save", file, "--name", "Mine")
    assert taken.status == 1 and "'Mine 2'" in taken.err
    assert run("models", "remove", "mine").status == 0
    assert "there are no models" in run("models", "list").out
    gone = run("models", "show", "mine")
    assert gone.status == 1 and "it is empty" in gone.err
    assert run("models", "restore", "mine").status == 0
    shared = tmp_path / "shared.json"
    assert run("models", "export", "mine", "--out", shared).status == 0
    assert "description" in json.loads(shared.read_text())["provenance"]["library"]
    again = run("models", "save", shared)
    assert again.status == 0 and "shared" in run("models", "list").out
    lost = run("models", "restore", "nothing")
    assert lost.status == 1 and "removed lately" in lost.err


def test_a_damaged_model_is_listed(run, file: Path, library: Path) -> None:
    run("models", "save", file, "--name", "good")
    run("models", "save", file, "--name", "bad")
    (library / "bad" / "model.json").write_text("{}")
    listed = run("models", "list")
    assert listed.status == 0
    assert "good" in listed.out and "bad: damaged" in listed.out
    told = run("models", "show", "bad", "--json")
    assert json.loads(told.out)["damaged"] and told.status == 1
    told = run("models", "show", "bad")
    assert told.status == 1 and told.out == "" and "'bad' of the library is damaged" in told.err


@pytest.mark.parametrize(
    "command", ["track", "suggest", "train", "train --source", "explain", "models"]
)
def test_a_model_without_some_features_is_named(
    run, truth: Path, file: Path, tmp_path: Path, command: str
) -> None:
    content = json.loads(file.read_text())
    gone = content["features"].pop(0)["name"]
    file.write_text(json.dumps(content))
    words = {
        "track": (truth, "--model", file, "--out", tmp_path / "r"),
        "suggest": (truth, "--model", file),
        "train": (truth, "--prior", file, "--annotations", "a.json", "--out", tmp_path / "m.json"),
        "train --source": (
            truth,
            "--source",
            file,
            "--annotations",
            "a.json",
            "--out",
            tmp_path / "m.json",
        ),
        "explain": (truth, "--frame", 1, "--cell", 1, "--model", file),
        "models": ("save", file),
    }
    told = run(command.split(maxsplit=1)[0], *words[command])
    assert told.status == 1
    assert "mine.json: " in told.err and gone in told.err
    assert "there are no models" in run("models", "list").out


def test_a_cut_off_model_is_called_damaged(run, truth: Path, file: Path, tmp_path: Path) -> None:
    file.write_text(file.read_text()[:300])
    told = run("track", truth, "--model", file, "--out", tmp_path / "r")
    assert told.status == 1
    assert "mine.json: this is a model file that is damaged or cut off" in told.err


def test_names_that_are_nothing(run, truth: Path, file: Path, tmp_path: Path) -> None:
    run("models", "save", file)
    for words in (
        ("track", truth, "--model", "other", "--out", tmp_path / "r"),
        ("suggest", truth, "--model", "other"),
        ("train", truth, "--prior", "other", "--annotations", "a.json", "--out", "m.json"),
    ):
        told = run(*words)
        assert told.status == 1, words
        assert "no model of that name in the library (it holds mine)" in told.err
    assert run("models", "list", "--image", truth).status == 2
    assert run("models").status == 2
