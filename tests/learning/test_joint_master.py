"""The master problem of joint training against the formulas of the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.learning.l2 import Master, solve_l2_master
from bridgetrack.learning.qp import call_backend
from bridgetrack.learning.regularizers import Coupling

seeds = st.integers(0, 10_000)
strengths = st.sampled_from([0.02, 0.5, 5.0])
forms = st.sampled_from(["primal", "dual"])


def bounds(seed: int, n_domains: int, d: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    count = rng.integers(1, 9, n_domains)
    return [rng.normal(size=(m, d)) for m in count], [rng.normal(size=m) for m in count]


def solve(A: list[np.ndarray], b: list[np.ndarray], coupling: Coupling, **how: Any) -> Master:
    """One group of bounds for each domain."""
    domain = np.repeat(np.arange(len(b)), [len(x) for x in b])
    return solve_l2_master(
        np.vstack(A), np.concatenate(b), coupling, groups=domain, domains=domain, **how
    )


@given(seed=seeds, n=st.integers(1, 4), lam=strengths, rho=strengths, form=forms)
@settings(max_examples=30, deadline=None)
def test_weights_and_value_are_those_of_the_paper(
    seed: int, n: int, lam: float, rho: float, form: Any
) -> None:
    """000, section 1.6.3 and eq. 1.10, with a prior and a metric."""
    d = 4
    A, b = bounds(seed, n, d)
    rng = np.random.default_rng(seed)
    w0, root = rng.normal(size=d), rng.normal(size=(d, d))
    M = root @ root.T + np.eye(d)
    coupling = Coupling(lam, rho, w0, M)
    found = solve(A, b, coupling, form=form)
    alphas = np.split(found.alpha, np.cumsum([len(x) for x in b])[:-1])
    u = np.array([a.T @ alpha for a, alpha in zip(A, alphas, strict=True)])
    inverse = np.linalg.inv(M)
    w = w0 - inverse @ u.sum(axis=0) / lam
    np.testing.assert_allclose(found.w, w - u @ inverse / rho, atol=2e-4 * (1 + 1 / lam))
    np.testing.assert_allclose(coupling.shared(found.w), w, atol=2e-4 * (1 + 1 / lam))
    linear = sum(float((o + a @ w0) @ alpha) for a, o, alpha in zip(A, b, alphas, strict=True))
    total = u.sum(axis=0)
    dual = linear - total @ inverse @ total / (2 * lam)
    dual -= sum(x @ inverse @ x for x in u) / (2 * rho)
    primal = coupling.value(found.w) + sum(
        (a @ w_d + o).max() for a, o, w_d in zip(A, b, found.w, strict=True)
    )
    scale = 1 + abs(dual)
    assert found.dual == pytest.approx(dual, abs=1e-8 * scale)
    assert found.primal == pytest.approx(primal, abs=1e-8 * scale)
    assert dual <= primal + 1e-8 * scale
    assert primal - dual <= 1e-6 * scale
    for alpha in alphas:
        assert (alpha >= 0).all() and alpha.sum() == pytest.approx(1)


@given(seed=seeds, lam=strengths, rho=strengths)
@settings(max_examples=20, deadline=None)
def test_the_printed_dual_has_the_same_value(seed: int, lam: float, rho: float) -> None:
    """The block matrix with 1/tau on the diagonal blocks and 1/lambda off them, solved as it is."""
    A, b = bounds(seed, 3, 5)
    found = solve(A, b, Coupling(lam, rho))
    tau = rho * lam / (rho + lam)
    blocks = [
        [x @ y.T / (tau if i == j else lam) for j, y in enumerate(A)] for i, x in enumerate(A)
    ]
    sums = np.zeros((3, sum(map(len, b))))
    for k, owner in enumerate(np.repeat(np.arange(3), [len(x) for x in b])):
        sums[owner, k] = 1.0
    q = -np.concatenate(b)
    P = np.block(blocks)
    solved = call_backend("clarabel", P, q, A=sums, b=np.ones(3), lb=np.zeros(len(q)))
    assert solved is not None
    alpha = solved[0]
    value = -0.5 * alpha @ P @ alpha - q @ alpha
    assert found.dual == pytest.approx(value, abs=1e-5 * (1 + abs(value)))


@given(seed=seeds, n=st.integers(1, 5), lam=strengths, rho=strengths)
@settings(max_examples=20, deadline=None)
def test_the_shared_weights_are_the_best(seed: int, n: int, lam: float, rho: float) -> None:
    rng = np.random.default_rng(seed)
    weights, w0 = rng.normal(size=(n, 3)), rng.normal(size=3)
    coupling = Coupling(lam, rho, w0)

    def value(w: np.ndarray) -> float:
        return lam / 2 * ((w - w0) ** 2).sum() + rho / 2 * ((weights - w) ** 2).sum()

    best = coupling.shared(weights)
    assert coupling.value(weights) == pytest.approx(value(best))
    for _ in range(5):
        assert value(best) <= value(best + rng.normal(scale=0.1, size=3)) + 1e-12


@given(n=st.integers(1, 6), lam=st.sampled_from([0.1, 3.0, np.inf]), rho=strengths)
@settings(max_examples=20, deadline=None)
def test_the_factor(n: int, lam: float, rho: float) -> None:
    C = Coupling(lam, rho).factor(n)
    np.testing.assert_allclose(C @ C.T, np.ones((n, n)) / lam + np.eye(n) / rho, atol=1e-12)


def test_the_factor_of_a_union() -> None:
    C = Coupling(0.5, np.inf).factor(3)
    np.testing.assert_allclose(C @ C.T, np.full((3, 3), 2.0))
    assert C.shape == (3, 1)
