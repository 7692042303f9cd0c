"""The shift that most cells share between two frames."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial import cKDTree

from bridgetrack.hypotheses import motion


@given(st.integers(0, 10_000), st.integers(2, 3), st.floats(0.3, 6.0))
@settings(max_examples=40, deadline=None)
def test_no_shift_has_more_votes_than_it_may_have(seed, ndim, tolerance):
    rng = np.random.default_rng(seed)
    shifts = np.concatenate([rng.uniform(-9, 9, (300, ndim)), rng.normal(2, 0.5, (60, ndim))])
    sample = shifts[::3]
    votes = cKDTree(shifts).query_ball_point(sample, tolerance, return_length=True)
    assert (motion._most_votes(shifts, sample, tolerance) >= votes).all()


@given(st.integers(0, 10_000), st.integers(2, 3), st.floats(0.0, 12.0))
@settings(max_examples=25, deadline=None)
def test_the_drift_is_the_one_found_by_counting_all_votes(seed, ndim, far):
    rng = np.random.default_rng(seed)
    before = rng.uniform(0, 60, (80, ndim))
    after = before + rng.normal(0, 0.4, before.shape) + far / np.sqrt(ndim)
    found = motion._voted_drift(before, after, 20.0, 1.5)

    k = min(8, len(after))
    distance, neighbour = cKDTree(after).query(before, k=k, distance_upper_bound=20.0)
    rows = np.nonzero(np.isfinite(distance))[0]
    shifts = after[neighbour[np.isfinite(distance)]] - before[rows]
    votes = (np.linalg.norm(shifts[:, None] - shifts[None], axis=2) <= 1.5).sum(axis=1)
    none = (np.linalg.norm(shifts, axis=1) <= 1.5).sum()
    expected = np.zeros(ndim)
    if votes.max() >= 1.25 * none + 3:
        best = shifts[np.argmax(votes)]
        expected = np.median(shifts[np.linalg.norm(shifts - best, axis=1) <= 1.5], axis=0)
    assert np.allclose(found, expected)
