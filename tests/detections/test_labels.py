"""Cells as runs of pixels, and their overlaps, against counting pixel by pixel."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.detections.labels import foreground, shifted_overlap


@given(st.integers(0, 2**32 - 1), st.sampled_from([(1, 1), (6, 9), (3, 4, 5), (3, 1, 1)]))
@settings(max_examples=50)
def test_runs_hold_every_pixel(seed, shape):
    rng = np.random.default_rng(seed)
    labels = rng.choice([0, 0, 3, 4_000_000_000], shape).astype(np.uint32)
    fg = foreground(labels)
    assert fg.labels.tolist() == sorted(set(labels[labels > 0].tolist()))
    owner, places = fg.pixels()
    assert np.array_equal(places, np.flatnonzero(labels))
    assert np.array_equal(fg.labels[owner], labels.reshape(-1)[places])
    for k, number in enumerate(fg.labels):
        cell = np.argwhere(labels == number)
        assert fg.area()[k] == len(cell)
        assert np.allclose(fg.centroid()[k], cell.mean(axis=0))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.sampled_from([(9, 12), (4, 6, 7)]))
def test_equals_counting(seed, shape):
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
