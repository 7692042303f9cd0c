"""Training: monotone, certified, the same by every route."""

from dataclasses import replace
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import ALGORITHM_1, L1, L2, LOSSES, LearningOptions, Sample, fit, train
from bridgetrack.learning.risk import Risk
from models import PartialChain, chain_problem, loss_values, lower_bound, multiclass_problem

FINE = LearningOptions(precision=1e-5)
names = st.sampled_from(sorted(LOSSES))
PROBLEMS = st.sampled_from([multiclass_problem, chain_problem])
CERTIFIED = ["1-slack", "n-slack", "frank-wolfe", "subgradient"]


def objective(model, samples, regularizer, w, loss):
    return regularizer.value(w) + float(loss_values(model, samples, w, loss).mean())


@given(seed=st.integers(0, 10_000), problem=PROBLEMS, name=names)
@settings(max_examples=40)
def test_penalty_minus_reward_is_the_mean_loss(seed, problem, name):
    """Plain loss-augmented inference suffices, also for those that ask for Y°: six are three."""
    model, samples = problem(seed, n=4)
    w = np.random.default_rng(seed).normal(size=model.n_features)
    risk = Risk(model, samples, None, LOSSES[name])
    penalty = risk.penalty(w)
    mean = loss_values(model, samples, w, name).mean()
    assert penalty.values(w, 1).mean() + risk.tangent(w).at(w) == pytest.approx(mean)
    np.testing.assert_allclose(penalty.bounds, penalty.values(w, 1))  # inference is exact here


@given(seed=st.integers(0, 1000), loss=names, way=st.sampled_from([*CERTIFIED, "literal"]))
@settings(max_examples=25)
def test_objective_never_increases_and_is_true(seed, loss, way):
    model, samples = multiclass_problem(seed)
    start, prior = np.random.default_rng(seed).normal(size=(2, model.n_features))
    learner, treatment = (None, way) if way == "literal" else (way, "exact")
    how = {"treatment": treatment, "options": LearningOptions(learner=learner, precision=2e-2)}
    near = L2(0.3, prior)
    found = fit(model, samples, near, loss=loss, initial=start, **how)
    assert (np.diff(found.objectives) <= 1e-9).all()
    assert found.objectives[0] == pytest.approx(objective(model, samples, near, start, loss))
    assert found.objective == pytest.approx(objective(model, samples, near, found.w, loss))
    assert (np.diff([s.objective for s in found.steps]) <= 1e-9).all()


@given(seed=st.integers(0, 1000), loss=names, treatment=st.sampled_from(["exact", "literal"]))
@settings(max_examples=10)
def test_bounds_never_exceed_the_penalty(seed, loss, treatment):
    model, samples = multiclass_problem(seed)
    found = fit(model, samples, L2(0.05), loss=loss, treatment=treatment)
    rng = np.random.default_rng(seed)
    for scale in (0.0, 0.3, 3.0, 30.0):
        w = rng.normal(size=model.n_features) * scale
        best = model.loss_augmented_inference(samples, w).bounds
        assert lower_bound(found.state, w) <= np.mean(best) + 1e-9 * (1 + scale)


@given(seed=st.integers(0, 1000), problem=PROBLEMS)
@settings(max_examples=3)
def test_switches_agree_on_full_annotation(seed, problem):
    """One label each: R is linear, the problem convex, and training is BMRM."""
    model, samples = problem(seed, full=True)
    one_slack = replace(FINE, learner="1-slack")
    found = {
        (recycle, adaptive): fit(
            model,
            samples,
            L2(0.1),
            options=replace(one_slack, recycle=recycle, adaptive=adaptive, cache=False),
        )
        for recycle in (False, True)
        for adaptive in (False, True)
    }
    with_cache = fit(model, samples, L2(0.1), options=one_slack)
    wanted = found[True, True].objective
    for result in (*found.values(), with_cache):
        assert result.converged and result.gap <= 1e-5
        assert result.objective == pytest.approx(wanted, abs=2e-5)
        assert result.lower_bound <= wanted + 1e-9
    assert found[True, True].n_inferences < found[False, True].n_inferences
    assert with_cache.n_inferences < found[False, False].n_inferences


@pytest.mark.parametrize("loss", ["bridge", "max-delta"])
def test_an_iteration_that_gains_too_little_is_the_last(loss):
    """Algorithm 1, line 15, where the tangent still changes."""
    model, samples = multiclass_problem(21, n=40)
    options = LearningOptions(precision=5e-2, adaptive=False)
    found = fit(model, samples, L2(0.3), loss=loss, options=options)
    *gains, last = -np.diff(found.objectives)
    assert gains and min(gains) > options.precision > last


def test_progress_can_be_watched_and_cancelled():
    model, samples = chain_problem(0, n=10)
    training = train(model, samples, L2(0.1))
    first = next(training)
    second = next(training)
    training.close()
    assert first.n_inferences < second.n_inferences
    assert first.gap == np.inf and np.isfinite(second.gap)
    # the surrogate is above J, and below it only lies its own lower bound
    assert second.objective >= objective(model, samples, L2(0.1), second.w, "bridge") - 1e-9
    assert second.lower <= second.objective
    with pytest.raises(StopIteration):
        next(training)


def test_limit_of_calls_is_reported():
    model, samples = chain_problem(0, n=10)
    found = fit(model, samples, L2(0.01), options=replace(ALGORITHM_1, max_inferences=4))
    assert found.n_inferences == 4
    assert not found.converged and "limit" in found.reason
    assert found.gap > 1e-3


class Sloppy(PartialChain):
    """A chain whose loss-augmented inference may miss the best output, but knows by how much."""

    def loss_augmented_inference(self, samples, w, sign=1):
        best = super().loss_augmented_inference(samples, w, sign)
        if hash(w.tobytes()) % 3:
            return best
        other = self.compatible_inference(samples, w)
        return replace(other, bounds=best.bounds)


def test_inexact_inference_keeps_the_gap_honest():
    model, samples = chain_problem(6, n=10, full=True)
    exact = fit(model, samples, L2(0.1), options=FINE)
    found = fit(Sloppy(3, 3), samples, L2(0.1), options=FINE)
    true = objective(model, samples, L2(0.1), found.w, "bridge")
    assert found.objective >= true - 1e-9
    assert found.lower_bound <= exact.objective + 1e-9
    assert found.converged == (found.gap <= 1e-5)


class SloppyReward(PartialChain):
    """A chain whose compatible inference may return another compatible output than the best."""

    def compatible_inference(self, samples, w):
        best = super().compatible_inference(samples, w)
        if crc32(w.tobytes()) % 2:
            return best
        return replace(super().compatible_inference(samples, -w), bounds=best.bounds)


@pytest.mark.parametrize("recycle", [True, False])
def test_the_objective_never_increases_though_completions_get_worse(recycle):
    options = replace(FINE, recycle=recycle, adaptive=False)
    for seed in range(8):
        _, samples = chain_problem(seed, n=10)
        start = np.random.default_rng(seed).normal(size=18)
        found = fit(SloppyReward(3, 3), samples, L2(0.05), options=options, initial=start)
        assert (np.diff(found.objectives) <= 1e-9).all()


def test_constant_features_are_harmless():
    model, samples = multiclass_problem(0)
    flat = [Sample(np.zeros(3), s.y_star) for s in samples]
    for regularizer in (L2(0.1), L1(0.1)):
        found = fit(model, flat, regularizer)
        np.testing.assert_allclose(found.w, 0, atol=1e-12)
        assert found.converged
