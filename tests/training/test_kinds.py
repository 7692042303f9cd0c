"""Kinds of events that no answer speaks of do not become more frequent by training."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bridgetrack.active import update
from bridgetrack.active.options import LearnOptions
from bridgetrack.hypotheses.events import ODD, Event
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.solve import solve
from bridgetrack.models.shipped import untrained_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by
from bridgetrack.progress import run
from bridgetrack.training import kinds, train
from bridgetrack.training.keep import Decision, KeepReason
from bridgetrack.training.kinds import ALIKE, GRID, Priced, most_of_each, price_kinds
from bridgetrack.training.outcome import choices, population_of
from bridgetrack.training.train import strategy_steps, train_steps
from training.training_cases import (
    confirmed,
    plain_scene,
    says,
    true_columns,
    with_annotations,
)

KEYS = untrained_model().keys
START = untrained_model().weights


def changed(**by: float) -> np.ndarray:
    """The starting weights with other constant features, such as ``merge=2``."""
    more = {f"{kind}.bias": value for kind, value in by.items()}
    return START + np.array([more.get(key, 0.0) for key in KEYS])


DEARER = changed(appear=-3, disappear=-3)
"""Weights by which a true cell of the movie, which only appears, is better called none."""
LAVISH = changed(false=5, split=6)
"""Weights that find specks and wrong cuts in a movie that has none of these."""


def counted(scene: Scene, weights: np.ndarray) -> np.ndarray:
    """How often weights choose each kind of event, annotations honoured."""
    return population_of([scene], choices([scene], weights))


def solved(scene: Scene, weights: np.ndarray) -> tuple[Solution, ...]:
    return (solve(scene.problem, scene.matrix.scores(weights), allowed_by(scene)),)


def priced(scene: Scene, weights: np.ndarray) -> Priced:
    most = most_of_each([scene], choices([scene], START))
    return run(price_kinds([scene], weights, solved(scene, weights), most))


def usual() -> Scene:
    """The movie with answers about ordinary events."""
    return confirmed(plain_scene(), true_columns()[:12])


def test_several_kinds_are_priced_at_once() -> None:
    scene = usual()
    before, after = counted(scene, START), counted(scene, LAVISH)
    growing = tuple(kind for kind in ODD if after[kind] > before[kind])
    assert len(growing) == 2
    found = priced(scene, LAVISH)
    assert found.kinds == growing
    now = population_of([scene], [found.solutions[0].chosen])
    assert (now[list(ODD)] <= before[list(ODD)]).all()
    # what is chosen is the best choice by the weights that come back
    (again,) = solved(scene, found.weights)
    assert found.solutions[0].value == pytest.approx(again.value)
    lowered = LAVISH - found.weights
    assert {KEYS[k] for k in np.flatnonzero(lowered)} == {f"{k.key}.bias" for k in growing}
    np.testing.assert_array_equal(lowered % GRID, 0)


@pytest.mark.parametrize(("weights", "least"), [(DEARER, GRID), (changed(false=30), 24.0)])
def test_the_price_is_the_smallest_that_suffices(weights: np.ndarray, least: float) -> None:
    scene = usual()
    found = priced(scene, weights)
    assert found.kinds == (Event.FALSE,)
    place = KEYS.index("false.bias")
    assert counted(scene, found.weights)[Event.FALSE] == 0
    assert weights[place] - found.weights[place] > least
    less = found.weights.copy()
    less[place] += GRID
    assert counted(scene, less)[Event.FALSE] > 0


@pytest.mark.parametrize(
    "weights", [LAVISH, changed(false=5, split=12), changed(false=12, split=9)]
)
def test_each_of_several_kinds_has_the_smallest_price(weights: np.ndarray) -> None:
    scene = usual()
    most, found = counted(scene, START), priced(scene, weights)
    assert found.kinds == (Event.FALSE, Event.SPLIT)
    for kind in found.kinds:
        less = found.weights.copy()
        less[KEYS.index(f"{kind.key}.bias")] += GRID
        assert counted(scene, less)[kind] > most[kind]


def test_the_order_of_kinds_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = usual()
    found = priced(scene, LAVISH)
    monkeypatch.setattr(kinds, "ODD", ODD[::-1])
    np.testing.assert_array_equal(priced(scene, LAVISH).weights, found.weights)


def test_weights_by_which_nothing_grows_stay_as_they_are() -> None:
    scene, fewer = usual(), changed(move=1, divide=-2)
    found = priced(scene, fewer)
    assert found.kinds == ()
    np.testing.assert_array_equal(found.weights, fewer)


def test_an_answer_of_a_kind_speaks_for_others() -> None:
    scene = plain_scene()
    odd = np.flatnonzero(scene.hypotheses.event == Event.FALSE)[[0, 2]]  # two specks
    said = with_annotations(scene, says(scene, odd))
    before, most = counted(said, START), most_of_each([said], choices([said], START))
    assert before[Event.FALSE] == 2
    assert most[Event.FALSE] == 2 + 2 * ALIKE
    assert most[Event.MERGE] == before[Event.MERGE]
    assert np.isinf(most[[Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR]]).all()
    assert counted(said, DEARER)[Event.FALSE] > 2
    assert priced(said, DEARER).kinds == ()


def test_true_cells_are_not_dropped_by_training_on_other_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody said of anything that it is no cell; what was learned is not taken as it is."""
    scene = usual()
    assert counted(scene, START)[Event.FALSE] == 0 < counted(scene, DEARER)[Event.FALSE]
    learned = train._told
    monkeypatch.setattr(
        train, "keep_better", lambda *_: Decision(KeepReason.UNCHECKED, "was not checked")
    )

    def away(*given: Any) -> Generator[Any, None, Any]:
        return replace((yield from learned(*given)), w=DEARER)

    monkeypatch.setattr(train, "_told", away)
    training = run(train_steps(scene, untrained_model()))
    assert training.step == 1
    assert training.changes["false"] == (0, 0)
    assert counted(scene, training.model.weights)[Event.FALSE] == 0
    assert any("more things that are not cells than" in note.words for note in training.notes)


