"""What a few answers taught may not overturn what the starting model is sure of, unasked."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import run
from bridgetrack.training import train
from bridgetrack.training.keep import Decision, KeepReason
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import choices
from bridgetrack.training.reach import REACH, regrets, within_reach
from bridgetrack.training.sure import SURE
from bridgetrack.training.train import train_steps
from training.test_sure import far_apart, swapped
from training.training_cases import bad_prior, confirmed, plain_scene, true_columns

START = untrained_model().weights
AWAY = bad_prior().weights


def overturned(scene: Scene, weights: np.ndarray) -> int:
    """Parts that weights overturn although the starting weights are sure of them."""
    before, after = choices([scene], START)[0], choices([scene], weights)[0]
    lost = regrets(scene.problem, scene.matrix.scores(START), before, after)
    return int((lost >= SURE).sum())


def test_regrets_of_parts_sum_up_to_what_the_choice_loses() -> None:
    scene = plain_scene()
    scores = scene.matrix.scores(START)
    best, other = (solve(scene.problem, scene.matrix.scores(w)).chosen for w in (START, AWAY))
    found = regrets(scene.problem, scores, best, other)
    assert len(found) > 5
    assert found.min() >= -1e-9
    assert found.sum() == pytest.approx(scores @ best - scores @ other)
    assert not len(regrets(scene.problem, scores, best, best))


def test_without_an_answer_that_vouches_nothing_sure_is_overturned() -> None:
    scene = confirmed(plain_scene(), far_apart(3))
    assert overturned(scene, AWAY) > REACH
    reached = within_reach([scene], START, AWAY, choices([scene], START))
    assert 0 < reached.step < 1
    assert reached.weights == pytest.approx(START + reached.step * (AWAY - START))
    assert overturned(scene, reached.weights) == 0
    np.testing.assert_array_equal(reached.chosen[0], choices([scene], reached.weights)[0])
    assert f"in {reached.overturned} places" in reached.notes[0].words


def test_answers_that_contradict_what_is_sure_vouch_for_others() -> None:
    scene, n = plain_scene(), overturned(plain_scene(), AWAY)
    few = -(-n // REACH)
    said = swapped(scene, far_apart(few + 2), START)
    against = confirmed(scene, said)
    reached = within_reach([against], START, AWAY, choices([against], START))
    assert reached.step == 1
    assert reached.notes == ()


def test_training_goes_no_farther(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learning that runs away, and is judged well by the answers, is called back."""
    scene = confirmed(plain_scene(), true_columns()[:12])
    found = Decision(KeepReason.UNCHECKED, "was not checked")
    monkeypatch.setattr(train, "keep_better", lambda *_: found)
    real = train._told

    def runs_away(*given: Any) -> Generator[Any, None, Any]:
        return replace((yield from real(*given)), w=AWAY)

    monkeypatch.setattr(train, "_told", runs_away)
    training = run(train_steps(scene, untrained_model()))
    assert training.step < 1
    assert training.model.provenance["step"] == training.step
    assert overturned(scene, training.model.weights) == 0
    assert any("was kept" in note.words for note in training.notes)
    # who gives λ wants the weights that come of it
    asked = run(train_steps(scene, untrained_model(), TrainingOptions(strength=0.1)))
    assert asked.step == 1
    assert asked.model.weights == pytest.approx(AWAY)
