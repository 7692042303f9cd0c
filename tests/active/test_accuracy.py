"""The estimate of accuracy by random questions: a fair sample; and the advice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.active.accuracy import ENOUGH, ENOUGH_RANDOM, advice, estimate_so_far
from bridgetrack.active.suggester import random_order
from bridgetrack.annotations.annotation import RANDOM, SUGGESTED, Annotation, Kind
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import untrained_model
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy
from training.training_cases import plain_scene, says, with_annotations

SEED = 2


def events_in_order(count: int) -> np.ndarray:
    """Chosen events of the first slots in random order, by slot."""
    scene = plain_scene()
    chosen = solve(scene.problem, scene.matrix.scores(untrained_model().weights)).chosen
    here = scene.problem.by_slot[random_order(scene, SEED)[:count]].multiply(chosen).tocsr()
    here.eliminate_zeros()
    return here.indices


def told(answers: list[Annotation], seen: dict[str, float] | None = None) -> ErrorEstimate | None:
    """The estimate by some answers about the movie."""
    scene = with_annotations(plain_scene(), answers)
    return estimate_so_far(scene, scene.anchored.annotations, seen or {}, SEED)


def answered(count: int, **fields: object) -> list[Annotation]:
    """Answers about the first slots in random order, all of them right."""
    noted = says(plain_scene(), np.array(list(dict.fromkeys(events_in_order(count)))))
    return [replace(a, source=RANDOM, right=True, **fields) for a in noted]


def test_the_sample_ends_at_the_first_slot_nobody_answered() -> None:
    nine = answered(9)
    assert len(nine) == 9, "no event covers two of them"
    assert told([]) is None and told(nine[1:]) is None
    assert told(nine).n_annotations == 9
    assert told(nine[:4] + nine[5:]).n_annotations == 4
    by_chance = [replace(a, source="click", right=None) if a is nine[4] else a for a in nine]
    assert told(by_chance).n_annotations == 8, "known whether it is right or not, it goes on"
    rejected = [replace(a, kind=Kind.REJECT, right=None) if a is nine[4] else a for a in nine]
    assert told(rejected).n_annotations == 4, "a rejection nobody asked for leaves it open"
    scene = with_annotations(plain_scene(), nine)
    have = scene.anchored.annotations.edit(remove=[nine[4].id])
    assert estimate_so_far(scene, have, {}, SEED).n_annotations == 4, "it was taken back"


def test_events_count_in_inverse_proportion_to_their_slots() -> None:
    right, scene = answered(60), plain_scene()
    events = list(dict.fromkeys(events_in_order(60).tolist()))
    width = np.diff(scene.problem.incidence.indptr)[events]
    assert len(set(width.tolist())) > 1
    wrong = np.arange(len(right)) % 2 == 0
    some = [replace(a, right=not w) for a, w in zip(right, wrong, strict=True)]
    found = told(some)
    assert found.accuracy == pytest.approx(1 - (wrong / width).sum() / (1 / width).sum())
    assert found.random and "cells you annotated" not in found.words
    learned = told(some, {a.id: 0.0 for a in some})
    assert (learned.accuracy, learned.low) == (found.accuracy, found.low)
    assert found.high < learned.high == 1, "the present model errs less often on them"


def test_the_slot_sample_is_unbiased_for_the_share_of_events() -> None:
    rng = np.random.default_rng(1)
    width = rng.integers(1, 4, 400)
    wrong = (rng.random(400) < np.where(width == 3, 0.5, 0.1)).astype(float)
    slots = np.repeat(np.arange(400), width)
    means = []
    for _ in range(300):
        events = list(dict.fromkeys(rng.permutation(slots)[:60].tolist()))
        found = estimate_accuracy(wrong[events], 1 / width[events], wrong[events])
        means.append(1 - found.accuracy)
    assert np.mean(means) == pytest.approx(wrong.mean(), abs=0.02)


@pytest.mark.parametrize(
    ("right", "wrong", "known", "words"),
    [
        (20, 0, ENOUGH_RANDOM, "you can stop now: 0 of the last 20 doubtful events were wrong"),
        (19, 0, ENOUGH_RANDOM, "it is too early to stop; keep answering"),
        (60, 3, ENOUGH_RANDOM, "3 of the last 20 doubtful events were wrong; keep answering"),
        (20, 1, ENOUGH_RANDOM - 1, "1 of the last 20 doubtful events were wrong; keep answering "),
        (20, 0, 0, "0 of the last 20 doubtful events were wrong; keep answering until"),
    ],
)
def test_advice(right: int, wrong: int, known: int, words: str) -> None:
    [one] = answered(1)
    said = [False] * 5 * (right > 20) + [True] * right + [False] * wrong
    answers = [replace(one, source=SUGGESTED, right=r) for r in said]
    none = np.zeros(known)
    estimate = estimate_accuracy(none, none + 1, none) if known else None
    assert advice(answers, estimate).startswith(words)
    at_random = [replace(a, source=RANDOM) for a in answers if not a.right]
    unsure = [replace(a, right=None) for a in answers if not a.right]
    assert advice([*answers, *at_random, *unsure], estimate).startswith(words)


def test_nobody_is_told_to_stop_where_it_is_not_told_how_accurate_it_is():
    [one] = answered(1)
    asked, at_random = (replace(one, source=source) for source in (SUGGESTED, RANDOM))
    for n_wrong, stop in ((0, True), (4, False)):
        wrong = np.where(np.arange(ENOUGH_RANDOM) < n_wrong, 1.0, 0.0)
        estimate = estimate_accuracy(wrong, np.ones(ENOUGH_RANDOM), wrong)
        assert estimate.says_something == stop
        assert advice([asked] * ENOUGH, estimate).startswith("you can stop now") == stop
        until = "you can stop now" if stop else "keep answering until the accuracy is known"
        for right in (True, False):  # from one doubtful event nothing is concluded
            few = [at_random] * ENOUGH + [replace(asked, right=right)]
            assert advice(few, estimate) == until
