"""Transfer: its limits, its objective, and the formulas of the paper."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning import L2, Domain, LearningOptions, Sample, Stacked, fit
from bridgetrack.learning.master_qp import solve_master
from models import chain_problem, loss_values, multiclass_problem

FINE = LearningOptions(precision=1e-6)
problems = st.sampled_from([multiclass_problem, chain_problem])
seeds = st.integers(0, 1000)
strengths = st.sampled_from([0.05, 0.3, 2.0])


def domains_of(problem, seed, n=2, full=False):
    """Domains that differ, drawn one seed after the other."""
    return [Domain(*problem(seed + 5000 * k, full=full)) for k in range(n)]


def together(domains):
    """All samples, without names that occur twice."""
    return [Sample(s.x, s.y_star) for domain in domains for s in domain.samples]


def shift(d, seed):
    return np.random.default_rng(seed).normal(scale=0.3, size=d)


def trained(stacked, **how):
    how = {"options": FINE, **how}
    n = stacked.n_annotations
    return fit(stacked, stacked.samples, stacked.regularizer, n_annotations=n, **how)


@given(seed=seeds, problem=problems, lam=strengths, rho=strengths)
@settings(max_examples=5)
def test_one_domain_is_plain_training(seed, problem, lam, rho):
    domain = domains_of(problem, seed, 1, full=True)[0]
    d = domain.model.n_features
    prior, metric = shift(d, seed), np.linspace(0.5, 2.0, d)
    stacked = Stacked([domain], lam, rho, prior, metric)
    joint = trained(stacked)
    tau = rho * lam / (rho + lam)
    plain = fit(domain.model, domain.samples, L2(tau, prior, metric), options=FINE)
    assert joint.objective == pytest.approx(plain.objective, abs=3e-6)
    (own,) = stacked.weights(joint.w)
    np.testing.assert_allclose(own, plain.w, atol=2e-2)
    step = own - prior
    np.testing.assert_allclose(stacked.shared(joint.w), prior + step * rho / (lam + rho), atol=1e-4)


@given(seed=seeds, problem=problems, lam=strengths)
@settings(max_examples=5)
def test_an_infinite_tie_is_union(seed, problem, lam):
    """On the sum of the domain risks, each a mean here."""
    domains = domains_of(problem, seed, 2, full=True)
    model, n = domains[0].model, len(domains[0].samples)
    union = fit(model, together(domains), L2(lam), n_annotations=n, options=FINE)
    stacked = Stacked(domains, lam, np.inf)
    exact = trained(stacked)
    nearly = trained(Stacked(domains, lam, 1e6))
    assert exact.objective == pytest.approx(union.objective, abs=3e-6)
    assert nearly.objective == pytest.approx(union.objective, rel=1e-4, abs=1e-4)
    for own in stacked.weights(exact.w):
        np.testing.assert_array_equal(own, stacked.shared(exact.w))


@given(seed=seeds, problem=problems, lam=strengths, rho=strengths)
@settings(max_examples=5)
def test_the_objective_is_that_of_the_paper(seed, problem, lam, rho):
    """Eq. 1.9, with its best shared weights."""
    domains = domains_of(problem, seed)
    stacked = Stacked(domains, lam, rho)
    found = trained(stacked, options=LearningOptions())
    assert (np.diff(found.objectives) <= 1e-9).all()
    w, each = stacked.shared(found.w), stacked.weights(found.w)
    risks = [
        loss_values(x.model, x.samples, w_d, "bridge").mean()
        for x, w_d in zip(domains, each, strict=True)
    ]
    value = lam / 2 * w @ w + rho / 2 * ((each - w) ** 2).sum() + sum(risks)
    assert found.objective == pytest.approx(value)
    best = each.sum(axis=0) * rho / (lam + 2 * rho)
    np.testing.assert_allclose(w, best, atol=1e-2 / lam)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 4),
    lam=st.sampled_from([0.02, 0.5, 5.0]),
    rho=st.sampled_from([0.02, 0.5, 5.0]),
)
@settings(max_examples=15)
def test_stacked_features_solve_the_coupled_master_problem(seed, n, lam, rho):
    """000, section 1.6.3: the dual with ``1/tau A^d'A^d`` and ``1/lambda A^d'A^e``."""
    d, rng = 4, np.random.default_rng(seed)
    groups = np.repeat(np.arange(n), rng.integers(1, 9, n))
    A, b = rng.normal(size=(len(groups), d)), rng.normal(size=len(groups))
    w0, metric = rng.normal(size=d), rng.uniform(0.5, 2.0, d)
    model, samples = chain_problem(0, n=1)
    domain = Domain(type("Sized", (type(model),), {"n_features": d})(3, 3), samples)
    stacked = Stacked([domain] * n, lam, rho, w0, metric)
    rows = np.zeros((len(A), stacked.n_features))
    for k, (row, g) in enumerate(zip(A, groups, strict=True)):
        rows[k] = stacked._placed(row[None], g)[0]
    found = solve_master(rows, b, groups, stacked.regularizer)
    u = np.array([A[groups == g].T @ found.alpha[groups == g] for g in range(n)])
    w = w0 - u.sum(axis=0) / metric / lam
    # the weights and those of the multipliers are as near as strong convexity and the gap say
    near = 1e-6 + 4 * np.sqrt(max(found.gap, 0.0) / min(lam, rho))
    np.testing.assert_allclose(stacked.shared(found.w), w, atol=near)
    np.testing.assert_allclose(stacked.weights(found.w), w - u / metric / rho, atol=near)
    total = u.sum(axis=0)
    dual = float((b + A @ w0) @ found.alpha) - total / metric @ total / (2 * lam)
    dual -= sum(x / metric @ x for x in u) / (2 * rho)
    assert found.dual == pytest.approx(dual, rel=1e-12, abs=1e-12 * (1 + abs(found.primal)))


@pytest.mark.parametrize(
    "how", [{"learner": "perceptron"}, {"curriculum": "slack"}, {"curriculum": "novelty"}]
)
def test_a_union_is_learned_as_one_data_set(how):
    """Also by what counts mistakes, or compares a sample's loss with a threshold."""
    domains, options = domains_of(chain_problem, 3), LearningOptions(**how)
    model, n = domains[0].model, len(domains[0].samples)
    plain = fit(model, together(domains), L2(0.1), n_annotations=n, options=options)
    joint = trained(Stacked(domains, 0.1, np.inf), options=options)
    assert np.abs(plain.w).max() > 0
    np.testing.assert_allclose(joint.w, plain.w, atol=1e-9)


