"""Pieces and holes by runs, against scikit-image and scipy region by region."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage as ndi

from bridgetrack.regions.regions import concatenate, no_regions, regions_of_labels
from bridgetrack.regions.runs import filled, largest_pieces


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([(8, 9), (1, 12), (12, 1), (4, 5, 6), (1, 7, 7)]),
    st.sampled_from([0.3, 0.6, 0.8]),
)
def test_as_one_by_one(seed: int, shape: tuple[int, ...], share: float) -> None:
    rng = np.random.default_rng(seed)
    masks = [rng.random(shape) < share for _ in range(5)]
    masks = [m for m in masks if m.any()]
    regions = concatenate(
        [
            no_regions(shape),
            *(regions_of_labels(m.astype(int), t // 2) for t, m in enumerate(masks)),
        ]
    )
    whole, solid = largest_pieces(regions), filled(regions)
    for r, mask in enumerate(masks):
        pieces, n = ndi.label(mask)
        largest = pieces == 1 + np.argmax(np.bincount(pieces.ravel(), minlength=n + 1)[1:])
        np.testing.assert_array_equal(whole.mask(r), largest)
        np.testing.assert_array_equal(solid.mask(r), ndi.binary_fill_holes(mask))
