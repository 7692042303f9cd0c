"""The change of one frame found again in another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bridgetrack.regions.acts import cut
from bridgetrack.regions.mend import MendSite
from bridgetrack.regions.same_mend import same_mend
from bridgetrack.segmentation import SegmentationSettings

FREE = 77


@pytest.mark.parametrize(
    "places", [((30, 18), (30, 42)), ((15, 31), (45, 31))], ids=["two clicks", "a drawn line"]
)
def test_a_cut_that_no_valley_shows_is_found_in_the_same_mask(
    places: tuple[tuple[float, ...], ...],
) -> None:
    drawn = np.zeros((60, 60), dtype=np.int32)
    drawn[20:40, 10:50] = 4
    site = MendSite(5, drawn, SegmentationSettings(diameter=18, foreground="bright"), FREE)
    mend = cut(site, *places)
    found = same_mend(replace(site, frame=6), mend)
    assert found is not None and found.frame == 6
    assert sorted(found.cells) == [4, FREE]
    for mine, theirs in zip(mend.right, found.right, strict=True):
        shared = len(np.intersect1d(mine, theirs))
        assert shared > 0.7 * len(np.union1d(mine, theirs))
