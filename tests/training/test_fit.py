"""The objective: folds that do not leak, and how far from the start training goes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from bridgetrack.learning import L1, L2, LOSSES
from bridgetrack.learning.risk import Risk
from bridgetrack.models.model import untrained_model
from bridgetrack.progress import run
from bridgetrack.training.fit import (
    CONFIDENT,
    SLIPS,
    TEMPERATURE,
    UNUSUAL,
    Objective,
    errors_of,
    explained_by_slips,
    folds_of,
    margins_of_answers,
    share_of_step,
)
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import choice, train_steps
from bridgetrack.training.training_set import balanced, build_training_set
from partition_problems import interval_covers, problem_of
from training.training_cases import (
    bad_prior,
    confirmed,
    far_apart,
    outputs,
    plain_scene,
    says,
    set_of,
    some_true,
    swapped,
    tiny_set,
    true_columns,
    with_annotations,
)

KINDS = np.array([80.0, 6, 1, 1, 0, 0, 0, 0])


@cache
def twelve():
    return tiny_set(np.random.default_rng(0), 12)


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8))
def test_folds_respect_samples_and_frame_pairs(seed, folds):
    rng, data = np.random.default_rng(seed), twelve()
    pair = np.sort(rng.integers(0, 9, 12))[data.annotation_sample]
    fold = folds_of(replace(data, pair=pair), folds)
    pairs = np.unique(pair)
    assert data.n_annotations >= 10 and fold is not None
    assert set(fold.tolist()) == set(range(min(folds, len(pairs))))
    for one in pairs:
        assert len(set(fold[data.annotation_sample[pair == one]].tolist())) == 1


def test_neighbouring_frame_pairs_are_in_blocks():
    data = tiny_set(np.random.default_rng(0), 60)
    fold = folds_of(replace(data, pair=data.annotation_sample.copy()), 5)
    assert fold is not None
    assert np.count_nonzero(np.diff(fold)) == 14, "5 folds of three blocks of four frame pairs"
    np.testing.assert_array_equal(np.bincount(fold), [12] * 5)


def test_models_are_judged_on_what_they_have_not_seen(monkeypatch):
    data = twelve()
    fold = folds_of(data)
    assert fold is not None
    seen, start = [], np.full(4, 0.1)
    fitted = Objective.fit

    def watched(objective, rows=None, **more):
        result = yield from fitted(objective, rows=rows, **more)
        seen.append((rows, start + 0.5 * (result.w - start)))
        return result

    monkeypatch.setattr(Objective, "fit", watched)
    target = TrackingModel(data)
    other = TrackingModel(tiny_set(np.random.default_rng(1)))
    objective = Objective(target, (other,), start, None, 0.3, 1.0)
    found = run(objective.held_out_errors(0.5))
    of = fold[data.annotation_sample]
    assert len(seen) == fold.max() + 1
    for k, (rows, half_step) in enumerate(seen):
        np.testing.assert_array_equal(rows, np.flatnonzero(fold != k))
        expected = errors_of(target, half_step)
        np.testing.assert_allclose(found[of == k], expected[of == k], atol=1e-6)


def test_weights_of_answers_follow_from_those_that_are_known():
    w, wrong, scene = untrained_model().weights, far_apart(4), plain_scene()
    right = says(scene, np.setdiff1d(some_true(12), wrong))
    said = [*says(scene, swapped(scene, wrong, w), prefix="slip"), *right]
    annotated = with_annotations(scene, said)
    data = balanced(build_training_set(annotated, largest=1), KINDS)
    slips = [i.startswith("slip") for i in annotated.constraints.ids]
    known = np.setdiff1d(np.arange(len(data.samples)), data.annotation_sample[slips])
    seen = balanced(data, KINDS, known)
    others = np.setdiff1d(np.arange(len(data.samples)), known)
    assert not np.array_equal(seen.importance[known], data.importance[known])
    np.testing.assert_array_equal(seen.importance[others], data.importance[others])


def test_weights_of_tied_movies_are_those_of_the_target():
    one, two = (TrackingModel(tiny_set(np.random.default_rng(k))) for k in (1, 2))
    prior = np.full(one.n_features, 0.1)
    mine, others = (
        run(Objective(target, (source,), prior, None, 0.3, 0.05).fit()).w
        for target, source in ((one, two), (two, one))
    )
    risk = Risk(one, one.data.samples, None, LOSSES["bridge"])
    assert risk.loss_of_each(mine).sum() < 0.9 * risk.loss_of_each(others).sum()


def test_regularisers_stay_close_to_the_prior():
    prior, metric = np.arange(3.0), np.array([1.0, 4, 16])
    for name, kind, expected in (("l1", L1, 0.7 * 7), ("l2", L2, 0.7 * 21 / 2)):
        options = TrainingOptions(regularizer=name)
        found = Objective(None, (), prior, metric, 0.7, options=options).regularizer
        assert isinstance(found, kind)
        assert found.value(prior) == 0
        assert found.value(prior + 1) == pytest.approx(expected)


def test_the_share_of_the_step_is_the_mean_of_the_posterior_along_the_way():
    scene = confirmed(plain_scene(), some_true(4))
    model = TrackingModel(build_training_set(scene))
    start = bad_prior().weights
    fitted = (start + untrained_model().weights) / 2
    objective = Objective(model, (), start, None, 0.02)
    found = run(share_of_step(objective, scene, fitted))
    shares = np.linspace(0, 1, 41)
    values, risk = [], Risk(model, model.data.samples, None, LOSSES["bridge"])
    for s in shares:
        w = start + s * (fitted - start)
        values.append(risk.loss_of_each(w).sum() + 4 * L2(0.02, start).value(w))
    density = np.exp((min(values) - np.array(values)) / TEMPERATURE)
    expected = np.trapezoid(density * shares, shares) / np.trapezoid(density, shares)
    assert abs(found - expected) < 0.01
    assert abs(expected - 0.5) > 0.05


# --- answers that contradict what the starting model is confident of


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_margins_never_exceed_what_another_choice_costs(seed):
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


def test_slips_explain_what_they_bring_in_one_case_of_twenty():
    for contradicting in range(6):
        for confirming in range(60):
            chance = binom(contradicting + confirming, SLIPS).sf(contradicting - 1)
            assert explained_by_slips(contradicting, confirming) == (chance >= 0.05)


@pytest.mark.parametrize("slips", [0, 2, 3])
def test_a_model_that_answers_contradict_too_often_does_not_suit(slips):
    scene, w = plain_scene(), untrained_model().weights
    said = far_apart(6, surest=True)
    said[:slips] = swapped(scene, said[:slips], w)
    margin = margins_of_answers(build_training_set(confirmed(scene, said)), w)
    assert (margin <= -CONFIDENT).sum() == (margin <= -UNUSUAL).sum() == slips
    assert (margin >= CONFIDENT).sum() == 6 - slips
    training = run(train_steps(confirmed(scene, said), untrained_model()))
    assert {a.id for a in training.unusual} == {f"a{k + 1}" for k in range(slips)}
    assert training.suited == (slips < 3)


def test_a_slip_does_not_spoil_a_good_model():
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
