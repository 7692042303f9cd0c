"""Advanced options of training."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bridgetrack.models.model import save_model
from bridgetrack.models.shipped import untrained_model
from cli.conftest import Run, one_line


@pytest.fixture
def given(run: Run, movie: Path, truth: Path, tmp_path: Path) -> tuple[object, ...]:
    """A few answers about the small movie, as words of a command."""
    answers = tmp_path / "a.json"
    words = ("--ground-truth", movie / "01_GT", "--count", 25, "--out", answers)
    assert run("annotate", truth, *words).status == 0
    return ("train", truth, "--annotations", answers, "--out", tmp_path / "m.json")


def test_learners_end_at_the_same_objective(run: Run, given: tuple[object, ...]) -> None:
    objective = {}
    for learner in ("bundle", "frank-wolfe"):
        shown = run(*given, "--lambda", 1, "--learner", learner, "--json")
        assert shown.status == 0, shown.err
        objective[learner] = json.loads(shown.out)["objective"]
    assert objective["bundle"] == pytest.approx(objective["frank-wolfe"], abs=5e-3)


def test_the_literal_treatment_is_another(
    run: Run, given: tuple[object, ...], tmp_path: Path
) -> None:
    good = untrained_model()
    bad = save_model(replace(good, weights=-0.1 * good.weights), tmp_path / "bad.json")
    objective = {}
    for treatment in ("exact", "literal"):
        words = ("--prior", bad, "--no-hold-sure", "--treatment", treatment)
        shown = run(*given, "--lambda", 1, *words, "--json")
        assert shown.status == 0, shown.err
        objective[treatment] = json.loads(shown.out)["objective"]
    assert objective["exact"] != pytest.approx(objective["literal"], abs=1e-6)


def test_a_curriculum_ends_with_a_model(run: Run, given: tuple[object, ...]) -> None:
    shown = run(*given, "--lambda", 1, "--curriculum", "slack", "--json")
    assert shown.status == 0, shown.err
    assert json.loads(shown.out)["gap"] is not None


@pytest.mark.parametrize(
    "words",
    [
        ("--learner", "adam"),
        ("--curriculum", "mood"),
        ("--treatment", "rough"),
        ("--balance", "1.5"),
        ("--learner", "perceptron", "--curriculum", "slack"),
        ("--learner", "n-slack", "--regularizer", "l1"),
    ],
)
def test_wrong_choices_are_refused(
    run: Run, given: tuple[object, ...], words: tuple[str, ...]
) -> None:
    shown = run(*given, *words)
    assert shown.status == 2
    assert one_line(shown.err) and words[1] in shown.err
