"""Movies are segmented frame by frame; closing the generator cancels."""

from __future__ import annotations

from pathlib import Path

import dask.array as da
import numpy as np
import pytest

from bridgetrack.errors import InputError
from bridgetrack.movie import label_frame, open_labels, open_movie
from bridgetrack.segmentation import (
    segment_frame,
    segment_movie,
)
from bridgetrack.segmentation.readings import estimate_settings
from pictures import blobs, found_share, photograph

CENTRES = [(25.0, 25.0), (60.0, 40.0), (30.0, 90.0)]
TRUTH = np.stack([blobs((90, 120), [(y, x + 3 * t) for y, x in CENTRES], 9) for t in range(4)])
PICTURES = np.stack([photograph(frame, seed=t) for t, frame in enumerate(TRUTH)])


def test_frames_come_in_order_and_settings_are_shared() -> None:
    movie = open_movie(PICTURES)
    chosen = estimate_settings(movie).settings
    assert chosen.foreground == "bright"
    assert chosen.diameter == pytest.approx(18, rel=0.15)
    done = list(segment_movie(movie))
    assert [d.frame for d in done] == [0, 1, 2, 3]
    assert {d.n_frames for d in done} == {4}
    for t, d in enumerate(done):
        assert found_share(TRUTH[t], d.labels) == 1.0
        np.testing.assert_array_equal(d.labels, segment_frame(PICTURES[t], chosen))


@pytest.mark.parametrize("channel", [1, "DNA"])
def test_one_channel_drives(channel: int | str) -> None:
    both = np.stack([np.zeros_like(PICTURES), PICTURES], axis=1)
    movie = open_movie(both, axes="TCYX", channels=["other", "DNA"])
    for d in segment_movie(movie, channel=channel):
        assert d.labels.max() == 3
    assert all(d.labels.max() == 0 for d in segment_movie(movie))


def test_missing_channel() -> None:
    with pytest.raises(InputError, match="no channel 4"):
        next(segment_movie(open_movie(PICTURES), channel=4))


@pytest.mark.parametrize(
    ("images", "truth", "least"),
    [
        ("HL60-3D-small/01", "HL60-3D-small/01_GT/TRA", 0.9),
        ("PhC-C2DL-PSC-01/01", "PhC-C2DL-PSC-01/01_GT/FULL", 0.8),
    ],
)
def test_real_movies_need_no_setting(
    shared_data: Path, images: str, truth: str, least: float
) -> None:
    movie, labels = open_movie(shared_data / images), open_labels(shared_data / truth)
    times = np.linspace(0, movie.n_frames - 1, 3).astype(int)
    some = open_movie(da.stack([movie.array[t, 0] for t in times]))
    shares = [
        found_share(label_frame(labels, t), d.labels)
        for t, d in zip(times, segment_movie(some), strict=True)
    ]
    assert np.mean(shares) >= least
