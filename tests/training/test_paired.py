"""The paired test that decides which weights are kept: exact, and blind to the order of answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from bridgetrack.training.fit import HoldChoice, Movies
from bridgetrack.training.keep import KeepReason, keep_better
from bridgetrack.training.paired import compare, sign_flip
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation
from training.training_cases import tiny_set


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-5, 5), max_size=8))
def test_the_chance_is_that_of_all_signs(differences: list[int]) -> None:
    sums = [
        sum(s * d for s, d in zip(signs, differences, strict=True))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    expected = np.mean([s >= sum(differences) for s in sums])
    assert sign_flip(np.asarray(differences, dtype=np.int64)) == pytest.approx(expected)


@pytest.mark.parametrize(("gained", "lost"), [(1, 0), (0, 1), (5, 2), (2, 5), (40, 25)])
def test_single_answers_give_mcnemars_exact_test(gained: int, lost: int) -> None:
    n = gained + lost + 10
    other, wrong = np.zeros(n), np.zeros(n)
    other[:gained] = wrong[gained : gained + lost] = 1
    found = compare(wrong, other, np.arange(n))
    assert (found.gained, found.lost, found.net) == (gained, lost, gained - lost)
    by_hand = binomtest(gained, gained + lost, alternative="greater").pvalue
    assert found.chance == pytest.approx(by_hand)


def test_answers_of_one_part_count_as_one_draw() -> None:
    other, wrong = np.ones(6), np.zeros(6)
    assert compare(wrong, other, np.zeros(6, dtype=np.int64)).chance == 0.5
    assert compare(wrong, other, np.arange(6)).chance == 0.5**6


TARGET = TrackingModel(tiny_set(np.random.default_rng(3), 12))
N = TARGET.data.n_annotations


def reason(wrong: np.ndarray, before: np.ndarray, learned: np.ndarray | None = None) -> KeepReason:
    """Why which weights are kept, where these verdicts are held out and ``learned`` are not."""
    loss, rng = np.zeros(N), np.random.default_rng(0)
    prior, w = rng.normal(size=(2, TARGET.n_features))
    held_out = Validation((0.2,), (HeldOut(wrong, loss),), HeldOut(before, loss))
    choice = HoldChoice(0.2, "default", held_out)
    with pytest.MonkeyPatch.context() as patch:
        # what the final weights do on annotations that they have seen
        seen = HeldOut(before if learned is None else learned, loss)
        patch.setattr("bridgetrack.training.keep.judge", lambda *_: seen)
        return keep_better(Movies(TARGET, (), prior, None), TARGET, w, choice).reason


@pytest.mark.parametrize(
    ("lost", "gained", "expected"),
    [
        (3, 2, KeepReason.WORSE),
        (2, 3, KeepReason.BETTER),
        (2, 2, KeepReason.TIE),
        (3, 3, KeepReason.MIXED),
        (3, 4, KeepReason.MIXED),
        (3, 5, KeepReason.BETTER),
    ],
)
def test_the_verdict_does_not_hang_on_the_order(
    lost: int, gained: int, expected: KeepReason
) -> None:
    found = set()
    for draw in range(40):
        order = np.random.default_rng(draw).permutation(N)
        wrong, before = np.zeros((2, N))
        wrong[order[:lost]] = 1
        before[order[lost : lost + gained]] = 1
        found.add(reason(wrong, before))
    assert found == {expected}


def test_a_tie_goes_to_the_start_unless_two_answers_contradict_it() -> None:
    before, none = np.zeros((2, N))
    assert reason(before, before) == KeepReason.TIE
    before[0] = 1
    assert reason(before, before, none) == KeepReason.TIE
    one = before.copy()
    before[N // 2] = 1
    assert reason(before, before, none) == KeepReason.REPAIRS
    assert reason(before, before, one) == KeepReason.REPAIRS
    assert reason(before, before) == KeepReason.TIE
