"""Size and look of cells are estimated whichever frames are given, and doubts are told."""

import numpy as np
import pytest
from scipy import ndimage as ndi

from bridgetrack.movie import open_movie
from bridgetrack.segmentation import SegmentationSettings, estimate_diameter, estimate_foreground
from bridgetrack.segmentation.readings import Reading, SettingsEstimate, estimate_settings
from pictures import blobs, photograph


def _ringed(frames, noise=2.0):
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


def test_several_readings_are_tried_and_the_steadiest_is_taken():
    found = estimate_settings(open_movie(MOVIE))
    assert {r.foreground for r in found.readings} == {"bright", "dark", "texture"}
    best = found.readings[0]
    assert found.settings.foreground == best.foreground == "bright"
    assert found.settings.diameter == best.diameter == pytest.approx(10, rel=0.3)
    assert best.again > 0.8
    assert best.cells == pytest.approx(22, rel=0.25)
    assert [r.worth for r in found.readings] == sorted(r.worth for r in found.readings)[::-1]


def test_the_reading_is_the_same_for_any_frames():
    for part in (MOVIE[:2], MOVIE[2:]):
        found = estimate_settings(open_movie(part)).settings
        assert found.foreground == "bright"
        assert found.diameter == pytest.approx(10, rel=0.3)


def test_what_is_said_is_not_tried():
    said = SegmentationSettings(foreground="dark", diameter=12)
    found = estimate_settings(open_movie(MOVIE), said)
    assert [(r.foreground, r.diameter) for r in found.readings] == [("dark", 12)]
    assert found.doubts == ()
    size = estimate_settings(open_movie(MOVIE), SegmentationSettings(diameter=11))
    assert {r.diameter for r in size.readings} == {11}
    assert size.settings.foreground == "bright"


def test_a_single_frame_and_no_cells():
    assert estimate_settings(open_movie(MOVIE[:1])).settings.diameter is not None
    nothing = estimate_settings(open_movie(np.zeros((3, 40, 40))))
    assert nothing.settings.diameter == 20
    assert nothing.doubts == ()


def test_doubts_are_told():
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


@pytest.mark.parametrize("radius", [5, 12])
def test_diameter_of_discs(radius):
    step = 3 * radius
    places = range(2 * radius, 8 * step - radius, step)
    truth = blobs((8 * step, 8 * step), [(y, x) for y in places for x in places], radius)
    found = estimate_diameter(photograph(truth))
    assert found == pytest.approx(2 * radius, rel=0.15)


def test_diameter_of_balls_is_that_of_their_sections():
    truth = blobs(
        (15, 80, 80), [(7, y, x) for y in (20, 60) for x in (20, 60)], 10, (2.0, 1.0, 1.0)
    )
    assert estimate_diameter(photograph(truth)) == pytest.approx(20, rel=0.2)


def test_dark_cells_with_bright_halos_are_dark():
    cells = blobs((160, 160), [(50, 50), (50, 110), (110, 80)], 12) > 0
    halo = ndi.binary_dilation(cells, iterations=4) & ~cells
    picture = 100 - 80.0 * cells + 60.0 * halo
    noise = np.random.default_rng(2).normal(0, 2, cells.shape)
    assert estimate_foreground([ndi.gaussian_filter(picture, 1) + noise]) == "dark"


def test_speckled_cells_are_texture():
    rng = np.random.default_rng(3)
    cells = blobs((200, 200), [(60, 60), (60, 140), (140, 100)], 25) > 0
    picture = 100 + rng.normal(0, 2, cells.shape)
    picture += np.where(cells, ndi.gaussian_filter(rng.normal(0, 60, cells.shape), 1), 0)
    assert estimate_foreground([picture]) == "texture"


def test_cells_that_are_not_found_again_are_told():
    unrelated = np.concatenate([_ringed(1), _ringed(1)[:, ::-1], _ringed(1)[:, :, ::-1]])
    (told,) = (
        words for words in estimate_settings(open_movie(unrelated)).doubts if "again" in words
    )
    assert "Cellpose" in told
    assert not any("again" in words for words in estimate_settings(open_movie(MOVIE)).doubts)
