"""Features of candidates do not depend on units, order or orientation, and tell cells from cuts."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.regions.describe import FEATURES, SPATIAL, Described, describe_frame, described
from bridgetrack.regions.propose import SOURCES, propose_frame
from bridgetrack.regions.regions import (
    Regions,
    concatenate,
    no_regions,
    regions_of_labels,
    shared_pixels,
)
from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.builtin import FrameView
from pictures import blobs, photograph

SETTINGS = SegmentationSettings(diameter=18, foreground="bright", depth=0.05)
TRUTH = blobs((90, 120), [(25.0, 25.0), (25.0, 40.0), (60.0, 40.0), (30.0, 90.0), (70, 80)], 9)
PICTURE = photograph(TRUTH)
ALL = propose_frame(FrameView(PICTURE, SETTINGS))
KNOWN = describe_frame(ALL, FrameView(PICTURE, SETTINGS))


def column(name: str, known: np.ndarray = KNOWN) -> np.ndarray:
    return known[:, list(FEATURES).index(name)]


def of_masks(masks: list[np.ndarray]) -> Regions:
    parts = [no_regions(TRUTH.shape, SOURCES)]
    parts += [regions_of_labels(mask.astype(int), source=SOURCES[0]) for mask in masks]
    return concatenate(parts)


def test_units_of_intensity_do_not_matter() -> None:
    other = describe_frame(ALL, FrameView(3.0 * PICTURE.astype(np.float64) + 500, SETTINGS))
    np.testing.assert_allclose(other, KNOWN, rtol=1e-3, atol=1e-3)


def test_orientation_does_not_matter() -> None:
    turned = [ALL.mask(r).T for r in range(len(ALL))]
    parts = [regions_of_labels(m.astype(int), source="a") for m in turned]
    regions = concatenate(parts)
    regions = Regions(
        **{
            **vars_of(regions),
            "sources": ALL.sources,
            "votes": ALL.votes,
            "persistence": ALL.persistence,
        }
    )
    known = describe_frame(regions, FrameView(PICTURE.T, SETTINGS))
    sides = list(FEATURES).index("lowest side")  # eight sides begin elsewhere
    others = [k for k in range(SPATIAL) if k != sides]
    np.testing.assert_allclose(known[:, others], KNOWN[:, others], rtol=1e-2, atol=2e-2)


def vars_of(regions: Regions) -> dict[str, object]:
    return {name: getattr(regions, name) for name in Regions.__dataclass_fields__}


def test_a_cut_and_a_union_look_different_from_the_cell() -> None:
    cell = TRUTH[60, 40] == TRUTH
    half = cell & (np.indices(TRUTH.shape)[1] < 40)
    union = (TRUTH[25, 25] == TRUTH) | (TRUTH[25, 40] == TRUTH)
    outside = np.roll(cell, (20, 25), axis=(0, 1))
    known = describe_frame(of_masks([cell, half, union, outside]), FrameView(PICTURE, SETTINGS))
    whole, part, both, nothing = known
    index = {name: k for k, name in enumerate(FEATURES)}
    assert part[index["lowest side"]] < 0.5 * whole[index["lowest side"]]
    assert part[index["weak outline"]] > whole[index["weak outline"]] + 0.1
    assert both[index["ellipse"]] < whole[index["ellipse"]]
    assert both[index["elongation"]] < 0.75 < whole[index["elongation"]]
    assert both[index["area"]] > whole[index["area"]] > part[index["area"]]
    assert nothing[index["contrast"]] < 0.5 * whole[index["contrast"]]
    assert nothing[index["foreground"]] < 0.1
    assert whole[index["foreground"]] > 0.9
    assert whole[index["roundness"]] > 0.8


def test_readings_that_agree_dominate() -> None:
    best = ALL.select(np.array([int(np.argmax(column("support")))]))
    truth = regions_of_labels(TRUTH)
    shared = shared_pixels(best, truth).toarray()
    assert (shared / (best.area + truth.area - shared)).max() > 0.7
    assert column("dominance").max() > 0.5
    assert ((column("dominance") > 0) & (column("dominance") <= 1)).all()


def test_neighbouring_frames_confirm_what_lasts() -> None:
    frames = []
    for t in range(3):
        cells = np.roll(TRUTH, t, axis=1)
        cells[cells == cells[60, 40 + t]] *= t == 1  # one cell shows in the middle frame only
        picture = photograph(cells, seed=t)
        regions = propose_frame(FrameView(picture, SETTINGS), t=t)
        frames.append(Described(regions, describe_frame(regions, FrameView(picture, SETTINGS))))
    done = list(described(iter(frames)))
    assert [int(one.regions.frame[0]) for one in done] == [0, 1, 2]
    regions, known = done[1].regions, done[1].features
    assert known.shape == (len(regions), len(FEATURES))
    lasting = column("before and after", known)
    masks = np.stack([regions.mask(r) for r in range(len(regions))])
    at = [np.flatnonzero(masks[:, y, x]) for y, x in ((60, 41), (30, 91))]
    assert lasting[at[0]].max() < 0.2
    assert lasting[at[1]].max() > 0.4
    assert np.isfinite(known).all()
    alone = next(described(iter(frames[:1]))).features
    assert not alone[:, SPATIAL:].any()


@pytest.mark.parametrize("count", [0, 1])
def test_few_candidates(count: int) -> None:
    few = ALL.select(np.arange(count))
    known = describe_frame(few, FrameView(PICTURE, SETTINGS))
    assert known.shape == (count, SPATIAL)
    assert np.isfinite(known).all()
