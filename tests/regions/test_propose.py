"""Candidates contain the cells, cuts and unions of them, and what was brought along."""

from __future__ import annotations

import numpy as np

from bridgetrack.regions.propose import SOURCES, propose_frame
from bridgetrack.regions.regions import Regions, concatenate, regions_of_labels, shared_pixels
from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.builtin import FrameView
from pictures import blobs, photograph

BRIGHT = SegmentationSettings(diameter=18, foreground="bright")
CENTRES = [(25.0, 25.0), (25.0, 40.0), (60.0, 40.0), (30.0, 90.0)]
TRUTH = np.stack([blobs((90, 120), [(y, x + 3 * t) for y, x in CENTRES], 9) for t in range(3)])
PICTURES = np.stack([photograph(frame, seed=t) for t, frame in enumerate(TRUTH)])


def best_overlap(regions: Regions, t: int, cells: np.ndarray) -> np.ndarray:
    """Best intersection over union of any candidate with each cell."""
    truth, rows = regions_of_labels(cells), regions.rows(t)
    here = regions.select(np.arange(rows.start, rows.stop))
    shared = shared_pixels(here, truth).toarray()
    return (shared / (here.area[:, None] + truth.area - shared)).max(axis=0)


def test_every_cell_and_the_union_of_touching_ones_are_candidates() -> None:
    regions = concatenate([propose_frame(FrameView(PICTURES[t], BRIGHT), t=t) for t in range(3)])
    assert np.unique(regions.frame).tolist() == [0, 1, 2]
    for t in range(3):
        assert (best_overlap(regions, t, TRUTH[t]) > 0.7).all()
        both = np.isin(TRUTH[t], TRUTH[t][[25, 25], [25 + 3 * t, 40 + 3 * t]])
        assert best_overlap(regions, t, both.astype(int)) > 0.7
    assert len(regions) < 30 * len(CENTRES) * 3


def test_holes_are_filled() -> None:
    y, x = np.indices((60, 60)) - 30
    ring = np.where(np.abs(np.hypot(y, x) - 10) < 4, 200.0, 100.0)
    ring += np.random.default_rng(0).normal(0, 3, ring.shape)
    settings = SegmentationSettings(diameter=28, foreground="bright")
    regions = propose_frame(FrameView(ring, settings))
    middle = [30 * 60 + 30 in regions.region_pixels(r) for r in range(len(regions))]
    assert any(middle)


def test_near_duplicates_are_one_with_many_votes() -> None:
    regions = propose_frame(FrameView(PICTURES[0], BRIGHT))
    shared = regions.overlaps.toarray()
    union = regions.area[:, None] + regions.area - shared
    np.fill_diagonal(shared, 0)
    assert (shared / union).max() < 0.97
    alone = regions.select(best_overlap_with(regions, TRUTH[0] == TRUTH[0][30, 90]) > 0.8)
    assert alone.votes.sum(axis=1).max() >= 5
    assert (alone.votes[alone.votes.sum(axis=1).argmax()] > 0).sum() >= 3
    assert ((regions.persistence >= 0) & (regions.persistence <= 1)).all()


def best_overlap_with(regions: Regions, cell: np.ndarray) -> np.ndarray:
    shared = np.add.reduceat(cell.ravel()[regions.pixels].astype(int), regions.starts[:-1])
    return shared / (regions.area + cell.sum() - shared)


def test_labels_brought_along_are_candidates_of_their_name() -> None:
    odd = np.zeros_like(TRUTH[1])
    odd[70:85, 100:118] = 4
    regions = propose_frame(
        FrameView(PICTURES[1], BRIGHT), labels={"odd": odd, "true": TRUTH[1]}, t=1
    )
    assert regions.sources == (*SOURCES, "odd", "true")
    [first] = np.flatnonzero(regions.votes[:, regions.sources.index("odd")])
    np.testing.assert_array_equal(regions.mask(first), odd == 4)
    assert regions.votes[:, regions.sources.index("true")].sum() == len(CENTRES)
