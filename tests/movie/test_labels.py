"""Label frames are checked when they are loaded."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.movie import check_same_extent, label_frame, open_labels, open_movie

FRAMES = np.zeros((3, 6, 7), dtype=np.float32)


@pytest.mark.parametrize(
    ("value", "why"),
    [(1.5, "whole"), (-1, "negative"), (np.nan, "finite"), (np.inf, "finite"), (1e12, "above")],
)
def test_wrong_labels_are_named(value: float, why: str) -> None:
    frames = FRAMES.copy()
    frames[1, 2, 3] = value
    movie = open_labels(frames)
    assert label_frame(movie, 0).max() == 0
    with pytest.raises(InputError, match=rf"frame 1.*\(2, 3\).*{why}"):
        label_frame(movie, 1)


def test_whole_floats_and_booleans_are_labels() -> None:
    frames = FRAMES.copy()
    frames[0, 1, 1] = 7.0
    found = label_frame(open_labels(frames), 0)
    assert found.dtype == np.int64
    assert found[1, 1] == 7
    assert label_frame(open_labels(frames > 0), 0)[1, 1] == 1


def test_negative_integers_are_refused() -> None:
    with pytest.raises(InputError, match="negative"):
        label_frame(open_labels(np.full((1, 4, 4), -3, dtype=np.int16)), 0)


def test_extents_that_differ_are_both_named() -> None:
    image, labels = open_movie(np.zeros((3, 2, 6, 7)), axes="TCYX"), open_labels(FRAMES)
    check_same_extent(image, labels)
    with pytest.raises(InputError, match=r"\(3, 6, 8\).*\(3, 6, 7\)"):
        check_same_extent(open_movie(np.zeros((3, 6, 8))), labels)
    with pytest.raises(InputError, match=r"\(2, 6, 7\).*\(3, 6, 7\)"):
        check_same_extent(open_movie(FRAMES[:2]), labels)
