"""A movie of several channels: masks go by the one that shows the cells, wherever it stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.errors import InputError
from bridgetrack.movie import Movie, open_labels, open_movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.project import load_project
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.ui.file_menu import layers_of
from drawn_movie import drawn

T = 1


@pytest.fixture(scope="module")
def movie() -> tuple[Movie, np.ndarray]:
    """Noise and nuclei, two of which are drawn as one in frame T."""
    images, labels = drawn(3)
    labels[T][labels[T] == 2] = 1
    noise = np.random.default_rng(1).normal(100, 4, images.shape)
    both = np.stack([noise, images], axis=1)
    return open_movie(both, axes="TCYX", channels=["other", "nuclei"]), labels


@pytest.fixture
def session(movie: tuple[Movie, np.ndarray]) -> bt.Session:
    """A session on both channels."""
    return bt.Session(movie[1].copy(), movie[0], channel="nuclei")


def test_masks_are_mended_by_the_channel_with_the_cells(session, movie) -> None:
    image = session.masks.site(T).image
    np.testing.assert_array_equal(image, movie[0].channel_frame(T, 1))
    with pytest.raises(InputError, match="no channel 'actin'"):
        bt.Session(movie[1], movie[0], channel="actin")


def test_masks_are_chosen_again_by_it(movie) -> None:
    image, labels = movie
    alone, found = replace(image, array=image.array[:, 1:], channels=("nuclei",)), []
    for seen, channel in ((image, 1), (alone, 0)):
        array, session = labels.copy(), bt.Session()
        cells = open_labels(array, axes="TYX")
        how = Finding()
        session._open(MovieAndCells(cells, seen, pixels=array, found=how, channel=channel), None)
        session.choose_again()
        assert len(np.unique(array[T])) == 6
        found.append(array)
    np.testing.assert_array_equal(*found)


def test_a_project_keeps_all_channels_and_which_shows_the_cells(session, tmp_path: Path) -> None:
    folder = session.save(tmp_path / "movie")
    again = bt.Session.from_project(folder)
    assert again.movie.channel == 1 and again.movie.image.channels == ("other", "nuclei")
    np.testing.assert_array_equal(again.movie.image.array, session.movie.image.array)
    again.answer(again.ask(), "yes")
    assert load_project(folder).open()[1].channels == ("other", "nuclei"), "it stays whole"
    image, *_ = layers_of(folder)
    np.testing.assert_array_equal(image[0], session.movie.image.array[:, 1])
