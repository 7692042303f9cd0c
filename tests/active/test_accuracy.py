"""The estimate of accuracy: unbiased, and its interval covers."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.active.accuracy import (
    AskedSlot,
    estimate_from,
    fair_sample,
)
from bridgetrack.active.suggester import random_order
from training.training_cases import plain_scene


def outcomes(errors: list[float], width: int = 2) -> list[AskedSlot]:
    return [AskedSlot(f"a{k}", e, width) for k, e in enumerate(errors)]


def test_plain_share() -> None:
    assert estimate_from([]) is None
    found = estimate_from(outcomes([0, 0, 1, 0]))
    assert found.words.startswith("about 75.0 %"), "one of them was wrong"
    assert found is not None
    assert found.accuracy == 0.75
    assert found.low < 0.75 < found.high
    assert (found.n_annotations, found.random) == (4, True)
    assert "cells like those" not in found.words


def test_what_the_present_model_has_learned_from_widens_the_upper_end() -> None:
    learned = [AskedSlot("a", 1.0, 2, least=0.0), *outcomes([0, 0, 0])]
    found = estimate_from(learned)
    plain, right = estimate_from(outcomes([1, 0, 0, 0])), estimate_from(outcomes([0, 0, 0, 0]))
    assert found is not None and plain is not None and right is not None
    assert (found.accuracy, found.low) == (plain.accuracy, plain.low)
    assert plain.high < found.high == right.high


@pytest.mark.parametrize(("accuracy", "n"), [(0.99, 10), (0.8, 60)])
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
        found = estimate_from([AskedSlot(str(e), float(wrong[e]), int(width[e])) for e in events])
        assert found is not None
        means.append(1 - found.accuracy)
    assert np.mean(means) == pytest.approx(wrong.mean(), abs=0.02)


def test_the_sample_ends_at_the_first_slot_nobody_answered() -> None:
    scene = plain_scene()
    order = random_order(scene, 2).tolist()
    known = {slot: AskedSlot(f"a{k}", 0.0, 2) for k, slot in enumerate(order[:9])}
    assert len(fair_sample(scene, known, 2)) == 9
    del known[order[4]]
    assert len(fair_sample(scene, known, 2)) == 4
    known[order[4]] = AskedSlot("undecided", None, 1)
    assert len(fair_sample(scene, known, 2)) == 9
    assert estimate_from(fair_sample(scene, known, 2)).n_annotations == 8
    twice = known | {order[3]: known[order[2]]}
    assert len(fair_sample(scene, twice, 2)) == 8
