"""Movies are segmented frame by frame, with settings that suit the whole movie."""

import numpy as np
import pytest

import bridgetrack as bt
from bridgetrack.movie import label_frame, open_labels, open_movie
from bridgetrack.segmentation import segment_frame
from bridgetrack.segmentation.readings import estimate_settings
from pictures import blobs, found_share, photograph

CENTRES = [(25.0, 25.0), (60.0, 40.0), (30.0, 90.0)]
TRUTH = np.stack([blobs((90, 120), [(y, x + 3 * t) for y, x in CENTRES], 9) for t in range(4)])
PICTURES = np.stack([photograph(frame, seed=t) for t, frame in enumerate(TRUTH)])


def plain(movie, **how):
    return np.asarray(bt.find_cells(movie, choose="plain", **how).labels.array[:, 0])


def test_settings_are_shared():
    movie = open_movie(PICTURES)
    chosen = estimate_settings(movie).settings
    assert chosen.foreground == "bright"
    assert chosen.diameter == pytest.approx(18, rel=0.15)
    for t, labels in enumerate(plain(movie)):
        assert found_share(TRUTH[t], labels) == 1.0
        np.testing.assert_array_equal(labels, segment_frame(PICTURES[t], chosen))


@pytest.mark.parametrize("channel", [1, "DNA"])
def test_one_channel_drives(channel):
    both = np.stack([np.zeros_like(PICTURES), PICTURES], axis=1)
    movie = open_movie(both, axes="TCYX", channels=["other", "DNA"])
    assert (plain(movie, channel=channel).max(axis=(1, 2)) == 3).all()
    assert not plain(movie).any()


@pytest.mark.parametrize(
    ("images", "truth", "least"),
    [
        ("HL60-3D-small/01", "HL60-3D-small/01_GT/TRA", 0.9),
        ("PhC-C2DL-PSC-01/01", "PhC-C2DL-PSC-01/01_GT/FULL", 0.8),
    ],
)
def test_real_movies_need_no_setting(shared_data, images, truth, least):
    movie, labels = open_movie(shared_data / images), open_labels(shared_data / truth)
    middle = movie.n_frames // 2
    (found,) = plain(open_movie(movie.array[middle : middle + 1, 0]))
    assert found_share(label_frame(labels, middle), found) >= least