@pytest.mark.parametrize("strategy", ["source", "union", "transfer"])
def test_true_cells_are_not_dropped_by_what_earlier_movies_taught(
    monkeypatch: pytest.MonkeyPatch, strategy: train.Strategy
) -> None:
    scene, learned = usual(), train._told
    earlier = confirmed(plain_scene(2), true_columns(2)[:12])

    def away(*given: Any) -> Generator[Any, None, Any]:
        return replace((yield from learned(*given)), w=DEARER)

    monkeypatch.setattr(train, "_told", away)
    monkeypatch.setattr(
        train, "keep_better", lambda *_: Decision(KeepReason.NOT_ANNOTATED, "was not checked")
    )
    training = run(strategy_steps(strategy, scene, [earlier], untrained_model()))
    assert training.changes["false"] == (0, 0)
    assert counted(scene, training.model.weights)[Event.FALSE] == 0
    # what an earlier movie says of its specks speaks for others in the next
    odd = np.flatnonzero(earlier.hypotheses.event == Event.FALSE)[:2]
    said = with_annotations(plain_scene(2), says(plain_scene(2), odd))
    found = run(strategy_steps(strategy, scene, [said], untrained_model()))
    assert found.changes["false"][1] > 0


def test_true_cells_are_not_dropped_by_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, fit = usual(), update._fit_part

    def away(*given: Any) -> Generator[Any, None, Any]:
        return replace((yield from fit(*given)), w=DEARER)

    monkeypatch.setattr(update, "_fit_part", away)
    learned = run(update.learn(scene, untrained_model(), counted(scene, START), LearnOptions()))
    assert counted(scene, learned.weights)[Event.FALSE] == 0
    assert learned.solution is not None
    np.testing.assert_array_equal(learned.solution.chosen, choices([scene], learned.weights)[0])
