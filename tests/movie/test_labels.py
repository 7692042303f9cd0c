"""Label frames are checked when they are loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile

from bridgetrack.errors import InputError
from bridgetrack.movie import label_frame, open_labels, open_movie

FRAMES = np.zeros((3, 6, 7), dtype=np.float32)


@pytest.mark.parametrize(
    ("value", "why"),
    [(1.5, "whole"), (-1, "negative"), (np.nan, "finite"), (1e12, "above")],
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


@pytest.mark.parametrize(
    ("dtype", "value", "why"),
    [("uint16", 256, None), ("int16", -1, "negative"), ("float32", 0.5, "whole")],
)
def test_every_file_of_a_folder_keeps_its_own_type(
    tmp_path: Path, dtype: str, value: float, why: str | None
) -> None:
    """A first frame of fewer bits must not make 256 background, nor -1 a cell."""
    tifffile.imwrite(tmp_path / "t000.tif", np.ones((6, 7), dtype=np.uint8))
    tifffile.imwrite(tmp_path / "t001.tif", np.full((6, 7), value, dtype=dtype))
    labels = open_labels(tmp_path)
    assert label_frame(labels, 0)[0, 0] == 1
    assert open_movie(tmp_path).channel_frame(1)[0, 0] == value
    if why is None:
        assert label_frame(labels, 1)[0, 0] == value
    else:
        with pytest.raises(InputError, match=rf"frame 1.*{why}"):
            label_frame(labels, 1)
