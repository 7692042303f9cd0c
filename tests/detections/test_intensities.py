"""Images are told from labels by their neighbouring pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridgetrack.detections.labels import MIXED, neighbours_differ, refuse_image
from bridgetrack.errors import InputError
from bridgetrack.files import sample_folder
from bridgetrack.movie.opening import open_labels, open_movie


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(3, 9), st.integers(1, 12))
def test_touching_blocks_are_labels(seed: int, side: int, across: int) -> None:
    numbers = np.random.default_rng(seed).permutation(across**2).reshape(across, across)
    blocks = np.kron(numbers, np.ones((side, side), dtype=int)).astype(np.uint16)
    refuse_image(open_labels(blocks[None], axes="TYX"))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(40, 60_000))
def test_noise_is_an_image(seed: int, levels: int) -> None:
    noise = np.random.default_rng(seed).integers(0, levels, (1, 50, 50)).astype(np.uint16)
    with pytest.raises(InputError, match="looks like an image"):
        refuse_image(open_labels(noise, axes="TYX"))


def test_points_of_one_pixel_are_labels() -> None:
    points = np.zeros((1, 60, 60), dtype=np.uint16)
    points[0, ::3, ::3] = np.arange(1, 401).reshape(20, 20)
    assert neighbours_differ(points[0]) == 0
    refuse_image(open_labels(points, axes="TYX"))


def test_the_sample() -> None:
    refuse_image(open_labels(sample_folder() / "01_GT" / "TRA"))
    with pytest.raises(InputError, match="bridgetrack segment"):
        refuse_image(open_movie(sample_folder() / "01"))


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("HL60-3D-small/01", True),
        ("MouseEpidermis-01-masks/01_GT/TRA", False),
    ],
)
def test_real_movies(shared_data: Path, name: str, image: bool) -> None:
    movie = open_movie(shared_data / name)
    assert (neighbours_differ(movie.channel_frame(0)) > MIXED) == image
