"""The parts of the segmentation keep what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import ndimage as ndi

from bridgetrack.segmentation.cells import cut_edges, fill_cells, merge_shallow
from bridgetrack.segmentation.signal import (
    blob_response,
    block_mean,
    enlarge,
    gaussian,
    sampling_of,
)
from pictures import blobs


@settings(max_examples=30, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 30), st.integers(1, 30)),
    factors=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    level=st.floats(-100, 100, width=32),
)
def test_reducing_and_enlarging_keep_shape_and_level(
    shape: tuple[int, int], factors: tuple[int, int], level: float
) -> None:
    image = np.full(shape, level, dtype=np.float32)
    again = enlarge(block_mean(image, factors), factors, shape)
    assert again.shape == shape
    np.testing.assert_allclose(again, image, rtol=1e-5, atol=1e-4)


def test_wide_filters_on_reduced_images_are_close_to_exact() -> None:
    noise = np.random.default_rng(0).normal(size=(150, 170)).astype(np.float32)
    image = ndi.gaussian_filter(noise, 6)
    for sigma in (5, 14, 30):
        exact = ndi.gaussian_filter(image, sigma)
        error = np.abs(gaussian(image, sigma, (1.0, 1.0)) - exact)
        assert error.max() < 0.05 * np.ptp(image)
        assert error.max() < 0.2 * np.abs(exact - image).max()


@pytest.mark.parametrize("diameter", [8, 16, 30])
def test_blobs_answer_most_at_their_own_size(diameter: int) -> None:
    disc = (blobs((120, 120), [(60, 60)], diameter / 2) > 0).astype(np.float32)
    sizes = diameter * np.array([0.5, 0.7, 1.0, 1.4, 2.0])
    answers = [blob_response(disc, s, (1.0, 1.0))[60, 60] for s in sizes]
    assert np.argmax(answers) == 2


def test_sampling() -> None:
    assert sampling_of((4.0, 0.5, 0.5), (5, 9, 9)) == (8.0, 1.0, 1.0)
    assert sampling_of(None, (5, 9, 9), diameter=50) == (10.0, 1.0, 1.0)
    assert sampling_of(None, (50, 9, 9), diameter=5) == (1.0, 1.0, 1.0)
    assert sampling_of(None, (9, 9), diameter=50) == (1.0, 1.0)


@settings(max_examples=30, deadline=None)
@given(
    labels=hnp.arrays(np.int32, (6, 7), elements=st.integers(0, 5)),
    depths=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    seed=st.integers(0, 99),
)
def test_merging_more_never_splits(
    labels: np.ndarray, depths: tuple[float, float], seed: int
) -> None:
    height = np.random.default_rng(seed).uniform(size=labels.shape).astype(np.float32)
    less, more = sorted(depths)
    fine, coarse = merge_shallow(labels, height, less), merge_shallow(labels, height, more)
    np.testing.assert_array_equal(coarse > 0, labels > 0)
    for value in np.unique(fine[fine > 0]):
        assert len(np.unique(coarse[fine == value])) == 1


def test_two_cells_are_one_where_the_valley_between_them_is_shallow() -> None:
    labels, height = np.array([[1, 1, 2, 2]], np.int32), np.array([[1, 0.8, 0.9, 1.2]], np.float32)
    # The lower of the two peaks is 0.2 above the valley.
    for depth, cells in ((0.25, 1), (0.15, 2)):
        assert len(np.unique(merge_shallow(labels, height, depth))) == cells


def test_edges_are_cut_by_each_cells_own_brightness() -> None:
    labels = np.repeat([[1], [2]], 10, axis=1).astype(np.int32)
    values = np.stack([np.linspace(0.1, 1, 10), np.linspace(10, 100, 10)]).astype(np.float32)
    kept = cut_edges(labels, values) > 0
    np.testing.assert_array_equal(kept[0], kept[1])
    assert kept[0, -1]
    assert not kept[0, 0]


def test_holes_within_one_cell_are_filled_and_gaps_between_cells_are_not() -> None:
    labels = np.zeros((12, 20), dtype=np.int32)
    labels[1:8, 1:8] = 4
    labels[3:5, 3:5] = 0
    labels[1:8, 10:14] = 7
    labels[1:8, 14:18] = 9
    labels[4, 13:15] = 0
    filled = fill_cells(labels, 10, (1.0, 1.0))
    assert (filled[1:8, 1:8] == 4).all()
    assert (filled[4, 13:15] == 0).all()
    assert (fill_cells(labels, 1, (1.0, 1.0)) == labels).all()
