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
    counted = [c.tolist() for c in count_pairs(first, second, 10)]
    expected = sorted({p: pairs.count(p) for p in pairs}.items())
    assert list(zip(*counted, strict=True)) == [(a, b, n) for (a, b), n in expected]


def test_foreground_of_a_stack() -> None:
    labels = np.zeros((2, 3, 4), dtype=np.uint16)
    labels[1, 2, 3] = 9
    labels[0, 1, 2] = 4
    fg = foreground(labels)
    assert fg.labels.tolist() == [4, 9]
    assert [c.tolist() for c in fg.index] == [[0, 1], [1, 2], [2, 3]]
    assert fg.total().tolist() == [1, 1]
    assert np.array_equal(fg.labels[fg.owner], labels[fg.index])
    assert np.flatnonzero(fg.numbers()).tolist() == fg.places.tolist()
