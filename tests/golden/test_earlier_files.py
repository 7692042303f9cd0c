"""Files that people saved with earlier versions go on opening."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.active.session_file import load_session
from bridgetrack.cli.main import main
from bridgetrack.models.library import find_model

FILES = Path(__file__).parent / "files"
HERE = {"axes": "TYX", "scale": (0.645, 0.645), "frame_interval": 10.0}
"""Calibration of the movie."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A copy of the files."""
    return Path(shutil.copytree(FILES, tmp_path / "files"))


def test_answers_and_models(files: Path, tmp_path: Path) -> None:
    answers = bt.load_annotations(files / "answers.json")
    assert len(answers) == 40
    bt.save_annotations(answers, tmp_path / "again.json")
    assert list(bt.load_annotations(tmp_path / "again.json")) == list(answers)
    assert list(bt.load_annotations(files / "journal.json")) == list(answers)[1:3]
    trained, exported = (bt.load_model(files / n) for n in ("trained.json", "exported.json"))
    features = bt.run(bt.prepare(bt.open_labels(files / "cells.tif", **HERE))).matrix.features
    for model in (trained, exported):
        assert np.isfinite(model.aligned(features)).all()
        bt.save_model(model, tmp_path / "model.json")
        again = bt.load_model(tmp_path / "model.json")
        np.testing.assert_array_equal(again.weights, model.weights)


def test_a_model_of_a_library(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRIDGETRACK_MODELS", str(files / "library"))
    assert find_model("lab one").trained


def test_a_project_is_run_again(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["run", str(files / "project.json"), "--out", str(out)]) == 0
    assert bt.count_events(bt.read_tracks_csv(out / "detections.csv"))["cells"] == 123


def test_a_result_is_read(files: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(files / "result.zip", tmp_path)
    out = tmp_path / "result"
    tracks = [
        bt.read_tracks_csv(out / "detections.csv"),
        bt.read_geff(out / "tracks.geff"),
        bt.read_ctc(out / "ctc").tracks,
    ]
    counts = [bt.count_events(t) for t in tracks]
    for key in ("cells", "move", "divide"):
        assert len({count[key] for count in counts}) == 1, key


def test_a_session_goes_on(files: Path, tmp_path: Path) -> None:
    project, kept = json.loads((files / "project.json").read_text()), tmp_path / "answers.json"
    kept.write_text(json.dumps(project["annotations"]))
    answers = bt.load_annotations(kept)
    labels, image = (
        opened(files / name, **HERE)
        for opened, name in ((bt.open_labels, "cells.tif"), (bt.open_movie, "image.tif"))
    )
    scene = bt.run(bt.prepare(labels, image, answers))
    session = load_session(files / "project.suggestions.json", scene)
    assert len({r.id for r in session.records} & {a.id for a in answers}) > 5
    assert session.adopt(bt.run(session.update()))
    assert session.next() is not None
