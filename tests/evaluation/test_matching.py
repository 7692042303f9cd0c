"""Shared pixels of two segmentations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bridgetrack.errors import InputError
from bridgetrack.evaluation.truth import CellIds, movie_overlaps
from lineage_cases import detections_of, movie_of

images = arrays(np.uint16, (2, 5, 6), elements=st.integers(0, 4))


@settings(deadline=None, max_examples=40)
@given(images, images)
def test_counts_equal_those_of_a_loop(first: np.ndarray, second: np.ndarray) -> None:
    sides = []
    for images_ in (first, second):
        movie = movie_of(list(images_))
        detections = detections_of(movie)
        sides.append(CellIds(detections.frame, detections.label, movie))
    a, b = sides
    overlaps = movie_overlaps(a, b)
    found = {
        (i, j): n
        for i, j, n in zip(
            overlaps.a.tolist(), overlaps.b.tolist(), overlaps.pixels.tolist(), strict=True
        )
    }
    expected = {}
    for i, (t, u) in enumerate(zip(a.frame, a.label, strict=True)):
        assert overlaps.area_a[i] == (first[t] == u).sum()
        for j, (s, v) in enumerate(zip(b.frame, b.label, strict=True)):
            n = int(((first[t] == u) & (second[s] == v)).sum()) if s == t else 0
            if n:
                expected[i, j] = n
    assert found == expected


def test_movies_must_fit() -> None:
    small, large = movie_of([np.zeros((4, 4), int)]), movie_of([np.zeros((4, 5), int)])
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(InputError, match="same movie"):
        movie_overlaps(CellIds(nothing, nothing, small), CellIds(nothing, nothing, large))
