"""A run of a project leaves the record that other commands leave."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bridgetrack.models.shipped import untrained_model
from cli.conftest import Run, draw_answers, project_of


@pytest.fixture
def project(run: Run, truth: Path, tmp_path: Path) -> Path:
    """A project of the small movie, with answers and a model whose name tells it apart."""
    model = replace(untrained_model(), name="of the project")
    answers = draw_answers(run, truth, tmp_path / "a.json", 10)
    return project_of(
        truth, answers, tmp_path / "p.bridgetrack", model=model, formats=("csv", "geff")
    )


def test_a_record_takes_the_place_of_another(
    run: Run, truth: Path, project: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert run("track", truth, "--out", out, "--format", "csv,ctc").status == 0
    assert (out / "ctc").is_dir(), "a record of another command, to be replaced"
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
    # What explains its events tracks the project again.
    least = json.loads(shown.out)["least_certain"][0]
    (frame, label), *_ = least["cells"]
    words = ("--frame", frame, "--cell", label, "--event", least["event"])
    shown = run("explain", out, *words, "--json")
    assert shown.status == 0, shown.err
    told = json.loads(shown.out)
    assert told["was_chosen"]
    assert told["margin"] == pytest.approx(least["margin"], abs=1e-6)
    assert run("track", truth, "--out", out).status == 0
    record = json.loads((out / "run.json").read_text())
    assert (record["command"], record["input"]["project"]) == ("track", None)
    assert not (out / "tracks.geff").exists()
