"""What a later training takes over from an earlier one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, LearningOptions, Sample, fit
from models import chain_problem, lower_bound, multiclass_problem

FINE = LearningOptions(precision=1e-4)


@pytest.mark.parametrize("learner", ["1-slack", "n-slack"])
@pytest.mark.parametrize("cache", [False, True])
def test_same_training_again_costs_no_inference_for_the_penalty(learner, cache):
    model, samples = chain_problem(0, n=15)
    options = replace(FINE, learner=learner, cache=cache)
    first = fit(model, samples, L2(0.1), options=options)
    again = fit(model, samples, L2(0.1), options=options, state=first.state)
    assert again.n_inferences == 0
    assert again.objective == pytest.approx(first.objective, abs=1e-9)


def test_bounds_are_rescaled_with_the_number_of_annotations():
    model, samples = chain_problem(0, n=15)
    first = fit(model, samples, L2(0.1), n_annotations=15, options=FINE)
    warm = fit(model, samples, L2(0.1), n_annotations=30, options=FINE, state=first.state)
    w = np.random.default_rng(0).normal(size=model.n_features)
    penalty = model.loss_augmented_inference(samples, w).bounds.sum() / 30
    assert lower_bound(warm.state, w) <= penalty + 1e-9
    at_first = model.loss_augmented_inference(samples, first.w).bounds.sum()
    begun = L2(0.1).value(first.w) + at_first / 30 + warm.state.tangent.at(first.w)
    assert warm.state.value(first.w) == pytest.approx(begun)


@given(seed=st.integers(0, 1000))
@settings(max_examples=5)
def test_added_and_changed_annotations(seed):
    """Whatever is taken over, the optimum of the new problem is found (full annotation: convex)."""
    model, samples = multiclass_problem(seed, n=30, full=True)
    first = fit(model, samples[:25], L2(0.1), options=FINE)
    moved = Sample(samples[3].x, frozenset({0}), key="moved")
    new = (*samples[:3], moved, *samples[5:])
    warm = fit(model, new, L2(0.1), options=FINE, state=first.state)
    scratch = fit(model, new, L2(0.1), options=FINE)
    assert warm.objective == pytest.approx(scratch.objective, abs=2e-4)
    penalty = model.loss_augmented_inference(new, scratch.w).bounds.mean()
    assert lower_bound(warm.state, scratch.w) <= penalty + 1e-9


def test_an_input_that_changed_in_place_is_not_taken_for_the_old_one():
    """Samples without keys: the objects are the same, what they hold is not."""
    model, samples = multiclass_problem(0, full=True)
    bare = tuple(Sample(s.x.copy(), s.y_star) for s in samples)
    state = fit(model, bare, L2(0.1)).state
    for s in bare:
        s.x[:] = -s.x
    assert state is not None
    warm, fresh = fit(model, bare, L2(0.1), state=state), fit(model, bare, L2(0.1))
    assert warm.n_inferences > 0
    assert warm.objective == pytest.approx(fresh.objective, abs=2e-3)


def test_planes_with_a_multiplier_are_never_dropped():
    model, samples = chain_problem(0, n=15, full=True)
    few, many = (
        fit(model, samples, L2(0.1), options=replace(FINE, max_bounds=most)) for most in (1, 1000)
    )
    assert few.converged
    assert few.objective == pytest.approx(many.objective, abs=2e-4)
    assert len(few.state.planes) < len(many.state.planes)
