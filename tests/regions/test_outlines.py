"""What corrected outlines teach of others."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from bridgetrack.regions.describe import FEATURES, SPATIAL, describe_frame
from bridgetrack.regions.outlines import doubt_of_tight, much_alike, redrawn, usual_ratio
from bridgetrack.regions.propose import SOURCES
from bridgetrack.regions.regions import Regions, concatenate, no_regions, regions_of_labels
from bridgetrack.segmentation import SegmentationSettings


def discs(*radii: float, middle: float = 20.0) -> sp.csr_matrix:
    y, x = np.mgrid[:40, :60]
    away = np.hypot(y - 20, x - middle)
    return sp.csr_matrix(np.stack([(away <= r).ravel() for r in radii]).astype(np.int32))


@pytest.mark.parametrize(
    ("ratios", "usual"),
    [
        ([1.4, 1.5, 1.6, 2.5, 3.0], 1.5),
        ([0.6, 0.7, 0.75, 0.7, 0.5, 2.0], 0.75),
        ([1.5, 1.5, 1.5, 0.6, 0.7], 1.0),  # of no one direction
        ([1.05] * 9, 1.0),  # hardly another outline
    ],
)
def test_a_habit_is_what_most_corrections_share(ratios: list[float], usual: float) -> None:
    assert usual_ratio(ratios) == pytest.approx(usual, rel=0.03)


def test_few_corrections_among_many_cells_found_right_are_no_habit() -> None:
    assert usual_ratio([1.5] * 6, checked=190) == pytest.approx(1.5)
    assert usual_ratio([1.5] * 6, checked=210) == 1.0


def test_a_cell_is_redrawn_by_the_candidate_of_the_wanted_size_around_it() -> None:
    cells = sp.vstack([discs(6), discs(6, middle=45.0)], format="csr")
    offered = sp.vstack([discs(5, 6, 7.3, 9), discs(7.3, middle=32.0)], format="csr")
    assert redrawn(cells, offered, 1.5).tolist() == [2, -1]
    assert redrawn(cells, offered, 0.7).tolist() == [0, -1]
    beside = sp.vstack([cells, discs(3, middle=27.0)], format="csr")
    assert redrawn(beside, offered, 1.5).tolist() == [1, -1, -1]  # the larger would take both
    assert redrawn(cells, offered, 9.0).tolist() == [2, -1]  # of 9 pixels it is hardly the cell


def nested(*radii: float) -> Regions:
    """Discs around the middle of a nucleus of radius 8, as candidates of one frame."""
    y, x = np.mgrid[:60, :60]
    away = np.hypot(y - 30, x - 30)
    masks = [(away <= r).astype(np.int64) for r in radii]
    parts = [no_regions((60, 60), SOURCES)]
    return concatenate([*parts, *(regions_of_labels(m, source="built-in") for m in masks)])


def nucleus(foreground: str) -> tuple[np.ndarray, SegmentationSettings]:
    y, x = np.mgrid[:60, :60]
    light = 1 / (1 + np.exp(np.hypot(y - 30, x - 30) - 8))
    grain = np.random.default_rng(0).normal(0, 5, light.shape)
    signal = 1000 * light if foreground != "dark" else 1500 - 1000 * light
    return signal + grain, SegmentationSettings(
        diameter=16, foreground=foreground, smoothing=0.5, depth=0.05
    )


@pytest.mark.parametrize("foreground", ["bright", "dark", "texture"])
def test_an_outline_within_the_bright_part_is_doubted(foreground: str) -> None:
    image, settings = nucleus(foreground)
    known = describe_frame(nested(7, 7.5, 8, 8.5, 9), image, settings)
    features = np.concatenate([known, np.zeros((5, len(FEATURES) - SPATIAL))], axis=1)
    doubt = doubt_of_tight(features)
    if foreground == "texture":  # whose signal is smeared beyond the cells
        assert not doubt.any()
        return
    assert (np.diff(doubt) <= 0).all() and doubt[0] > doubt[1] > 0.5 > doubt[-1]
    alone = np.array(features[:1])
    alone[:, list(FEATURES).index("least level")] = alone[:, list(FEATURES).index("level")]
    assert not doubt_of_tight(alone).any(), "no candidate like it reaches farther"


def test_candidates_much_like_some_are_found() -> None:
    regions = nested(5, 8, 8.5, 14)
    assert much_alike(regions, np.array([False, True, False, False])).tolist() == [0, 1, 1, 0]
    assert not much_alike(regions, np.zeros(4, dtype=bool)).any()
