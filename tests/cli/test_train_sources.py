"""Training from the command line with earlier movies and models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bridgetrack.models.library import ENVIRONMENT
from bridgetrack.models.model import load_model, save_model
from bridgetrack.models.shipped import untrained_model
from cli.conftest import Run, draw_answers, one_line, project_of


@pytest.fixture
def clicks(run: Run, truth: Path, tmp_path: Path) -> Path:
    """A few answers about the small movie."""
    return draw_answers(run, truth, tmp_path / "a.json", 12)


@pytest.fixture
def project(run: Run, truth: Path, tmp_path: Path) -> Path:
    """A project of the small movie with more answers."""
    answers = draw_answers(run, truth, tmp_path / "more.json", 30, seed=5)
    return project_of(truth, answers, tmp_path / "earlier.json")


def test_an_earlier_project_helps(
    run: Run, truth: Path, clicks: Path, project: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.json"
    given = (truth, "--annotations", clicks, "--out", model, "--source", project)
    shown = run("train", *given, "--lambda", 0.1, "--rho", 1, "--json")
    assert shown.status == 0, shown.err
    record = json.loads(shown.out)
    assert record["strategy"] == "transfer"
    assert record["prior"] == "shipped"
    assert record["rho"] == pytest.approx(1.0)
    assert record["sources"] == ["TRA (30 annotations)"]
    trained = load_model(model)
    assert trained.provenance["strategy"] == "transfer"
    assert trained.provenance["sources"] == record["sources"]


def test_a_movie_without_answers_takes_over_what_earlier_ones_say(
    run: Run, truth: Path, project: Path, tmp_path: Path
) -> None:
    model = tmp_path / "m.json"
    shown = run("train", truth, "--source", project, "--strategy", "union", "--out", model)
    assert shown.status == 0, shown.err
    assert "union from TRA (30 annotations)" in shown.out
    assert "without a check" in shown.out
    provenance = load_model(model).provenance
    assert provenance["strategy"] == "union" and provenance["annotations"] == 0


def test_a_model_is_the_start(run: Run, truth: Path, clicks: Path, tmp_path: Path) -> None:
    source = save_model(untrained_model(), tmp_path / "source.json")
    found = {}
    for strategy in ("prior", "delta"):
        model = tmp_path / f"{strategy}.json"
        given = (truth, "--annotations", clicks, "--out", model, "--lambda", 0.1, "--source")
        shown = run("train", *given, source, "--strategy", strategy, "--json")
        assert shown.status == 0, shown.err
        assert json.loads(shown.out)["strategy"] == strategy
        found[strategy] = load_model(model).weights
    np.testing.assert_array_equal(found["prior"], found["delta"])
    without = tmp_path / "without.json"
    given = (truth, "--annotations", clicks, "--out", without, "--lambda", 0.1, "--prior")
    assert run("train", *given, source).status == 0
    np.testing.assert_array_equal(found["prior"], load_model(without).weights)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--strategy", "transfer"), "needs a --source"),
        (("--rho", "1"), "needs a --source"),
        (("--rho", "much"), "auto or a positive number"),
        (("--source", "MODEL", "--strategy", "best"), "no strategy 'best'; choose from"),
        (("--strategy", "best"), "no strategy 'best'; choose from"),
        (("--source", "MODEL", "--strategy", "transfer"), "not a project file"),
        (("--source", "MODEL", "--strategy", "target"), "uses no --source"),
        (("--source", "MODEL", "--source", "MODEL"), "2 were given"),
        (("--source", "PROJECT", "--strategy", "delta"), "is a project file"),
        (("--source", "PROJECT", "--source", "MODEL"), "not a project file"),
        (("--source", "PROJECT", "--strategy", "union", "--rho", "1"), "goes with --strategy"),
        (("--source", "MODEL", "--prior", "MODEL"), "both say where to start"),
        (("--source", "MODEL", "--rho", "1"), "goes with --strategy transfer"),
    ],
)
def test_bad_combinations(
    run: Run,
    truth: Path,
    clicks: Path,
    project: Path,
    tmp_path: Path,
    words: tuple[str, ...],
    says: str,
) -> None:
    places = {"MODEL": save_model(untrained_model(), tmp_path / "s.json"), "PROJECT": project}
    out = tmp_path / "m.json"
    given = [places.get(word, word) for word in words]
    shown = run("train", truth, "--annotations", clicks, "--out", out, *given)
    assert shown.status == 2
    assert one_line(shown.err)
    assert says in shown.err
    assert not out.exists()


def test_answers_are_needed_unless_movies_stand_in(run: Run, truth: Path, tmp_path: Path) -> None:
    model = save_model(untrained_model(), tmp_path / "s.json")
    for more in ((), ("--source", model)):
        shown = run("train", truth, "--out", tmp_path / "m.json", *more)
        assert shown.status in (1, 2)
        assert one_line(shown.err)
        assert "annotation" in shown.err


def test_a_model_of_the_library_is_a_source_by_its_name(
    run: Run, truth: Path, clicks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "library"))
    file = save_model(untrained_model(), tmp_path / "source.json")
    assert run("models", "add", file, "--name", "my nuclei").status == 0
    given = (truth, "--annotations", clicks, "--lambda", 0.1, "--strategy", "prior", "--out")
    found = []
    for source in (file, "my nuclei"):
        shown = run("train", *given, tmp_path / "m.json", "--source", source)
        assert shown.status == 0, shown.err
        assert f"starts from {source}\n" in shown.out
        found.append(load_model(tmp_path / "m.json").weights)
    np.testing.assert_array_equal(*found)
    shown = run("train", *given, tmp_path / "no.json", "--source", "nobody")
    assert shown.status == 1
    assert "my nuclei" in shown.err and one_line(shown.err)


def test_a_source_that_is_neither(run: Run, truth: Path, clicks: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    empty = tmp_path / "missing.json"
    for source in (broken, empty):
        shown = run(
            "train",
            truth,
            "--annotations",
            clicks,
            "--out",
            tmp_path / "m.json",
            "--source",
            source,
        )
        assert shown.status == 1
        assert one_line(shown.err)
        assert source.name in shown.err and "a project" in shown.err


def test_a_project_without_answers(
    run: Run, truth: Path, clicks: Path, project: Path, tmp_path: Path
) -> None:
    content = json.loads(project.read_text())
    content["annotations"]["annotations"] = []
    project.write_text(json.dumps(content))
    given = ("--annotations", clicks, "--out", tmp_path / "m.json", "--source", project)
    shown = run("train", truth, *given)
    assert shown.status == 1
    assert one_line(shown.err)
    assert "no answers" in shown.err
