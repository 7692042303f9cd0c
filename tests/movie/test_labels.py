"""Label frames are checked when they are loaded, and told from images and yes/no masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import tifffile
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import BridgetrackWarning, InputError
from bridgetrack.files import sample_folder
from bridgetrack.movie import label_frame, open_labels, open_movie
from bridgetrack.movie.movie import check_labels

FRAMES = np.zeros((3, 6, 7), dtype=np.float32)


@pytest.mark.parametrize(
    ("value", "why"), [(1.5, "whole"), (-1, "negative"), (np.nan, "finite"), (1e12, "above")]
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


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(1, 12))
def test_touching_blocks_are_labels(seed: int, side: int, across: int) -> None:
    numbers = np.random.default_rng(seed).permutation(across**2).reshape(across, across)
    blocks = np.kron(numbers, np.ones((side, side), dtype=int)).astype(np.uint16)
    check_labels(open_labels(blocks[None], axes="TYX"))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(40, 60_000))
def test_noise_is_an_image(seed: int, levels: int) -> None:
    noise = np.random.default_rng(seed).integers(0, levels, (1, 50, 50)).astype(np.uint16)
    with pytest.raises(InputError, match="looks like an image"):
        check_labels(open_labels(noise, axes="TYX"))


def test_points_of_one_pixel_are_labels() -> None:
    points = np.zeros((1, 60, 60), dtype=np.uint16)
    points[0, ::3, ::3] = np.arange(1, 401).reshape(20, 20)
    check_labels(open_labels(points, axes="TYX"))


def test_the_sample() -> None:
    check_labels(open_labels(sample_folder() / "01_GT" / "TRA"))
    with pytest.raises(InputError, match="bridgetrack segment"):
        check_labels(open_movie(sample_folder() / "01"))


def test_a_mask_of_yes_and_no_is_refused_and_one_cell_in_pieces_is_not() -> None:
    frames = np.zeros((3, 40, 40), dtype=np.uint8)
    frames[:, 5:15, 5:15] = 255
    frames[:, 20, 20] = 255  # a speck beside the only cell
    check_labels(open_labels(frames))
    frames[:, 25:33, 25:33] = 255
    for mask in (frames, frames > 0):
        with pytest.raises(InputError, match=r"binary mask.*bt\.find_cells"):
            check_labels(open_labels(mask))
    frames[1] = 0  # the lamp failed in the middle
    with pytest.raises(InputError, match="binary mask"):
        check_labels(open_labels(frames))


def test_a_background_with_a_number_is_told() -> None:
    labels = np.full((3, 60, 90), 2, dtype=np.int32)
    labels[:, 5:15, 5:15] = 4
    with pytest.warns(BridgetrackWarning, match="label 2 covers most of the frame"):
        check_labels(open_labels(labels))


def test_a_label_in_two_places_far_apart_is_told_and_close_pieces_are_not() -> None:
    labels = np.zeros((3, 60, 90), dtype=np.int32)
    labels[:, 5:15, 5:15], labels[:, 45:55, 75:85] = 4, 4
    labels[:, 30:40, 30:40], labels[:, 55, 5] = 9, 9  # a speck
    labels[:, 5:10, 40:45] = labels[:, 5:10, 47:52] = 7
    labels[:, 20:28, 60] = labels[:, 28, 60:80] = 8  # a thin bent cell
    with pytest.warns(BridgetrackWarning, match="frame 1: label 4 lies in places") as told:
        check_labels(open_labels(labels))
    assert len(told) == 1
