"""A run of a project leaves the record that other commands leave."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bridgetrack.annotations.history import History
from bridgetrack.annotations.store import load_annotations
from bridgetrack.models.untrained import untrained_model
from bridgetrack.movie.opening import open_labels
from bridgetrack.pipeline.project import MovieFile, Project
from bridgetrack.pipeline.project_file import save_project
from cli.conftest import Run, one_line


@pytest.fixture
def project(run: Run, movie: Path, truth: Path, tmp_path: Path) -> Path:
    """A project of the small movie, with answers and a model whose name tells it apart."""
    from dataclasses import replace

    answers = tmp_path / "a.json"
    words = ("--ground-truth", movie / "01_GT", "--count", 10, "--out", answers)
    assert run("annotate", truth, *words).status == 0
    geometry = open_labels(truth).geometry
    made = Project(
        MovieFile(truth),
        None,
        geometry.n_frames,
        tuple(geometry.shape or ()),
        geometry.scale,
        geometry.unit,
        geometry.frame_interval,
        History(load_annotations(answers)),
        replace(untrained_model(), name="of the project"),
        formats=("csv", "geff"),
    )
    return save_project(made, tmp_path / "p.json")


def test_a_record_is_left(run: Run, truth: Path, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown = run("run", project, "--out", out, "--json")
    assert shown.status == 0, shown.err
    record = json.loads((out / "run.json").read_text())
    assert json.loads(shown.out).items() >= record.items()
    assert record["command"] == "run"
    assert record["input"]["project"] == str(project)
    assert record["input"]["labels"] == str(truth)
    assert record["model"]["name"] == "of the project"
    assert record["annotations"]["given"] > 5
    assert sorted([*record["files"], "run.json"]) == sorted(p.name for p in out.iterdir())


def test_the_record_of_another_command_is_replaced(
    run: Run, truth: Path, project: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run("track", truth, "--out", out, "--format", "csv,ctc").status == 0
    assert json.loads((out / "run.json").read_text())["command"] == "track"
    assert (out / "ctc").is_dir()
    assert run("run", project, "--out", out).status == 0
    assert json.loads((out / "run.json").read_text())["command"] == "run"
    assert not (out / "ctc").exists()
    assert run("track", truth, "--out", out).status == 0
    record = json.loads((out / "run.json").read_text())
    assert (record["command"], record["input"]["project"]) == ("track", None)
    assert not (out / "tracks.geff").exists()


def test_a_model_without_some_features_is_named(run: Run, project: Path, tmp_path: Path) -> None:
    content = json.loads(project.read_text())
    gone = content["model"]["features"].pop()["name"]
    project.write_text(json.dumps(content))
    shown = run("run", project, "--out", tmp_path / "out")
    assert shown.status == 1
    assert "p.json, model: " in shown.err and gone in shown.err
    assert not (tmp_path / "out").exists()


def test_explain_repeats_the_project(run: Run, project: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = json.loads(run("run", project, "--out", out, "--json").out)
    least = found["least_certain"][0]
    (frame, label), *_ = least["cells"]
    words = ("--frame", frame, "--cell", label, "--event", least["event"])
    shown = run("explain", out, *words, "--json")
    assert shown.status == 0, shown.err
    told = json.loads(shown.out)
    assert told["was_chosen"]
    assert told["margin"] == pytest.approx(least["margin"], abs=1e-6)


def test_explain_lists_labels_that_are_there(run: Run, truth: Path) -> None:
    shown = run("explain", truth, "--frame", 2, "--cell", 999)
    assert shown.status == 1
    assert one_line(shown.err)
    assert "999 in frame 2; its labels are 1, 2, 3" in shown.err
    shown = run("explain", truth, "--frame", 77, "--cell", 1)
    assert "the movie has the frames 0 to 9" in shown.err
