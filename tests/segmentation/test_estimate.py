"""Size and look of cells are estimated from the picture."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage as ndi

from bridgetrack.segmentation import estimate_diameter, estimate_foreground
from pictures import blobs, photograph


@pytest.mark.parametrize("radius", [5, 12])
def test_diameter_of_discs(radius: int) -> None:
    step = 3 * radius
    places = range(2 * radius, 8 * step - radius, step)
    truth = blobs((8 * step, 8 * step), [(y, x) for y in places for x in places], radius)
    found = estimate_diameter(photograph(truth))
    assert found == pytest.approx(2 * radius, rel=0.15)


def test_diameter_of_balls_is_that_of_their_sections() -> None:
    truth = blobs(
        (15, 80, 80), [(7, y, x) for y in (20, 60) for x in (20, 60)], 10, (2.0, 1.0, 1.0)
    )
    assert estimate_diameter(photograph(truth)) == pytest.approx(20, rel=0.2)


def test_no_cells_no_diameter() -> None:
    assert estimate_diameter(np.zeros((50, 50))) is None


def test_bright_and_dark() -> None:
    picture = photograph(blobs((120, 120), [(30, 30), (80, 80), (30, 90)], 10))
    assert estimate_foreground([picture]) == "bright"
    assert estimate_foreground([-picture]) == "dark"


def test_dark_cells_with_bright_halos_are_dark() -> None:
    cells = blobs((160, 160), [(50, 50), (50, 110), (110, 80)], 12) > 0
    halo = ndi.binary_dilation(cells, iterations=4) & ~cells
    picture = 100 - 80.0 * cells + 60.0 * halo
    noise = np.random.default_rng(2).normal(0, 2, cells.shape)
    assert estimate_foreground([ndi.gaussian_filter(picture, 1) + noise]) == "dark"


def test_speckled_cells_are_texture() -> None:
    rng = np.random.default_rng(3)
    cells = blobs((200, 200), [(60, 60), (60, 140), (140, 100)], 25) > 0
    picture = 100 + rng.normal(0, 2, cells.shape)
    picture += np.where(cells, ndi.gaussian_filter(rng.normal(0, 60, cells.shape), 1), 0)
    assert estimate_foreground([picture]) == "texture"
