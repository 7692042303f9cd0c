"""Clicks that mend masks: what they change, what they leave alone, what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.errors import InputError
from bridgetrack.regions.acts import MendSite, act
from bridgetrack.regions.mend import MaskAnswer, MendKind, pixels_of
from bridgetrack.segmentation import SegmentationSettings
from pictures import blobs, photograph

BRIGHT = SegmentationSettings(diameter=18, foreground="bright", depth=0.05)
CENTRES = [(25.0, 25.0), (25.0, 41.0), (60.0, 40.0), (30.0, 90.0)]
FREE = 77


def flat_site(drawn: np.ndarray | None = None, image: bool = True) -> tuple[MendSite, np.ndarray]:
    """Four cells of which the first two touch; some other masks may be drawn."""
    truth = blobs((90, 120), CENTRES, 9)
    labels = truth if drawn is None else drawn
    picture = photograph(truth, seed=3) if image else None
    return MendSite(5, labels, BRIGHT, FREE, picture), truth


def joined() -> np.ndarray:
    """The first two cells drawn as one."""
    drawn = blobs((90, 120), CENTRES, 9)
    drawn[drawn == 2] = 1
    return drawn


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    return (first & second).sum() / (first | second).sum()


def applied(mend: MaskAnswer, labels: np.ndarray) -> np.ndarray:
    """A frame's labels after a change."""
    pixels, _, after = mend.changed
    changed = labels.copy()
    changed.flat[pixels] = after
    return changed


def cells_of(mend: MaskAnswer, labels: np.ndarray) -> list[int]:
    """Labels of the cells that an answer calls right, in a frame."""
    return [int(labels.flat[runs[0][0]]) for runs in mend.right]


def consistent(site: MendSite, mend: MaskAnswer) -> np.ndarray:
    """The labels after a change, once everything is checked that holds of any change."""
    labels = site.labels.copy()
    after = applied(mend, labels)
    np.testing.assert_array_equal(labels, site.labels)
    assert mend.fits(labels)
    assert not mend.fits(after)
    np.testing.assert_array_equal(applied(mend.inverse, after), labels)
    np.testing.assert_array_equal(np.flatnonzero(after != labels), mend.changed[0])
    for label, runs in zip(cells_of(mend, after), mend.right, strict=True):
        np.testing.assert_array_equal(np.flatnonzero(after == label), pixels_of(runs))
    old, new = set(np.unique(labels).tolist()), set(np.unique(after).tolist())
    assert new - old <= {site.free}
    for label in old - mend.labels - {0}:
        np.testing.assert_array_equal(after == label, labels == label)
    return after


@pytest.mark.parametrize("image", [True, False])
def test_one_click_cuts_two_cells_that_were_drawn_as_one(image: bool) -> None:
    site, truth = flat_site(joined(), image)
    mend = act("cut", site, (25, 22))
    after = consistent(site, mend)
    assert mend.kind == MendKind.CUT and mend.frame == 5
    assert sorted(cells_of(mend, after)) == [1, FREE]
    for cell in (1, 2):
        assert max(overlap(after == k, truth == cell) for k in (1, FREE)) > 0.85
    assert (after == 1).sum() >= (after == FREE).sum()
    [wrong] = mend.wrong
    np.testing.assert_array_equal(pixels_of(wrong), np.flatnonzero(site.labels == 1))


def test_a_line_cuts_where_it_is_drawn_and_nowhere_else() -> None:
    drawn = np.zeros((60, 80), dtype=np.int32)
    drawn[10:50, 10:20] = drawn[10:50, 60:70] = drawn[10:20, 10:70] = 4  # an arch
    site = MendSite(0, drawn, BRIGHT, FREE)
    mend = act("cut", site, (30, 5), (30, 25))
    after = consistent(site, mend)
    np.testing.assert_array_equal(np.unique(after[31:50, 10:20]), [FREE])
    np.testing.assert_array_equal(np.unique(after[31:50, 60:70]), [4])
    with pytest.raises(InputError, match="crosses no cell"):
        act("cut", site, (55, 5), (55, 25))
    with pytest.raises(InputError, match="does not divide"):
        act("cut", site, (5, 10), (10, 10))


def test_what_shows_no_valley_is_not_cut_at_a_venture() -> None:
    drawn = np.zeros((60, 60), dtype=np.int32)
    drawn[20:40, 20:40] = 4
    with pytest.raises(InputError, match="click beside it on both sides"):
        act("cut", MendSite(0, drawn, BRIGHT, FREE), (30, 30))
    with pytest.raises(InputError, match="there is no cell at pixel"):
        act("cut", MendSite(0, drawn, BRIGHT, FREE), (5, 5))
    with pytest.raises(InputError, match="outside the frame"):
        act("cut", MendSite(0, drawn, BRIGHT, FREE), (5, 60))


def test_joining_keeps_the_larger_number_and_closes_the_gap() -> None:
    drawn = np.zeros((60, 60), dtype=np.int32)
    drawn[20:40, 10:20], drawn[20:40, 23:50], drawn[45:55, 20:30] = 3, 4, 5
    site = MendSite(0, drawn, BRIGHT, FREE)
    mend = act("join", site, (30, 15), (30, 30))
    after = consistent(site, mend)
    assert cells_of(mend, after) == [4]
    np.testing.assert_array_equal(np.unique(after[22:38, 10:50]), [4])
    assert (after == 4).sum() <= 20 * 40
    assert len(mend.wrong) == 2
    with pytest.raises(InputError, match="needs two cells"):
        act("join", site, (30, 12), (30, 15))
    far = np.where(drawn == 3, 0, drawn)
    far[0:4, 0:4] = 3
    with pytest.raises(InputError, match="paint what lies between"):
        act("join", replace(site, labels=far), (1, 1), (50, 25))


