"""Stacks of unknown scale whose slices are farther apart than their pixels."""

import warnings

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.errors import BridgetrackWarning
from bridgetrack.pipeline.scene import remeasure
from gallery import movie_of

SLICES = 4.0


def stack():
    """Nine balls of radius 8 pixels, seen in every fourth plane, that lie still for two frames."""
    grid = np.moveaxis(np.indices((9, 72, 72)).astype(float), 0, -1) * (SLICES, 1, 1)
    frame = np.zeros(grid.shape[:-1], dtype=np.uint16)
    for k, (y, x) in enumerate((y, x) for y in (12, 36, 60) for x in (12, 36, 60)):
        frame[np.linalg.norm(grid - (14 + k % 3 * 2, y, x), axis=-1) <= 8] = k + 1
    return np.stack([frame, frame])


def test_their_distance_is_taken_from_the_cells_and_told_unless_a_scale_is_given():
    with pytest.warns(BridgetrackWarning, match="pixels apart"):
        found = bt.track(stack())
    scale = found.scene.detections.geometry.scale
    assert scale == (pytest.approx(SLICES, rel=0.15), 1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BridgetrackWarning)
        given = bt.track(stack(), scale=(2.0, 1.0, 1.0))
        even = bt.track(stack(), scale=(1.0, 1.0, 1.0))
        cubes = bt.track(np.repeat(stack(), int(SLICES), axis=1))
    assert given.scene.detections.geometry.scale == (2.0, 1.0, 1.0)
    for each in (even, cubes):
        assert each.scene.detections.geometry.scale == (1.0, 1.0, 1.0)


def test_it_stays_while_masks_are_mended():
    with pytest.warns(BridgetrackWarning):
        before = bt.run(bt.prepare(movie_of(stack())))
    changed = stack()
    changed[1][changed[1] == 9] = 0
    after = bt.run(remeasure(before, movie_of(changed), None, {1}))
    assert len(after.detections) == len(before.detections) - 1
    assert after.detections.geometry == before.detections.geometry
    position = before.detections.position[:-1]
    np.testing.assert_array_equal(after.detections.position, position)
