"""The estimate of accuracy: unbiased, and its interval covers."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.active.accuracy import (
    Outcome,
    Strata,
    estimate_from,
    fair_sample,
    strata_of,
)
from bridgetrack.active.questions import believe, within
from bridgetrack.active.random_order import random_order
from bridgetrack.inference.solve import solve
from bridgetrack.models.untrained import untrained_model
from training.training_cases import plain_scene, says, with_annotations


def outcomes(errors: list[float], width: int = 2) -> list[Outcome]:
    return [Outcome(f"a{k}", e, width) for k, e in enumerate(errors)]


def test_plain_share() -> None:
    assert estimate_from([]) is None
    found = estimate_from(outcomes([0, 0, 1, 0]))
    assert found is not None
    assert found.accuracy == 0.75
    assert found.low < 0.75 < found.high
    assert (found.n_annotations, found.random) == (4, True)
    assert "cells like those" not in found.words


def test_events_count_once_however_many_slots_they_cover() -> None:
    sample = [
        Outcome("a", 1.0, 1),
        Outcome("b", 0.0, 3),
        Outcome("c", 0.0, 3),
        Outcome("d", 0.0, 3),
    ]
    found = estimate_from(sample)
    assert found is not None
    assert found.accuracy == pytest.approx(0.5)


@pytest.mark.parametrize("accuracy", [0.99, 0.95, 0.8])
@pytest.mark.parametrize("n", [10, 25, 60])
def test_coverage(accuracy: float, n: int) -> None:
    rng = np.random.default_rng(3)
    covered, runs = 0, 400
    for _ in range(runs):
        found = estimate_from(outcomes((rng.random(n) > accuracy).astype(float).tolist()))
        assert found is not None
        covered += found.low <= accuracy <= found.high
    assert covered >= 0.9 * runs


def test_the_slot_sample_is_unbiased_for_the_share_of_events() -> None:
    rng = np.random.default_rng(1)
    width = rng.integers(1, 4, 400)
    wrong = (rng.random(400) < np.where(width == 3, 0.5, 0.1)).astype(float)
    slots = np.repeat(np.arange(400), width)
    means = []
    for _ in range(300):
        events = list(dict.fromkeys(rng.permutation(slots)[:60].tolist()))
        found = estimate_from([Outcome(str(e), float(wrong[e]), int(width[e])) for e in events])
        assert found is not None
        means.append(1 - found.accuracy)
    assert np.mean(means) == pytest.approx(wrong.mean(), abs=0.02)


def test_the_sample_ends_at_the_first_slot_nobody_answered() -> None:
    scene = plain_scene()
    order = random_order(scene, 2).tolist()
    known = {slot: Outcome(f"a{k}", 0.0, 2) for k, slot in enumerate(order[:9])}
    assert len(fair_sample(scene, known, 2)) == 9
    del known[order[4]]
    assert len(fair_sample(scene, known, 2)) == 4
    assert len(fair_sample(scene, known, 2, frozenset([order[4]]))) == 8
    known[order[4]] = Outcome("undecided", None, 1)
    assert len(fair_sample(scene, known, 2)) == 8
    twice = known | {order[3]: known[order[2]]}
    assert len(fair_sample(scene, twice, 2)) == 7


def test_the_sample_keeps_to_the_frames_asked_about() -> None:
    scene = plain_scene()
    inside = within(scene, (1, 3))
    order = random_order(scene, 0)
    first = order[inside[order]][:5]
    known = {int(s): Outcome(str(s), 0.0, 1) for s in first}
    assert len(fair_sample(scene, known, 0, frames=(1, 3))) == 5


def test_strata_count_every_event_once() -> None:
    scene = plain_scene()
    w = untrained_model().aligned(scene.matrix.features)
    scores = scene.matrix.scores(w)
    solution = solve(scene.problem, scores)
    allowed = np.ones(len(scores), dtype=bool)
    beliefs = believe(scene, scores, solution, allowed, 1.0)
    strata = strata_of(scene, beliefs)
    assert strata.settled == 0
    assert strata.rest.sum() == pytest.approx(solution.chosen.sum())
    assert (np.diff(strata.doubt[strata.rest > 0]) > 0).all()
    few = np.flatnonzero(solution.chosen)[:7]
    answered = with_annotations(scene, says(scene, few))
    assert strata_of(answered, beliefs).settled == pytest.approx(7)
    inside = strata_of(scene, beliefs, (0, 2))
    assert 0 < inside.rest.sum() < strata.rest.sum()


def test_a_mistake_among_doubtful_events_says_little_of_the_sure_ones() -> None:
    strata = Strata(50.0, np.asarray([900.0, 40.0, 10.0]), np.asarray([0.01, 0.2, 0.6]))
    sure = [Outcome(f"a{k}", 0.0, 2, 0.01) for k in range(15)]
    doubtful = estimate_from([*sure, Outcome("b", 1.0, 2, 0.7)], strata)
    plain = estimate_from([*sure, Outcome("b", 1.0, 2, 0.01)], strata)
    assert doubtful is not None
    assert plain is not None
    assert doubtful.accuracy > 0.98
    assert plain.accuracy < 0.96
    assert doubtful.low < doubtful.accuracy <= doubtful.high <= 1


@pytest.mark.parametrize("n", [12, 40])
def test_coverage_of_the_stratified_estimate(n: int) -> None:
    rng = np.random.default_rng(5)
    rates, shares = np.asarray([0.01, 0.15, 0.5]), np.asarray([0.9, 0.08, 0.02])
    strata = Strata(0.0, 1000 * shares, np.asarray([0.02, 0.2, 0.55]))
    truth = 1 - float(rates @ shares)
    covered, runs = 0, 200
    for _ in range(runs):
        stratum = rng.choice(3, n, p=shares)
        wrong = rng.random(n) < rates[stratum]
        sample = [
            Outcome(str(k), float(e), 2, (0.02, 0.2, 0.55)[s])
            for k, (s, e) in enumerate(zip(stratum, wrong, strict=True))
        ]
        found = estimate_from(sample, strata)
        assert found is not None
        covered += found.low <= truth <= found.high
    assert covered >= 0.9 * runs