def test_a_missing_cell_is_found_where_somebody_clicks() -> None:
    truth = blobs((90, 120), CENTRES, 9)
    site, _ = flat_site(np.where(truth == 2, 0, truth))
    mend = act("grow", site, (25, 41))
    after = consistent(site, mend)
    assert cells_of(mend, after) == [FREE] and mend.wrong == ()
    assert overlap(after == FREE, truth == 2) > 0.75
    with pytest.raises(InputError, match="here is the mask of"):
        act("grow", site, (25, 25))
    for nothing, place in ((replace(site, image=None), (25, 41)), (site, (85, 5))):
        with pytest.raises(InputError, match="paint the cell"):
            act("grow", nothing, place)


def test_what_is_no_cell_goes() -> None:
    site, truth = flat_site()
    mend = act("remove", site, (60, 40))
    after = consistent(site, mend)
    assert mend.right == ()
    assert not (after == truth[60, 40]).any()
    with pytest.raises(InputError, match="no cell"):
        act("remove", site, (85, 5))


def test_outlines_take_turns_and_come_round() -> None:
    truth = blobs((90, 120), CENTRES, 9)
    bad = np.where(truth == 4, 0, truth)
    bad[28:31, 86:95] = 4
    site, _ = flat_site(bad)
    seen = []
    for _ in range(12):
        mend = act("outline", site, (30, 90))
        after = consistent(site, mend)
        assert cells_of(mend, after) == [4]
        seen.append(after == 4)
        site = replace(site, labels=after)
    assert overlap(seen[0], truth == 4) > 0.75
    assert any(overlap(seen[0], later) > 0.95 for later in seen[1:])
    with pytest.raises(InputError, match="no other outline"):
        act("outline", replace(site, image=None), (30, 90))


def test_three_dimensions_with_long_voxels() -> None:
    scale = (2.0, 1.0, 1.0)
    truth = blobs((12, 50, 70), [(6, 25, 20), (6, 25, 36), (6, 25, 58)], 8, scale)
    image = photograph(truth, seed=2)
    drawn = np.where(truth == 2, 1, truth)
    drawn[drawn == 3] = 0
    bright = replace(BRIGHT, diameter=16.0)
    site = MendSite(0, drawn, bright, FREE, image, scale)
    mend = act("cut", site, (6, 25, 20))
    after = consistent(site, mend)
    for cell in (1, 2):
        assert max(overlap(after == k, truth == cell) for k in (1, FREE)) > 0.8
    lined = consistent(site, act("cut", site, (6, 5, 28), (6, 45, 28)))
    assert overlap(lined == 1, truth == 1) > 0.9 or overlap(lined == FREE, truth == 1) > 0.9
    grown = consistent(site, act("grow", site, (6, 25, 58)))
    assert overlap(grown == FREE, truth == 3) > 0.6
    both = replace(site, labels=after, free=FREE + 1)
    assert (
        overlap(consistent(both, act("join", both, (6, 25, 20), (6, 25, 36))) == 1, drawn == 1)
        > 0.95
    )


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6))
def test_whatever_is_clicked_only_what_was_meant_changes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    labels = blobs((50, 60), [tuple(p) for p in rng.uniform(5, 45, (5, 2))], 8)
    site = MendSite(0, labels, BRIGHT, FREE, photograph(labels, seed=seed))
    first, second = (tuple(map(float, p)) for p in rng.integers(0, 50, (2, 2)))
    for kind in ("cut", "join", "grow", "remove", "outline"):
        places = (first, second) if kind in ("cut", "join") else (first,)
        try:
            consistent(site, act(kind, site, *places))
        except InputError as error:
            assert "frame 0" in str(error)


def test_all_that_lies_wholly_in_an_area_is_right() -> None:
    site, truth = flat_site()
    area = act("check", site, (20.0, 10.0), (89.0, 70.0))  # the tops of the first two lie above it
    [right] = area.right
    np.testing.assert_array_equal(pixels_of(right), np.flatnonzero(truth == 3))
    seen = np.zeros(truth.shape, dtype=bool)
    seen[20:90, 10:71] = True
    np.testing.assert_array_equal(pixels_of(area.wrong[0]), np.flatnonzero(seen & (truth == 0)))
    assert act("check", site, (89.0, 70.0), (20.0, 10.0)) == area
    assert cells_of(act("check", site), truth) == [1, 2, 3, 4]


def test_an_area_without_a_whole_cell_is_not_taken() -> None:
    site, _ = flat_site()
    empty = (70.0, 80.0), (80.0, 100.0)
    left, above = ((0.0, -60.0), (89.0, -5.0)), ((-60.0, 0.0), (-5.0, 119.0))
    right, below = ((0.0, 125.0), (89.0, 200.0)), ((95.0, 0.0), (200.0, 119.0))
    for corners in (empty, left, above, right, below):
        with pytest.raises(InputError, match="no cell lies wholly within"):
            act("check", site, *corners)
    with pytest.raises(InputError, match="two opposite corners"):
        act("check", site, (3.0, 4.0))
