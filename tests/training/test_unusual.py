"""Answers that contradict what the starting model is confident of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.fit import (
    CONFIDENT,
    SLIPS,
    UNUSUAL,
    explained_by_slips,
    margins_of_answers,
)
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import choice, train_steps
from bridgetrack.training.training_set import build_training_set
from partition_problems import interval_covers, problem_of
from training.training_cases import (
    confirmed,
    far_apart,
    outputs,
    plain_scene,
    set_of,
    swapped,
    true_columns,
)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_margins_never_exceed_what_another_choice_costs(seed: int) -> None:
    """Of the event that is chosen and confirmed, or that an answer rules out."""
    rng = np.random.default_rng(seed)
    problems = [problem_of(interval_covers(rng, n, 10), n) for n in rng.integers(4, 7, 4).tolist()]
    data, w = set_of(rng, problems, 4, 0.1), 6 * rng.normal(size=4)
    margin = margins_of_answers(data, w)
    for a, k in enumerate(data.annotation_sample.tolist()):
        part = TrackingModel(data).columns(k)
        every = outputs(data, k)
        scores = [float((data.phi[part] @ w) @ y) for y in every]
        agree = [(data.sets[list(data.samples[k].y_star)][:, part] @ y).all() for y in every]
        said = [bool((data.sets[a][:, part] @ y)[0]) for y in every]
        other = [not one for one in said] if margin[a] > 0 else agree
        best = max((s for s, there in zip(scores, other, strict=True) if there), default=-np.inf)
        assert margin[a] == 0 or max(scores) - best >= abs(margin[a]) - 1e-6


def test_slips_explain_what_they_bring_in_one_case_of_twenty() -> None:
    for contradicting in range(6):
        for confirming in range(60):
            chance = binom(contradicting + confirming, SLIPS).sf(contradicting - 1)
            assert explained_by_slips(contradicting, confirming) == (chance >= 0.05)


@pytest.mark.parametrize("slips", [0, 2, 3])
def test_a_model_that_answers_contradict_too_often_does_not_suit(slips: int) -> None:
    scene, w = plain_scene(), untrained_model().weights
    said = far_apart(6, surest=True)
    said[:slips] = swapped(scene, said[:slips], w)
    margin = margins_of_answers(build_training_set(confirmed(scene, said)), w)
    assert (margin <= -CONFIDENT).sum() == (margin <= -UNUSUAL).sum() == slips
    assert (margin >= CONFIDENT).sum() == 6 - slips
    training = run(train_steps(confirmed(scene, said), untrained_model()))
    assert {a.id for a in training.unusual} == {f"a{k + 1}" for k in range(slips)}
    assert training.suited == (slips < 3)


def test_a_slip_does_not_spoil_a_good_model() -> None:
    """One wrong answer among three, about a cell that the starting model is confident of."""
    scene, prior = plain_scene(), untrained_model()
    few = far_apart(3)
    lied = confirmed(scene, np.concatenate([swapped(scene, few[:1], prior.weights), few[1:]]))
    training = run(train_steps(lied, prior))
    assert [a.id for a in training.unusual] == ["a1"]
    assert training.suited
    assert training.step < 0.6  # it does not call for the whole step by itself
    chosen = choice(scene, training.model.weights)
    assert chosen[true_columns()].mean() > 0.95
