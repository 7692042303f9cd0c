"""A search for cells that is pressed again: it goes on, or begins anew where it looks otherwise."""

from __future__ import annotations

from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie import open_movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.progress import run
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.session.movie import CellSearch
from drawn_movie import drawn


def test_a_search_with_other_settings_begins_anew() -> None:
    movie = open_movie(drawn(2)[0], axes="TYX")
    finding = Finding(SegmentationSettings(diameter=14.0), "plain")
    first = CellSearch.of(movie, finding)
    labels, _ = run(first.steps(None, shipped_model()))
    again = Finding(SegmentationSettings(diameter=14.0), "plain")
    assert labels.max() and CellSearch.of(movie, again, first).complete
    other = Finding(SegmentationSettings(diameter=18.0), "plain")
    assert not CellSearch.of(movie, other, first).done
