"""The size of cells that a movie is looked at with."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.arrays import Array
from bridgetrack.movie.opening import open_movie
from bridgetrack.pipeline.finding import CellSearch, Finding
from bridgetrack.pipeline.mask_candidates import MaskReader, fitted_settings
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.segmentation.readings import estimate_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from drawn_movie import colony, drawn
from pictures import found_share


def test_rods_that_were_taken_for_one_cell_are_seen_with_a_smaller_size() -> None:
    images, labels = (frames[:1] for frames in colony(bright=True))
    movie = open_movie(images, axes="TYX")
    estimate, fitted = estimate_settings(movie), run(fitted_settings(movie))
    assert fitted.settings.diameter < 0.8 * estimate.settings.diameter
    assert fitted.readings[0].diameter == fitted.settings.diameter
    assert fitted.readings[0].foreground == "bright"
    recall = {}
    for name, known in (("estimate", estimate), ("fitted", fitted)):
        frames = run(CellSearch(movie, Finding(known.settings)).in_memory())
        recall[name] = np.mean([found_share(t, m) for t, m in zip(labels, frames, strict=True)])
    assert recall["fitted"] > max(0.7, recall["estimate"] + 0.3), recall


def test_the_estimate_stays_where_another_size_sees_no_more() -> None:
    movie = open_movie(drawn(2)[0], axes="TYX")
    assert run(fitted_settings(movie)) == estimate_settings(movie)


def test_a_little_noise_at_another_size_is_no_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(reader: MaskReader, frames: list[int]) -> Steps[Array]:
        yield Progress("Looking at the movie", 0.0)
        assert reader.segmentation.diameter is not None
        return np.array([0.9, 7.5]) * (reader.segmentation.diameter < 6.0)

    monkeypatch.setattr("bridgetrack.pipeline.mask_candidates._seen", seen)
    movie = open_movie(drawn(2)[0], axes="TYX")
    assert run(fitted_settings(movie)) == estimate_settings(movie)


def test_a_movie_of_one_frame() -> None:
    movie = open_movie(drawn(1)[0], axes="TYX")
    fitted = run(fitted_settings(movie)).settings
    assert fitted.diameter == pytest.approx(14, rel=0.4)


def test_a_size_that_is_given_is_kept() -> None:
    movie = open_movie(colony(bright=True)[0][:1], axes="TYX")
    given = SegmentationSettings(diameter=43.0)
    assert run(fitted_settings(movie, given)).settings.diameter == 43.0


def test_of_large_frames_the_middle_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridgetrack.pipeline.mask_candidates._LARGEST_SIDE", 96)
    images = np.pad(drawn(1)[0], ((0, 0), (80, 80), (80, 80)), mode="reflect")
    movie = open_movie(images, axes="TYX")
    fitted, estimate = run(fitted_settings(movie)), estimate_settings(movie)
    assert fitted.settings == estimate.settings
