"""Self-paced learning: who takes part when, and where it ends."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import CRITERIA, L2, LearningOptions, fit, self_paced
from bridgetrack.learning.options import LOSSES
from bridgetrack.learning.risk import Risk
from bridgetrack.learning.self_paced import VIOLATION, difficulties, nearest, novelties
from models import chain_problem, loss_values, multiclass_problem


@given(
    seed=st.integers(0, 1000),
    criterion=st.sampled_from(CRITERIA),
    learner=st.sampled_from(["1-slack", "n-slack"]),
)
@settings(max_examples=5)
def test_ends_with_everybody_and_a_true_objective(seed, criterion, learner):
    model, samples = chain_problem(seed, n=8)
    options = LearningOptions(learner=learner, curriculum=criterion)
    found = fit(model, samples, L2(0.1), options=options)
    attained = float(loss_values(model, samples, found.w, "bridge").mean())
    assert found.objective == pytest.approx(L2(0.1).value(found.w) + attained, abs=1e-9)
    assert found.state is not None and len(found.state.risk.samples) == len(samples)
    assert (np.diff(found.objectives) <= 1e-9).all()
    thresholds = [s.threshold for s in found.stages]
    assert all(b > a for a, b in pairwise(thresholds)) or len(thresholds) < 2
    assert all(0 < s.share < 1 for s in found.stages)


def test_an_update_does_not_begin_again():
    model, samples = chain_problem(4, n=16)
    options = LearningOptions(learner="n-slack", curriculum="slack")
    first = fit(model, samples, L2(0.1), options=options)
    again = fit(model, samples, L2(0.1), options=options, state=first.state)
    assert first.stages and not again.stages
    assert again.objective <= first.objective + 1e-9


# --- how difficult a sample is


PROBLEMS = st.sampled_from([multiclass_problem, chain_problem])


def risk_of(problem, seed):
    model, samples = problem(seed)
    w = np.random.default_rng(seed).normal(size=model.n_features)
    return Risk(model, samples, None, LOSSES["bridge"]), w


@given(seed=st.integers(0, 1000), problem=PROBLEMS)
@settings(max_examples=15)
def test_slack_is_the_loss(seed, problem):
    risk, w = risk_of(problem, seed)
    wanted = loss_values(risk.model, risk.samples, w, "bridge")
    np.testing.assert_allclose(difficulties("slack", risk, L2(1.0), w), wanted, atol=1e-9)


@given(seed=st.integers(0, 1000), problem=PROBLEMS)
@settings(max_examples=8)
def test_novelty_learns_each_sample(seed, problem):
    """The shortest change that beats every wrong output, by enumeration; none without loss."""
    risk, w = risk_of(problem, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(self_paced, "ROUNDS", 100)  # eight rounds leave out some outputs of a few
        found, model = novelties(risk, L2(1.0), w), risk.model
    loss = loss_values(model, risk.samples, w, "bridge")
    assert (found[loss <= VIOLATION] == 0).all()
    done = risk.completions(w).features
    for i, sample in enumerate(risk.samples):
        phi, delta = model._every_output(sample)
        rows = phi - done[i]
        least, most = (
            np.inf if u is None else 0.5 * u @ u
            for u in (nearest(rows, rows @ w + delta - slack) for slack in (VIOLATION, 0.0))
        )
        assert least - 1e-6 <= found[i] <= most + 1e-6


def test_what_no_change_can_learn_is_infinitely_new():
    assert nearest(np.zeros((1, 3)), np.array([1.0])) is None
    opposed = np.array([[1.0, 0.0], [-1.0, 0.0]])
    assert nearest(opposed, np.array([1.0, 1.0])) is None
    np.testing.assert_array_equal(nearest(opposed, np.array([-1.0, -1.0])), np.zeros(2))


def test_the_nearest_change_is_the_foot_of_the_perpendicular():
    """On the line 3 x + 4 y = -10, two from 0; a row of length zero asks for nothing."""
    u = nearest(np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([10.0, -1.0]))
    np.testing.assert_allclose(u, [-1.2, -1.6], atol=1e-6)
