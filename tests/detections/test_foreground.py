"""Pixels of cells, numbered by cell."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.detections.labels import count_pairs, foreground, numbered

LABELS = st.lists(st.sampled_from([0, 1, 2, 7, 5_000_000, 4_000_000_000]), max_size=60)


@given(LABELS)
@settings(deadline=None, max_examples=50)
def test_numbered_is_unique_with_the_inverse(values: list[int]) -> None:
    given_values = np.array(values, dtype=np.int64)
    present, owner = numbered(given_values)
    expected, inverse = np.unique(given_values, return_inverse=True)
    assert np.array_equal(present, expected)
    assert np.array_equal(owner, inverse)


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 3, 8_000_000])), max_size=40))
@settings(deadline=None, max_examples=50)
def test_pairs_are_counted(pairs: list[tuple[int, int]]) -> None:
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    counted = [c.tolist() for c in count_pairs(first, second)]
    expected = sorted({p: pairs.count(p) for p in pairs}.items())
    assert list(zip(*counted, strict=True)) == [(a, b, n) for (a, b), n in expected]


@given(st.integers(0, 2**32 - 1), st.sampled_from([(1, 1), (6, 9), (3, 4, 5), (3, 1, 1)]))
@settings(deadline=None, max_examples=50)
def test_runs_hold_every_pixel(seed: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.choice([0, 0, 3, 9], shape).astype(np.uint16)
    fg = foreground(labels)
    assert fg.labels.tolist() == sorted(set(labels[labels > 0].tolist()))
    owner, places = fg.pixels()
    assert np.array_equal(places, np.flatnonzero(labels))
    assert np.array_equal(fg.labels[owner], labels.reshape(-1)[places])
    for k, number in enumerate(fg.labels):
        cell = np.argwhere(labels == number)
        assert fg.area()[k] == len(cell)
        assert np.allclose(fg.centroid()[k], cell.mean(axis=0))
