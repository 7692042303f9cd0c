"""The learners agree, and what each promises about its dual is true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, LearningOptions, Sample, fit, train, train_perceptron
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.online import Dual
from bridgetrack.learning.options import LOSSES
from bridgetrack.learning.risk import Risk
from bridgetrack.progress import run
from models import chain_problem, loss_values, multiclass_problem

CERTIFIED = ["1-slack", "n-slack", "frank-wolfe", "subgradient"]
PROBLEMS = st.sampled_from([multiclass_problem, chain_problem])


def how(learner, **more):
    """Options of a learner, with a precision that it can reach soon."""
    precision = {"subgradient": 2e-2, "frank-wolfe": 1e-3}.get(learner, 1e-4)
    wanted = {"precision": precision, "max_inferences": 3000, **more}
    return LearningOptions(learner=learner, **wanted)


def metric_of(kind, d, seed):
    return {"none": None, "diagonal": np.random.default_rng(seed).uniform(0.5, 2.0, d)}[kind]


@given(
    seed=st.integers(0, 1000),
    problem=PROBLEMS,
    kind=st.sampled_from(["none", "diagonal"]),
    weight=st.sampled_from([0.1, 1.0]),
)
@settings(max_examples=3)
def test_learners_reach_the_same_objective(seed, problem, kind, weight):
    """One label each: the problem is convex, with any prior and metric."""
    model, samples = problem(seed, full=True)
    prior = np.random.default_rng(seed).normal(size=model.n_features)
    regularizer = L2(weight, prior, metric_of(kind, model.n_features, seed))
    wanted = fit(model, samples, regularizer, options=LearningOptions(precision=1e-6))
    for learner in CERTIFIED:
        options = how(learner)
        found = fit(model, samples, regularizer, options=options)
        attained = float(loss_values(model, samples, found.w, "bridge").mean())
        assert found.converged and found.gap <= options.precision
        assert found.objective == pytest.approx(regularizer.value(found.w) + attained, abs=1e-9)
        assert wanted.lower_bound - 1e-9 <= found.objective
        assert found.objective <= wanted.objective + options.precision
        assert found.lower_bound <= wanted.objective + 1e-9


def value_at(bundle, w):
    """The surrogate that a bundle is aimed at."""
    penalty = bundle.risk.penalty(w).values(w, 1).sum() / bundle.risk.n_annotations
    return float(bundle.regularizer.value(w)) + penalty + bundle.tangent.at(w)


@given(seed=st.integers(0, 1000), problem=PROBLEMS, kind=st.sampled_from(["none", "diagonal"]))
@settings(max_examples=5)
def test_line_search_never_lowers_the_dual(seed, problem, kind):
    """And the dual never exceeds the primal, anywhere; the step is the best on its segment."""
    rng = np.random.default_rng(seed)
    model, samples = problem(seed)
    d = model.n_features
    risk = Risk(model, samples, None, LOSSES["bridge"])
    bundle = Bundle(risk, L2(0.1, rng.normal(size=d), metric_of(kind, d, seed)), LearningOptions())
    start = rng.normal(size=d)
    bundle.set_tangent(risk.tangent(start), start)
    dual = Dual(bundle)
    dual.aim()
    np.testing.assert_allclose(dual.w, bundle.regularizer.prior, atol=1e-9)
    points = [rng.normal(size=d) * s for s in (0.1, 1.0, 3.0)]
    least = min(value_at(bundle, w) for w in points)
    for _ in range(30):
        # outputs found at unrelated weights too: a step may be useless, but never harmful
        found = risk.penalty(dual.w if rng.random() < 0.5 else points[int(rng.integers(3))])
        i = int(rng.integers(len(samples)))
        before, old = dual.value(), (dual.features[i].copy(), float(dual.losses[i]))
        dual.move(i, found.features[i], float(found.losses[i]))
        after, kept = dual.value(), (dual.features[i].copy(), float(dual.losses[i]))
        assert after >= before - 1e-10
        for gamma in (0.1, 0.5, 1.0):
            dual.features[i] = old[0] + gamma * (found.features[i] - old[0])
            dual.losses[i] = old[1] + gamma * (found.losses[i] - old[1])
            dual.refresh()
            assert after >= dual.value() - 1e-9
        dual.features[i], dual.losses[i] = kept
        dual.refresh()
        assert dual.value() == pytest.approx(after, abs=1e-9)
        assert after <= min(least, value_at(bundle, dual.w)) + 1e-9


@given(seed=st.integers(0, 1000), problem=PROBLEMS, learner=st.sampled_from(CERTIFIED))
@settings(max_examples=10)
def test_gap_is_a_true_bound_at_every_step(seed, problem, learner):
    """Whenever a learner is stopped, the minimum lies within the gap it reports."""
    model, samples = problem(seed, full=True)
    regularizer = L2(0.2, np.random.default_rng(seed).normal(size=model.n_features))
    wanted = fit(model, samples, regularizer, options=LearningOptions(precision=1e-6))
    steps = train(
        model, samples, regularizer, options=how(learner, adaptive=False, max_inferences=60)
    )
    seen = 0
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            result = stop.value
            break
        seen += 1
        assert step.objective >= wanted.lower_bound - 1e-9
        assert step.objective - step.gap <= wanted.objective + 1e-9
    assert seen == len(result.steps)
    assert result.gap >= -1e-9
    assert (np.diff([s.inference_seconds for s in result.steps]) >= 0).all()
    assert result.steps[-1].inference_seconds <= result.inference_seconds


@pytest.mark.parametrize("learner", ["n-slack", "frank-wolfe"])
def test_learners_go_on_from_what_another_learned(learner):
    model, samples = chain_problem(4, n=10, full=True)
    first = fit(model, samples, L2(0.3), options=how("1-slack"))
    again = fit(model, samples, L2(0.3), options=how(learner), state=first.state)
    scratch = fit(model, samples, L2(0.3), options=how(learner))
    assert again.objective <= first.objective + 1e-9
    begin = again.steps[0].objective if again.steps else again.objective
    assert begin < scratch.steps[0].objective - 1e-3
    back = fit(model, samples, L2(0.2), options=how("1-slack"), state=scratch.state)
    fresh = fit(model, samples, L2(0.2), options=how("1-slack"))
    assert back.objective == pytest.approx(fresh.objective, abs=2e-4)


def test_cached_outputs_save_inference():
    model, samples = chain_problem(0, n=10, full=True)
    cached, plain = (
        fit(model, samples, L2(0.1), options=how("frank-wolfe", precision=1e-2, cache=cache))
        for cache in (True, False)
    )
    assert 2 * cached.n_inferences < plain.n_inferences
    # the gap costs an inference of all samples: it is computed when a pass promises little
    assert 4 * len(plain.steps) < plain.n_inferences
    assert cached.objective == pytest.approx(plain.objective, abs=2e-2)


def test_the_perceptron_starts_at_the_prior_and_reports_the_task_loss():
    model, samples = chain_problem(0, n=20)
    prior = np.random.default_rng(0).normal(size=model.n_features)
    found = fit(model, samples, L2(1.0, prior), options=how("perceptron"))
    before, after = (model.inference(samples, w).losses.mean() for w in (prior, found.w))
    assert found.objectives[0] == pytest.approx(before)
    assert found.objective == pytest.approx(after) and after < 0.5 * before
    assert np.isnan(found.gap) and found.state is None
    assert (np.diff([s.objective for s in found.steps]) <= 0).all()


def test_one_step_is_the_difference_of_features():
    model, samples = multiclass_problem(0, n=1)
    x, y_star = samples[0].x, frozenset({2})
    predicted = model.inference(samples, np.zeros(9))
    np.testing.assert_array_equal(predicted.features[0], model.joint_feature(x, (0,)))
    risk = Risk(model, [Sample(x, y_star)], None, LOSSES["hinge"])
    found = run(train_perceptron(risk, np.zeros(9), max_epochs=1, rate=0.5))
    wanted = model.joint_feature(x, (2,)) - model.joint_feature(x, (0,))
    np.testing.assert_allclose(found.w, 0.5 * wanted)
    assert "limit" in found.reason
