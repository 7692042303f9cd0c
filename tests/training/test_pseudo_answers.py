"""Pseudo-answers: what the starting model is confident of enters the risk."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bridgetrack.models.shipped import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.fit import errors_of
from bridgetrack.training.outcome import choice
from bridgetrack.training.pseudo_answers import (
    CONFIDENT,
    PER_ANSWER,
    SLIPS,
    add_pseudo_answers,
    explained_by_slips,
    weigh_pseudo_answers,
)
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import TrainingSet, build_training_set
from partition_problems import brute_force, interval_covers, problem_of
from training.training_cases import (
    confirmed,
    far_apart,
    middle_set,
    outputs,
    plain_scene,
    problem_in,
    set_of,
    swapped,
    true_columns,
)

SEEDS = st.integers(0, 2**32 - 1)


def confident_set(rng: np.random.Generator) -> tuple[TrainingSet, np.ndarray]:
    """Samples with an annotation each, and weights that are confident of some events."""
    sizes = rng.integers(4, 7, 4).tolist()
    problems = [problem_of(interval_covers(rng, n, 10), n) for n in sizes]
    return set_of(rng, problems, 4, 0.1), 6 * rng.normal(size=4)


def with_weight(data: TrainingSet, w: np.ndarray) -> TrainingSet:
    """The same with pseudo-answers of weight 1/2, whatever the answers say."""
    return replace(add_pseudo_answers(data, w), pseudo_weight=0.5)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_they_have_a_wide_margin_and_agree_with_the_answers(seed: int) -> None:
    data, w = confident_set(np.random.default_rng(seed))
    found = with_weight(data, w)
    pseudo = found.pseudo
    assert pseudo is not None
    for k in range(4):
        problem, part = problem_in(data, k)
        scores, best = data.phi[part] @ w, brute_force(problem, data.phi[part] @ w)
        for column in np.flatnonzero(pseudo[part]).tolist():
            others = np.ones(problem.n_columns, dtype=bool)
            others[column] = False
            assert best - brute_force(problem, scores, others) >= CONFIDENT - 1e-6
    answered = np.asarray(data.sets.sum(axis=0)).ravel() > 0
    assert not (pseudo & (answered | ~data.allowed)).any()
    plain = TrackingModel(data).compatible_inference(data.samples, w)
    mine = TrackingModel(found).compatible_inference(found.samples, w)
    # the best output that agrees with the answers has them already
    np.testing.assert_allclose(mine.bounds, plain.bounds, atol=1e-6)
    np.testing.assert_allclose(mine.losses, 0, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(SEEDS)
def test_they_count_as_weighted_annotations(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data, w = confident_set(rng)
    data = with_weight(replace(data, importance=rng.random(4) + 0.5), w)
    assert data.pseudo is not None
    model, v = TrackingModel(data), rng.normal(size=4)
    up = model.loss_augmented_inference(data.samples, v).bounds
    down = model.compatible_inference(data.samples, v).bounds
    wrong = model.incompatible_inference(data.samples, v).bounds
    for sample in data.samples:
        k, part = sample.x, model.columns(sample.x)
        rows = data.sets[list(sample.y_star)][:, part]
        values, losses = [], []
        for y in outputs(data, k):
            broken = (data.pseudo[part] & (y == 0)).sum()
            missed = rows.shape[0] - (rows @ y).sum() + data.pseudo_weight * broken
            losses.append(data.importance[k] * missed)
            values.append(data.importance[k] * float((data.phi[part] @ v) @ y))
        value, loss = np.array(values), np.array(losses)
        assert up[k] == pytest.approx((value + loss).max(), abs=1e-6)
        assert down[k] == pytest.approx(value[loss < 1e-9].max(), abs=1e-6)
        if (loss > 1e-9).any():
            assert wrong[k] == pytest.approx((value + loss)[loss > 1e-9].max(), abs=1e-5)


def test_models_are_judged_on_answers_alone() -> None:
    rng = np.random.default_rng(1)
    data, w = confident_set(rng)
    v = rng.normal(size=4)
    one, other = (errors_of(TrackingModel(d), v) for d in (with_weight(data, w), data))
    np.testing.assert_allclose(one, other, atol=1e-9)


def test_weights_that_know_nothing_are_confident_of_nothing() -> None:
    found = add_pseudo_answers(middle_set(np.random.default_rng(0)), np.zeros(6))
    assert found.pseudo is not None
    assert not found.pseudo.any()
    assert found.n_pseudo == 0


def test_their_weight_follows_from_the_answers_of_some_samples() -> None:
    data, w = confident_set(np.random.default_rng(0))
    data = add_pseudo_answers(data, w)
    everything = np.ones(len(data.column_sample), dtype=bool)
    data = replace(data, pseudo=everything, verdict=np.array([1, 0, 0, 0], dtype=np.int8))
    for rows in (np.arange(4), np.array([0, 2])):
        found = weigh_pseudo_answers(data, rows)
        share = PER_ANSWER / np.isin(data.column_sample, rows).sum()
        assert share / 2**0.5 < found.pseudo_weight <= min(share, 1)
        versions = {sample.version for sample in found.samples}
        assert versions.isdisjoint(sample.version for sample in data.samples)
    nobody = weigh_pseudo_answers(data, np.array([1]))
    assert nobody.pseudo_weight == nobody.n_pseudo == 0


def test_slips_explain_what_they_bring_in_one_case_of_twenty() -> None:
    for contradicting in range(6):
        for confirming in range(60):
            chance = binom(contradicting + confirming, SLIPS).sf(contradicting - 1)
            assert explained_by_slips(contradicting, confirming) == (chance >= 0.05)


def test_a_model_that_answers_contradict_too_often_gives_none() -> None:
    scene, w = plain_scene(), untrained_model().weights
    moves = far_apart(6, surest=True)
    for slips in range(4):
        said = moves.copy()
        said[:slips] = swapped(scene, moves[:slips], w)
        data = add_pseudo_answers(build_training_set(confirmed(scene, said)), w)
        assert data.verdict is not None
        assert (data.verdict < 0).sum() == len(data.unusual) == slips
        assert (data.n_pseudo > 0) == (slips < 3)
    training = run(train_steps(confirmed(scene, said), untrained_model()))
    assert {a.id for a in training.unusual} == {"a1", "a2", "a3"}
    assert not training.suited


def test_a_slip_does_not_spoil_a_good_model() -> None:
    """One wrong answer among three, about a cell that the starting model is confident of."""
    scene, prior = plain_scene(), untrained_model()
    few = far_apart(3)
    lied = confirmed(scene, np.concatenate([swapped(scene, few[:1], prior.weights), few[1:]]))
    training = run(train_steps(lied, prior))
    assert [a.id for a in training.unusual] == ["a1"]
    assert training.suited
    assert training.n_pseudo > 0
    assert training.step < 0.6  # it does not call for the whole step by itself
    chosen = choice(scene, training.model.weights)
    assert chosen[true_columns()].mean() > 0.95