def test_samples_are_solved_together_and_sized_as_in_their_domains():
    class Pairs(type(chain_problem(0, n=1)[0])):
        def blocks(self, samples):
            return [np.arange(k, min(k + 2, len(samples))) for k in range(0, len(samples), 2)]

        def sizes(self, samples):
            return np.array([len(s.x) for s in samples], dtype=float)

    domains = domains_of(chain_problem, 0)
    domains = [Domain(Pairs(**vars(x.model)), x.samples[:3]) for x in domains]
    stacked = Stacked(domains, 1.0, 1.0)
    mixed = [stacked.samples[k] for k in (3, 0, 4, 1, 5, 2)]
    blocks = [block.tolist() for block in stacked.blocks(mixed)]
    assert blocks == [[1, 3], [5], [0, 2], [4]]
    assert stacked.sizes(mixed).tolist() == [len(s.x[1].x) for s in mixed]


@pytest.mark.parametrize("change", [{"rho": 0.05}, {"n": 40.0}])
def test_a_later_training_trusts_nothing_that_was_scaled_otherwise(change):
    def stacked(rho=1.0, n=None):
        first, second = domains_of(chain_problem, 1, full=True)  # one optimum
        return Stacked([first, Domain(second.model, second.samples, n)], 0.1, rho)

    earlier = trained(stacked())
    again, anew = trained(stacked(**change), state=earlier.state), trained(stacked(**change))
    assert again.lower_bound <= anew.objective + 1e-9
    assert again.objective == pytest.approx(anew.objective, abs=2e-6)
