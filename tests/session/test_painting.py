"""Cells that are painted over are measured again, without reading the whole movie."""

from __future__ import annotations

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.movie import Movie
from bridgetrack.progress import run


@pytest.fixture
def painted(monkeypatch):
    """Pixels, a session on them, and the frames of the labels that are read from now on."""
    pixels = bt.open_labels(bt.sample_folder() / "01_GT" / "TRA").array[:12, 0].compute()
    session = bt.Session(bt.open_labels(pixels, axes="TYX"))
    read: list[int] = []
    frame, channel_frame = Movie.frame, Movie.channel_frame

    def counted(self, t):
        read.append(t)
        return frame(self, t)

    def counted_channel(self, t, channel=0):
        read.append(t)
        return channel_frame(self, t, channel)

    monkeypatch.setattr(Movie, "frame", counted)
    monkeypatch.setattr(Movie, "channel_frame", counted_channel)
    return pixels, session, read


def erase(pixels, t):
    """Remove a cell of a frame."""
    pixels[t][pixels[t] == pixels[t].max()] = 0


def test_a_stroke_reads_its_frame_and_those_beside_it(painted):
    pixels, session, read = painted
    before = len(session.scene.detections)
    erase(pixels, 6)
    session.measure(touched={6})
    assert len(session.scene.detections) == before - 1
    assert set(read) == {5, 6, 7}
    whole = run(bt.prepare(bt.open_labels(pixels, axes="TYX")))
    assert np.array_equal(session.scene.hypotheses.sources, whole.hypotheses.sources)
    assert np.allclose(session.scene.matrix.sparse().toarray(), whole.matrix.sparse().toarray())
    assert session.tracking.scene.detections is session.scene.detections
