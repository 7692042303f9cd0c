"""Cells found again in the next frame."""

from __future__ import annotations

import numpy as np

from bridgetrack.regions.regions import regions_of_labels
from bridgetrack.regions.steady import found_again


def test_cells_that_stay_are_found_again_and_others_not() -> None:
    first = np.zeros((20, 40), dtype=np.int32)
    first[2:8, 2:8], first[2:8, 20:26], first[12:18, 2:8] = 1, 2, 3
    second = np.zeros_like(first)
    second[2:8, 3:9], second[2:8, 26:32] = 1, 2  # one moves a little, one beyond itself, one goes
    frames = [regions_of_labels(first, 0), regions_of_labels(second, 1)]
    name = frames[0].sources[0]
    assert found_again([frames], name) == 1 / 3
    assert found_again([frames, [frames[1]]], name) == 1 / 3
    assert found_again([frames], "another") == 0.0
    assert found_again([[frames[0]]], name) == 0.0
    assert found_again([], name) == 0.0
