"""A search for cells that is pressed again: it goes on, or begins anew where it looks otherwise."""

from __future__ import annotations

import numpy as np

from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie import open_movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.progress import run
from bridgetrack.segmentation.strokes import learn_pixels
from bridgetrack.session.search import CellSearch
from drawn_movie import drawn


def test_a_search_after_one_more_stroke_begins_anew() -> None:
    image, truth = drawn(2)
    movie, strokes = open_movie(image, axes="TYX"), np.zeros(truth.shape, dtype=np.uint8)
    strokes[0] = np.where(truth[0] > 0, 2, 1)
    finding = Finding(choose="plain", model=learn_pixels(movie, strokes))
    first = CellSearch.of(movie, finding)
    labels, _ = run(first.steps(None, shipped_model()))
    again = Finding(choose="plain", model=learn_pixels(movie, strokes))  # as after another look
    assert labels.max() and CellSearch.of(movie, again, first).complete
    strokes[1, 40:44, 40:44] = 1
    other = Finding(choose="plain", model=learn_pixels(movie, strokes))
    assert not CellSearch.of(movie, other, first).done
