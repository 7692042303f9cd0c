"""How a movie is read does not hang on which of its frames are given, and doubts are told."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage as ndi

from bridgetrack.movie import open_movie
from bridgetrack.segmentation import SegmentationSettings
from bridgetrack.segmentation.readings import (
    Reading,
    SettingsEstimate,
    estimate_settings,
)
from pictures import blobs


def _ringed(frames: int, noise: float = 2.0) -> NDArray[np.float32]:
    """Bright cells with dark rings, as in phase contrast, that move a little."""
    rng = np.random.default_rng(0)
    centres = rng.uniform(12, 158, (22, 2))
    pictures = []
    for _ in range(frames):
        centres = np.clip(centres + rng.normal(0, 0.7, centres.shape), 8, 162)
        cells = blobs((170, 170), [tuple(c) for c in centres], 5) > 0
        ring = ndi.binary_dilation(cells, iterations=2) & ~cells
        picture = ndi.gaussian_filter(100 + 80.0 * cells - 50.0 * ring, 0.7)
        pictures.append(picture + rng.normal(0, noise, cells.shape))
    return np.stack(pictures).astype(np.float32)


MOVIE = _ringed(4)


def test_several_readings_are_tried_and_the_steadiest_is_taken() -> None:
    found = estimate_settings(open_movie(MOVIE))
    assert {r.foreground for r in found.readings} == {"bright", "dark", "texture"}
    best = found.readings[0]
    assert found.settings.foreground == best.foreground == "bright"
    assert found.settings.diameter == best.diameter == pytest.approx(10, rel=0.3)
    assert best.again > 0.8
    assert best.cells == pytest.approx(22, rel=0.25)
    assert [r.worth for r in found.readings] == sorted(r.worth for r in found.readings)[::-1]


def test_the_reading_is_the_same_for_any_frames() -> None:
    for part in (MOVIE[:2], MOVIE[2:]):
        found = estimate_settings(open_movie(part)).settings
        assert found.foreground == "bright"
        assert found.diameter == pytest.approx(10, rel=0.3)


def test_what_is_said_is_not_tried() -> None:
    said = SegmentationSettings(foreground="dark", diameter=12)
    found = estimate_settings(open_movie(MOVIE), said)
    assert [(r.foreground, r.diameter) for r in found.readings] == [("dark", 12)]
    assert found.doubts == ()
    size = estimate_settings(open_movie(MOVIE), SegmentationSettings(diameter=11))
    assert {r.diameter for r in size.readings} == {11}
    assert size.settings.foreground == "bright"


def test_a_single_frame_and_no_cells() -> None:
    assert estimate_settings(open_movie(MOVIE[:1])).settings.diameter is not None
    nothing = estimate_settings(open_movie(np.zeros((3, 40, 40))))
    assert nothing.settings.diameter == 20
    assert nothing.doubts == ()


def test_doubts_are_told() -> None:
    settings = SegmentationSettings(foreground="bright", diameter=10)
    bright = Reading("bright", 10.0, cells=100, again=0.9)
    dark = Reading("dark", 20.0, cells=90, again=0.9)
    (close,) = SettingsEstimate(settings, (bright, dark)).doubts
    assert "dark" in close
    assert "20 pixels" in close
    assert (
        SettingsEstimate(settings, (bright, Reading("dark", 20.0, cells=90, again=0.3))).doubts
        == ()
    )
    (uneven,) = SettingsEstimate(settings, (Reading("bright", 10.0, spread=3.0),)).doubts
    assert "factor of 3.0" in uneven
