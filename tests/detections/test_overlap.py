"""Overlaps of shifted cells, against counting pixel by pixel."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.detections.labels import foreground, shifted_overlap


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(9, 12), (4, 6, 7)]))
def test_equals_counting(seed: int, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(seed)
    before, after = (rng.integers(0, 4, shape) * 5 for _ in range(2))
    labels = np.unique(before[before > 0])
    shift = rng.uniform(-3, 3, (len(labels), len(shape)))
    later = foreground(after)
    row, other, pixels = shifted_overlap(foreground(before), later, shift)
    counted: dict[tuple[int, int], int] = {}
    for index in np.argwhere(before > 0):
        k = int(np.searchsorted(labels, before[tuple(index)]))
        moved = index + np.rint(shift[k]).astype(int)
        if (moved >= 0).all() and (moved < shape).all() and after[tuple(moved)] > 0:
            key = (k, int(after[tuple(moved)]))
            counted[key] = counted.get(key, 0) + 1
    found = zip(row.tolist(), later.labels[other].tolist(), strict=True)
    assert dict(zip(found, pixels.tolist(), strict=True)) == counted


def test_nothing_shared() -> None:
    before = np.array([[1, 0], [0, 0]])
    after = foreground(np.zeros((2, 2), int))
    found = shifted_overlap(foreground(before), after, np.zeros((1, 2)))
    assert [len(part) for part in found] == [0, 0, 0]
