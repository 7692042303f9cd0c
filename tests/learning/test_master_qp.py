"""The master problem: certificates, both forms, metrics, groups, extreme scales, and L1."""

import warnings

import numpy as np
import pytest
import qpsolvers
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import SolverError
from bridgetrack.learning import L1, L2, LearningOptions, fit
from bridgetrack.learning import master_qp as module
from bridgetrack.learning.master_qp import solve_master
from models import chain_problem


def rows(seed, m=12, d=5):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, d)), rng.random(m)


def solve_l2_master(A, b, regularizer, groups=None, **how):
    groups = np.zeros(len(b), dtype=int) if groups is None else groups
    return solve_master(A, b, groups, regularizer, **how)


def value(A, b, regularizer, w):
    return regularizer.value(w) + float((A @ w + b).max())


def regularizer(seed, weight, metric, d=5):
    rng = np.random.default_rng(seed + 1)
    return L2(weight, rng.normal(size=d), rng.uniform(0.1, 10, d) if metric else None)


@given(seed=st.integers(0, 10_000), weight=st.sampled_from([1e-2, 1.0, 1e2]))
@settings(max_examples=15)
def test_the_printed_dual_with_a_tangent(seed, weight):
    """001, eq. 13-15 with v not 0, one group, w0 = 0, and the constant that lacks there."""
    A, b = rows(seed)
    v = np.random.default_rng(seed + 2).normal(size=A.shape[1])
    found = solve_l2_master(A + v, b, L2(weight))
    slope = A.T @ found.alpha + v
    dual = b @ found.alpha - slope @ slope / (2 * weight)
    primal = 0.5 * weight * found.w @ found.w + (A @ found.w + b).max() + v @ found.w
    assert found.alpha.min() >= 0 and found.alpha.sum() == pytest.approx(1.0)
    assert dual == pytest.approx(primal, rel=1e-7, abs=1e-7)
    assert dual == pytest.approx(found.dual, rel=1e-9)
    np.testing.assert_allclose(found.w, -slope / weight, rtol=1e-4, atol=1e-5)


@given(
    seed=st.integers(0, 10_000),
    m=st.integers(1, 40),
    weight=st.sampled_from([1e-4, 1e-2, 1.0, 1e2, 1e4]),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    metric=st.booleans(),
)
@settings(max_examples=25)
def test_dual_value_equals_primal(seed, m, weight, scale, metric):
    A, b = rows(seed, m)
    wanted = regularizer(seed, weight, metric)
    found = solve_l2_master(A * scale, b, wanted)
    size = 1 + abs(found.primal)
    assert found.primal == pytest.approx(value(A * scale, b, wanted, found.w), abs=1e-6 * size)
    assert -1e-9 * size <= found.gap <= 1e-6 * size
    assert found.alpha.min() >= 0
    assert found.alpha.sum() == pytest.approx(1)
    # a lower bound is below every value
    others = np.random.default_rng(seed).normal(size=(20, 5)) + found.w
    assert all(value(A * scale, b, wanted, w) >= found.dual - 1e-9 * size for w in others)


def test_when_no_back_end_succeeds_it_is_said(monkeypatch):
    monkeypatch.setattr(module, "call_backend", lambda *_, **__: None)
    with pytest.raises(SolverError, match="no back end solved"):
        solve_l2_master(*rows(2), L2(0.1))


@pytest.mark.parametrize("gives", ["wrong multipliers", "none"])
def test_a_wrong_answer_is_not_believed(monkeypatch, gives):
    A, b = rows(2)
    right = solve_l2_master(A, b, L2(0.1))
    call = module.call_backend

    def poor_daqp(backend, *args, **keywords):
        x, z = call(backend, *args, **keywords)
        if backend != "daqp":
            return x, z
        return x + 1, np.zeros(0) if gives == "none" else np.ones_like(z) / len(z)

    monkeypatch.setattr(module, "call_backend", poor_daqp)
    other = solve_l2_master(A, b, L2(0.1))
    assert other.gap < 1e-6
    assert other.primal == pytest.approx(right.primal, abs=1e-6)


def test_warnings_of_a_back_end_do_not_reach_the_user(monkeypatch, recwarn):
    solve = qpsolvers.solve_problem

    def loud(*given, **more):
        warnings.warn("piqp terminated with status NumericalError", stacklevel=2)
        return solve(*given, **more)

    monkeypatch.setattr(qpsolvers, "solve_problem", loud)
    assert solve_l2_master(*rows(0), L2(1.0)).gap < 1e-6
    assert not recwarn.list


# --- L1


def l1_rows(seed):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(size=(9, 4)), np.zeros(4)]), np.append(rng.random(9), 0.0)


@given(seed=st.integers(0, 10_000), weight=st.sampled_from([1e-3, 0.1, 1.0, 1e3]))
@settings(max_examples=20)
def test_dual_value_of_l1_equals_primal(seed, weight):
    A, b = l1_rows(seed)
    rng = np.random.default_rng(seed)
    wanted = L1(weight, rng.normal(size=4), rng.uniform(0.5, 2, 4))
    found = solve_master(A, b, np.zeros(len(b), dtype=int), wanted)
    size = 1 + abs(found.primal)
    assert found.primal == pytest.approx(wanted.value(found.w) + (A @ found.w + b).max())
    assert abs(found.gap) < 1e-6 * size


def test_unbounded_without_the_reward_bound():
    A, b = l1_rows(0)
    with pytest.raises(SolverError, match="unbounded"):
        solve_master(A[:1], b[:1], np.zeros(1, dtype=int), L1(1e-3))


def test_weights_are_sparse_and_the_gap_is_true():
    model, samples = chain_problem(4, n=8)
    options = LearningOptions(precision=1e-4)
    loose = fit(model, samples, L1(0.01), options=options)
    tight = fit(model, samples, L1(0.3), options=options)
    assert loose.converged and tight.converged
    assert -1e-9 < tight.gap <= 1e-4
    assert np.sum(tight.w == 0) > np.sum(loose.w == 0)
    assert 0 < np.sum(tight.w != 0) < model.n_features
