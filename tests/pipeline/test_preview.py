"""The piece of a movie that a kept model is recognised by."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.models.entry import ModelCard
from bridgetrack.models.preview import preview_png
from bridgetrack.pipeline.movie_record import preview_picture
from bridgetrack.pipeline.scene import prepare
from bridgetrack.pipeline.tracking import track_scene
from bridgetrack.progress import run
from scenes import image_movie, label_movie, simulated


@pytest.mark.parametrize("dim", [2, 3])
def test_the_cells_and_their_tracks_are_seen(dim: int) -> None:
    movie = simulated(dim=dim, cells=20, frames=6)
    labels = label_movie(movie)
    image = image_movie(movie.image, movie.geometry.scale)
    tracking = run(track_scene(run(prepare(labels, image))))
    for shown in (image, None):
        picture = preview_picture(tracking, shown)
        assert picture is not None and picture.ndim == 3
        assert min(picture.shape[:2]) > 150 and max(picture.shape[:2]) < 1000
        coloured = np.ptp(picture.astype(int), axis=2) > 40
        assert 0.005 < coloured.mean() < 0.9
    assert preview_png(ModelCard(), picture)[:4] == b"\x89PNG"


def test_cells_without_masks_have_no_picture() -> None:
    movie = simulated(cells=10, frames=4)
    scene = run(prepare(label_movie(movie)))
    tracking = run(track_scene(run(prepare(scene.detections))))
    assert preview_picture(tracking) is None
    assert len(preview_png(ModelCard())) > 1000
