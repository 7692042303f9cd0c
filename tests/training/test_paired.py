"""The paired test that decides which weights are kept: exact, and blind to the order of answers."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binomtest

from bridgetrack.training.fit import HoldChoice, Movies
from bridgetrack.training.keep import Decision, KeepReason, compared_alone, keep_better
from bridgetrack.training.paired import compare, sign_flip
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, Validation, judge
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


def test_answers_that_relaxed_inference_is_torn_on_count_in_part() -> None:
    wrong, other = np.array([0.5, 0.0, 0.75]), np.array([1.0, 0.25, 0.75])
    found = compare(wrong, other, np.arange(3))
    assert (found.gained, found.lost, found.net) == (2, 0, 0.75)
    assert compare(other, wrong, np.arange(3)).net == -0.75


Array = NDArray[np.float64]

TARGET = TrackingModel(tiny_set(np.random.default_rng(3), 12))
N = TARGET.data.n_annotations


def decision(
    wrong: Array, before: Array, halfway: Array, strengths: int = 1, by: str = "default"
) -> Decision:
    """What is kept, where these verdicts on the learned, first and middle weights are held out.

    As many ``strengths`` were tried, and alike; who chose, ``by`` says.
    """
    loss, rng = np.zeros(N), np.random.default_rng(0)
    prior, w = rng.normal(size=(2, TARGET.n_features))
    held = HeldOut(wrong, loss, HeldOut(halfway, loss))
    tried = tuple(0.2 * 2.0**k for k in range(strengths))
    validation = Validation(tried, (held,) * strengths, HeldOut(before, loss))
    choice = HoldChoice(0.2, by, validation)
    return keep_better(Movies(TARGET, (), prior, None), TARGET, w, choice)


def verdicts(order: np.ndarray, gained: int, lost: int) -> Array:
    """Errors of a model where the other errs in the first ten of these answers."""
    wrong = np.zeros(N)
    wrong[order[gained:10]] = wrong[order[10 : 10 + lost]] = 1
    return wrong


FEW = (
    (0, 0, (0, 0), 0.5),
    (2, 0, (0, 0), 0.5),
    (3, 0, (0, 0), 0.5),
    (4, 0, (0, 0), 1.0),
    (4, 0, (1, 0), 0.5),
    (5, 0, (1, 0), 1.0),
    (5, 1, (0, 0), 0.5),
    (6, 1, (0, 0), 1.0),
    (8, 5, (0, 0), 0.5),
    (5, 4, (0, 3), 0.0),
    (7, 5, (0, 5), 0.0),
    (0, 3, (0, 1), 0.5),
    (0, 3, (0, 2), 0.0),
    (0, 3, (2, 3), 0.5),
)
MANY = (
    (0, 0, (0, 0), 0.5),
    (2, 2, (0, 0), 0.5),
    (3, 2, (0, 0), 1.0),
    (3, 0, (3, 0), 1.0),
    (3, 0, (4, 0), 0.5),
    (0, 1, (0, 1), 0.5),
    (3, 3, (0, 0), 0.5),
    (4, 3, (1, 0), 0.5),
    (0, 2, (0, 2), 0.0),
    (1, 0, (0, 0), 1.0),
    (5, 3, (0, 0), 1.0),
    (6, 4, (0, 0), 1.0),
    (5, 4, (0, 0), 0.5),
)
"""Answers gained and lost by what was learned, the same halfway, and how far the model goes."""


@pytest.mark.parametrize(
    ("strengths", "gained", "lost", "middle", "share"),
    [(1, *case) for case in FEW] + [(2, *case) for case in MANY],
)
def test_how_far_a_model_goes(
    strengths: int, gained: int, lost: int, middle: tuple[int, int], share: float
) -> None:
    found, loss, part = set(), np.zeros(N), np.arange(N)
    for draw in range(20):
        order = np.random.default_rng(draw).permutation(N)
        wrong, before, halved = (verdicts(order, *c) for c in ((gained, lost), (0, 0), middle))
        held = HeldOut(wrong, loss, HeldOut(halved, loss))
        one = compared_alone(held, HeldOut(before, loss), part, many=strengths > 1)
        found.add((one.share, one.kept, one.reason))
    reason = {0.0: KeepReason.WORSE, 0.5: KeepReason.HALFWAY, 1.0: KeepReason.BETTER}[share]
    assert found == {(share, "trained" if share else "prior", reason)}


def test_too_few_answers_to_check_it_lead_halfway_unless_lambda_was_given() -> None:
    some = np.random.default_rng(0).normal(size=(20, TARGET.n_features))
    best, *_, worst = sorted(some, key=lambda w: judge(TARGET, w).risk)
    for start, by, reason, share in (
        (worst, "default", KeepReason.UNCHECKED, 0.5),
        (worst, "user", KeepReason.UNCHECKED, 1.0),
        (best, "default", KeepReason.AGREES, 0.0),
    ):
        w = worst if start is best else best
        found = keep_better(Movies(TARGET, (), start, None), TARGET, w, HoldChoice(0.2, by))
        assert (found.reason, found.share) == (reason, share)
        assert found.validation(0.2) is None


def test_a_decision_is_a_cross_validation_of_one_strength() -> None:
    held, prior = (HeldOut(np.full(N, share), np.zeros(N)) for share in (0.25, 0.5))
    found = Decision(KeepReason.BETTER, "", held, prior).validation(0.2)
    assert found == Validation((0.2,), (held,), prior)


def test_the_words_and_the_estimate_are_of_what_is_kept() -> None:
    order = np.arange(N)
    before, wrong, middle = (verdicts(order, *each) for each in ((0, 0), (2, 0), (1, 0)))
    one = decision(wrong, before, middle)
    assert one.held_out is not None
    assert np.array_equal(one.held_out.wrong, middle)
    assert "halfway" in one.words and "1 gained and 0 lost" in one.words


@pytest.mark.parametrize(("gained", "lost", "share"), [(0, 1, 1.0), (0, 2, 0.0), (3, 4, 1.0)])
def test_who_gives_lambda_gets_what_it_leads_to_unless_two_are_lost(
    gained: int, lost: int, share: float
) -> None:
    order = np.arange(N)
    wrong, before = verdicts(order, gained, lost), verdicts(order, 0, 0)
    one = decision(wrong, before, before, by="user")
    assert one.share == share
    assert one.reason == (KeepReason.AS_GIVEN if share else KeepReason.WORSE)
