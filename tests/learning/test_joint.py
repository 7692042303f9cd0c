"""Joint training: its limits, its certificate, monotone, and what it reuses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.learning import (
    L2,
    Coupling,
    Domain,
    LearningOptions,
    Sample,
    fit,
    fit_joint,
    loss_values,
    train_joint,
)
from models import chain_problem, multiclass_problem

FINE = LearningOptions(precision=1e-6)
problems = st.sampled_from([multiclass_problem, chain_problem])
seeds = st.integers(0, 1000)
strengths = st.sampled_from([0.05, 0.3, 2.0])


def domains_of(problem: Any, seed: int, n: int = 2, full: bool = False) -> list[Domain]:
    """Domains that differ, drawn one seed after the other."""
    return [Domain(*problem(seed + 5000 * k, full=full)) for k in range(n)]


def together(domains: Sequence[Domain]) -> list[Sample]:
    """All samples, without names that occur twice."""
    return [Sample(s.x, s.y_star) for domain in domains for s in domain.samples]


def shift(d: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=0.3, size=d)


@given(seed=seeds, problem=problems, lam=strengths, rho=strengths)
@settings(max_examples=8, deadline=None)
def test_one_domain_is_plain_training(seed: int, problem: Any, lam: float, rho: float) -> None:
    domain = domains_of(problem, seed, 1, full=True)[0]
    d = domain.model.n_features
    prior, metric = shift(d, seed), np.linspace(0.5, 2.0, d)
    joint = fit_joint([domain], Coupling(lam, rho, prior, metric), options=FINE)
    tau = rho * lam / (rho + lam)
    plain = fit(domain.model, domain.samples, L2(tau, prior, metric), options=FINE)
    assert joint.objective == pytest.approx(plain.objective, abs=3e-6)
    np.testing.assert_allclose(joint.weights[0], plain.w, atol=2e-2)
    step = joint.weights[0] - prior
    np.testing.assert_allclose(joint.w, prior + step * rho / (lam + rho), atol=1e-9)


@given(seed=seeds, problem=problems, lam=strengths, rho=strengths)
@settings(max_examples=8, deadline=None)
def test_one_partly_annotated_domain_has_the_plain_objective(
    seed: int, problem: Any, lam: float, rho: float
) -> None:
    """CCCP may end elsewhere, but what plain training says of that place is the same."""
    domain = domains_of(problem, seed, 1)[0]
    joint = fit_joint([domain], Coupling(lam, rho))
    tau = L2(rho * lam / (rho + lam))
    plain = fit(domain.model, domain.samples, tau, initial=joint.weights[0])
    assert plain.objectives[0] == pytest.approx(joint.objective, abs=1e-9)


@given(seed=seeds, problem=problems, rho=strengths)
@settings(max_examples=5, deadline=None)
def test_a_fixed_shared_part_is_independent_training(seed: int, problem: Any, rho: float) -> None:
    domains = domains_of(problem, seed, 3, full=True)
    prior = shift(domains[0].model.n_features, seed)
    alone = [fit(x.model, x.samples, L2(rho, prior), options=FINE) for x in domains]
    wanted = sum(r.objective for r in alone)
    exact = fit_joint(domains, Coupling(np.inf, rho, prior), options=FINE)
    nearly = fit_joint(domains, Coupling(1e6, rho, prior), options=FINE)
    assert exact.objective == pytest.approx(wanted, abs=1e-5)
    assert nearly.objective == pytest.approx(wanted, rel=1e-4, abs=1e-4)
    np.testing.assert_allclose(exact.w, prior)
    for d, single in enumerate(alone):
        assert exact.risks[d] == pytest.approx(single.risk, abs=2e-2)


@given(seed=seeds, problem=problems, lam=strengths)
@settings(max_examples=5, deadline=None)
def test_an_infinite_tie_is_union(seed: int, problem: Any, lam: float) -> None:
    """On the sum of the domain risks, each a mean here."""
    domains = domains_of(problem, seed, 2, full=True)
    model, n = domains[0].model, len(domains[0].samples)
    union = fit(model, together(domains), L2(lam), n_annotations=n, options=FINE)
    exact = fit_joint(domains, Coupling(lam, np.inf), options=FINE)
    nearly = fit_joint(domains, Coupling(lam, 1e6), options=FINE)
    assert exact.objective == pytest.approx(union.objective, abs=3e-6)
    assert nearly.objective == pytest.approx(union.objective, rel=1e-4, abs=1e-4)
    np.testing.assert_array_equal(exact.weights[0], exact.weights[1])
    np.testing.assert_array_equal(exact.w, exact.weights[0])


@given(seed=seeds, problem=problems, lam=strengths, rho=strengths)
@settings(max_examples=10, deadline=None)
def test_objective_never_increases_and_is_true(
    seed: int, problem: Any, lam: float, rho: float
) -> None:
    domains = domains_of(problem, seed)
    coupling = Coupling(lam, rho)
    start = np.random.default_rng(seed).normal(size=(2, domains[0].model.n_features))
    found = fit_joint(domains, coupling, initial=start)
    assert (np.diff(found.objectives) <= 1e-9).all()
    assert (np.diff(found.history.objective) <= 1e-9).all()
    risks = [
        loss_values(x.model, x.samples, w, "bridge").mean()
        for x, w in zip(domains, found.weights, strict=True)
    ]
    np.testing.assert_allclose(found.risks, risks, atol=1e-9)
    assert found.objective == pytest.approx(coupling.value(found.weights) + sum(risks))
    first = [
        loss_values(x.model, x.samples, w, "bridge").mean()
        for x, w in zip(domains, start, strict=True)
    ]
    assert found.objectives[0] == pytest.approx(coupling.value(start) + sum(first))


@given(seed=seeds, problem=problems, treatment=st.sampled_from(["exact", "literal"]))
@settings(max_examples=8, deadline=None)
def test_bounds_never_exceed_what_they_bound(seed: int, problem: Any, treatment: Any) -> None:
    domains = domains_of(problem, seed)
    found = fit_joint(domains, Coupling(0.05, 0.2), treatment=treatment)
    rng = np.random.default_rng(seed)
    for domain, state in zip(domains, found.states, strict=True):
        for scale in (0.0, 0.3, 3.0, 30.0):
            w = rng.normal(size=domain.model.n_features) * scale
            best = [
                domain.model.loss_augmented_inference(s.x, s.y_star, w).bound
                for s in domain.samples
            ]
            bounds = state.slopes @ w + state.offsets
            assert bounds.max() <= np.mean(best) + 1e-9 * (1 + scale)


@given(seed=seeds, problem=problems)
@settings(max_examples=5, deadline=None)
def test_the_lower_bound_holds_for_full_annotation(seed: int, problem: Any) -> None:
    domains = domains_of(problem, seed, full=True)
    coupling = Coupling(0.1, 0.4)
    found = fit_joint(domains, coupling, options=FINE)
    rough = fit_joint(domains, coupling, options=LearningOptions(precision=0.05))
    assert found.converged and found.gap <= 1e-6
    assert rough.lower_bound <= found.objective + 1e-9
    assert found.lower_bound <= rough.objective + 1e-9


def test_what_is_known_of_a_domain_outlives_its_companions() -> None:
    """A source that was trained alone hardly needs inference again, whatever is tied to it."""
    source, target = domains_of(chain_problem, 1)
    other = Domain(*chain_problem(77))
    before = fit_joint([source, target], Coupling(0.1, 0.3))
    fresh = fit_joint([source, other], Coupling(0.1, 1.0))
    again = fit_joint([source, other], Coupling(0.1, 1.0), states=[before.states[0], None])
    kept = again.states[0]
    assert any((kept.slopes == slope).all(axis=1).any() for slope in before.states[0].slopes)
    assert again.objective == pytest.approx(fresh.objective, abs=5e-3)
    same = fit_joint([source, target], Coupling(0.1, 0.3), states=before.states)
    assert same.n_inferences < before.n_inferences
    assert same.objective <= before.objective + 1e-9


def test_the_limit_of_calls_is_kept_and_progress_is_told() -> None:
    domains = domains_of(chain_problem, 2)
    steps = train_joint(domains, Coupling(0.01, 0.01), options=LearningOptions(max_inferences=3))
    seen = []
    while True:
        try:
            seen.append(next(steps))
        except StopIteration as stop:
            found = stop.value
            break
    assert found.n_inferences == 3 and not found.converged
    assert [s.iteration for s in seen] == list(range(1, len(seen) + 1))
    assert seen[-1].weights.shape == (2, domains[0].model.n_features)
    assert len(found.history.objective) == len(seen)


def test_wrong_use() -> None:
    chains, classes = domains_of(chain_problem, 0, 1) + domains_of(multiclass_problem, 0, 1)
    with pytest.raises(InputError, match="no domain"):
        fit_joint([], Coupling(1, 1))
    with pytest.raises(InputError, match="same features"):
        fit_joint([chains, classes], Coupling(1, 1))
    with pytest.raises(InputError, match="nothing to learn from"):
        fit_joint([Domain(chains.model, [])], Coupling(1, 1))
    with pytest.raises(InputError, match="both infinite"):
        fit_joint([chains], Coupling(np.inf, np.inf))
    for lam, rho in ((0, 1), (1, -1), (1, np.nan)):
        with pytest.raises(InputError, match="must be positive"):
            fit_joint([chains], Coupling(lam, rho))
    with pytest.raises(InputError, match="initial weights"):
        fit_joint([chains], Coupling(1, 1), initial=np.zeros(3))
    with pytest.raises(InputError, match="prior"):
        fit_joint([chains], Coupling(1, 1, prior=np.zeros(2)))
