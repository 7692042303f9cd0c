"""The best choice that breaks a promise, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.inference.margins import cheapest_flip
from partition_problems import brute_force, problem_of, random_covers, random_scores


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.integers(1, 4))
def test_equals_enumeration(seed: int, n_slots: int, n_sets: int) -> None:
    rng = np.random.default_rng(seed)
    problem = problem_of(random_covers(rng, n_slots, 15), n_slots)
    scores = random_scores(rng, problem.n_columns)
    slots = rng.permutation(n_slots)[:n_sets]
    sets = np.zeros((len(slots), problem.n_columns))
    for a, slot in enumerate(slots):
        here = problem.by_slot[slot].indices
        sets[a, rng.permutation(here)[: rng.integers(1, len(here) + 1)]] = 1
    best = max(brute_force(problem, scores, sets[a] == 0) for a in range(len(slots)))
    found = cheapest_flip(problem, scores, sp.csr_matrix(sets))
    if best == float("-inf"):
        assert found is None
        return
    assert found is not None
    np.testing.assert_array_equal(problem.by_slot @ found, 1)
    assert (sets @ found < 0.5).any()
    assert scores[found].sum() == pytest.approx(best, abs=1e-5 * max(1.0, np.abs(scores).max()))
