"""How frames are read and compared."""

import threading
from collections import Counter

import dask.array as da
import numpy as np
import pytest

from bridgetrack.hypotheses.evidence import gather_evidence
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import Movie
from bridgetrack.progress import run
from gallery import measure
from scenes import label_movie, simulated


class Watched:
    """Pixels (T, C, Y, X) that count how often each frame is read, and in which thread."""

    def __init__(self, pixels):
        self._pixels, self.shape, self.dtype = pixels, pixels.shape, pixels.dtype
        self.ndim = pixels.ndim
        self.reads: Counter[int] = Counter()
        self.threads: set[int] = set()

    def __getitem__(self, key):
        first = key[0]
        self.reads[first.start if isinstance(first, slice) else first] += 1
        self.threads.add(threading.get_ident())
        return self._pixels[key]

    def movie(self, chunks):
        array = da.from_array(self, chunks=chunks, name=False, asarray=False)
        return Movie(array, Geometry(len(self._pixels), self.shape[2:], (1.0, 1.0)), ("0",), "test")


@pytest.fixture
def pixels():
    movie = simulated(frames=7, cells=12)
    return label_movie(movie).array.compute()


def test_every_frame_is_read_once_while_frames_are_compared(pixels):
    watched = Watched(pixels)
    movie = watched.movie((1, 1, *pixels.shape[2:]))
    cells = measure(movie, None)
    watched.reads.clear()
    evidence = run(gather_evidence(cells, movie))
    assert len(evidence.overlap_key) > 50
    assert watched.reads == Counter(range(len(pixels)))


def test_a_frame_of_one_chunk_is_read_in_the_thread_that_asks(pixels):
    height, width = pixels.shape[2:]
    watched = Watched(pixels)
    assert np.array_equal(watched.movie((1, 1, height, width)).channel_frame(2), pixels[2, 0])
    assert watched.threads == {threading.get_ident()}
    # Chunks of one frame are read beside each other.
    watched.threads.clear()
    halves = watched.movie((1, 1, height, width // 2 + 1))
    assert np.array_equal(halves.channel_frame(2), pixels[2, 0])
    assert watched.threads - {threading.get_ident()}
