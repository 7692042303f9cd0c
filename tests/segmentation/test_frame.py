"""Cells of known pictures are found, whatever their contrast, and bad pixels are background."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.measure import label

from bridgetrack.errors import InputError
from bridgetrack.segmentation import SegmentationSettings, segment_frame
from pictures import blobs, found_share, photograph

GRID = [(y, x) for y in (30, 70, 110) for x in (30, 75, 120, 165)]
TOUCHING = [(30, 30), (30, 49), (80, 60), (97, 68), (60, 120), (60, 138), (100, 150)]


@pytest.mark.parametrize("sign", [1, -1])
def test_touching_discs_are_told_apart(sign):
    truth = blobs((130, 180), TOUCHING, 10)
    found = segment_frame(sign * photograph(truth))
    assert found.max() == len(TOUCHING)
    assert found_share(truth, found) == 1.0


@pytest.mark.parametrize(("apart", "cells"), [(12, 1), (16, 2)])
def test_a_waist_must_be_narrow_to_part_two_cells(apart, cells):
    """Discs of radius 10 of one brightness; half their waist is 8 and 6 pixels."""
    shape = blobs((80, 120), [(40, 40), (40, 40 + apart)], 10) > 0
    picture = photograph(shape.astype(np.int32))
    assert segment_frame(picture, SegmentationSettings(diameter=20)).max() == cells


def test_long_cells_stay_whole():
    truth = np.zeros((120, 160), dtype=np.int32)
    for i, y in enumerate((20, 50, 80)):
        truth[y : y + 12, 30:110] = i + 1
    found = segment_frame(photograph(truth))
    assert found.max() == 3
    assert found_share(truth, found) == 1.0


@pytest.mark.parametrize("scale", [(4.0, 1.0, 1.0), None])
def test_volumes(scale):
    centres = [(3, 20, 20), (3, 20, 36), (7, 50, 30), (4, 45, 70)]
    truth = blobs((11, 70, 90), centres, 9, scale or (1.0, 1.0, 1.0))
    found = segment_frame(photograph(truth), scale=scale)
    assert found.max() == len(centres)
    assert found_share(truth, found) == 1.0


def test_uneven_background_is_removed():
    truth = blobs((140, 200), GRID, 10)
    slope = np.linspace(0, 80, 200)[None, :]
    assert found_share(truth, segment_frame(photograph(truth, noise=1.0) + slope)) == 1.0


@settings(max_examples=5)
@given(factor=st.floats(0.01, 300), offset=st.floats(-500, 500), seed=st.integers(0, 1000))
def test_brightness_and_contrast_do_not_matter(factor, offset, seed):
    picture = photograph(blobs((140, 200), GRID, 10), seed=seed)
    plain = segment_frame(picture)
    changed = segment_frame(factor * (picture + offset))
    assert plain.max() == changed.max() == len(GRID)
    assert np.mean((plain > 0) != (changed > 0)) < 0.002


@settings(max_examples=5)
@given(
    centres=st.lists(
        st.tuples(st.integers(0, 79), st.integers(0, 99)), min_size=1, max_size=12, unique=True
    ),
    clear=st.booleans(),
)
def test_labels_are_consecutive_whole_pieces(centres, clear):
    picture = photograph(blobs((80, 100), centres, 8))
    found = segment_frame(picture, SegmentationSettings(diameter=16, clear_border=clear))
    assert found.dtype == np.int32
    assert found.shape == picture.shape
    present = np.unique(found)
    np.testing.assert_array_equal(present, np.arange(len(present)))
    assert label(found, connectivity=1).max() == found.max()
    if clear:
        edge = np.concatenate([found[0], found[-1], found[:, 0], found[:, -1]])
        assert not edge.any()


@pytest.mark.parametrize(
    "picture", [np.zeros((40, 50)), np.full((5, 20, 20), np.nan), np.zeros((3, 2, 1))]
)
def test_frames_without_cells(picture):
    found = segment_frame(picture)
    assert found.shape == picture.shape
    assert not found.any()


def test_noise_is_no_cell():
    noise = np.random.default_rng(0).normal(100, 5, (200, 200))
    assert segment_frame(noise, SegmentationSettings(diameter=20)).max() == 0


def test_bad_pixels_are_background():
    truth = blobs((140, 200), GRID, 10)
    picture = photograph(truth)
    picture[:50, :50] = np.nan
    picture[100, 120] = np.inf
    found = segment_frame(picture)
    assert not found[:50, :50].any()
    assert found[100, 120] == 0
    kept = np.where(truth == 1, 0, truth)
    assert found_share(kept, found) == 1.0


def test_size_limits():
    truth = blobs((140, 200), GRID, 10)
    truth[5:8, 5:9] = 99
    picture = photograph(np.where(truth == 99, 13, truth))
    assert segment_frame(picture, SegmentationSettings(min_size=0.01)).max() == 13
    assert segment_frame(picture).max() == 12
    assert segment_frame(picture, SegmentationSettings(diameter=20, max_size=0.5)).max() <= 1


def test_rings_are_filled():
    truth = blobs((140, 200), GRID, 10)
    ring = np.where(blobs((140, 200), GRID, 4) > 0, 0, truth)
    chosen = SegmentationSettings(diameter=20)
    assert segment_frame(photograph(ring), chosen)[30, 30] > 0


def test_the_least_size_is_not_above_the_largest():
    with pytest.raises(InputError, match="min_size"):
        SegmentationSettings(min_size=5, max_size=2)


def test_frames_of_other_dimensions():
    with pytest.raises(InputError, match="2 or 3 axes"):
        segment_frame(np.zeros(5))
