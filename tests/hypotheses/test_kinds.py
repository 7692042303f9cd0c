"""Movies that dense public ones do not stand for: three daughters, fusions of three."""

import numpy as np
import pandas as pd
import pytest

import bridgetrack as bt
from bridgetrack.detections.table import Detections
from bridgetrack.movie.geometry import Geometry
from gallery import movie_of


def drawn(frames, size=300):
    """Discs, each a label with its place and radius."""
    y, x = np.mgrid[:size, :size]
    out = np.zeros((len(frames), size, size), dtype=np.int32)
    for labels, cells in zip(out, frames, strict=True):
        for label, (cy, cx, radius) in cells.items():
            labels[(y - cy) ** 2 + (x - cx) ** 2 <= radius**2] = label
    return out


def test_three_daughters_are_told():
    frames = []
    for t in range(8):
        cells = {k + 1: (60 + 150 * (k // 2), 60 + 150 * (k % 2), 9.0) for k in range(4)}
        if t < 4:
            cells[9] = (140, 140, 13.0)
        else:
            for k, angle in enumerate((0.0, 2.1, 4.2)):
                away = 12 + 3 * (t - 4)
                cells[20 + k] = (140 + away * np.sin(angle), 140 + away * np.cos(angle), 7.3)
        frames.append(cells)
    notes = bt.track(movie_of(drawn(frames))).tracks.notes
    assert any("three or more daughters" in note and "cells 20, 21, 22" in note for note in notes)


def test_a_fusion_of_three_is_told():
    frames = []
    for t in range(8):
        cells = {7: (40.0, 40.0, 10.0), 8: (240.0, 260.0, 10.0)}
        if t < 4:
            away = 12 + 2 * (3 - t)
            for k, angle in enumerate((0.0, 2.1, 4.2)):
                cells[k + 1] = (140 + away * np.sin(angle), 140 + away * np.cos(angle), 10.0)
        else:
            cells[9] = (140, 140, 17.0)
        frames.append(cells)
    for without in ((), "merges"):
        notes = bt.track(movie_of(drawn(frames)), without=without).tracks.notes
        told = any("share one mask" in note and "cells 1, 2, 3" in note for note in notes)
        assert told == (not without)


@pytest.mark.parametrize("ndim", [2, 3])
@pytest.mark.parametrize("left", [0, 1])
def test_tracks_go_on_across_the_dark(ndim, left):
    """All cells, or all but one, are missing in two frames while they and the stage move."""
    rng = np.random.default_rng(3)
    grid = np.stack(np.meshgrid(*[np.arange(3.0)] * ndim, indexing="ij"), axis=-1)
    start = 30 * grid.reshape(-1, ndim) + rng.uniform(-6, 6, (3**ndim, ndim))
    rows = []
    for t in range(8):
        place = start + rng.uniform(-3, 3, start.shape) + 7.0 * t
        some = slice(None, left) if t in (3, 4) else slice(None)
        rows += [(t, k + 1, *p, 80.0) for k, p in list(enumerate(place))[some]]
    columns = ["frame", "label", *"zyx"[-ndim:], "area"]
    geometry = Geometry(8, None, (1.0,) * ndim)
    cells = Detections(pd.DataFrame(rows, columns=columns), geometry, has_masks=False)
    tracks = bt.track(cells).tracks
    label = tracks.nodes.set_index("id")["label"]
    source, target = (label[tracks.edges[c]].to_numpy() for c in ("source", "target"))
    assert (source == target).all()
    assert len(tracks.edges) == len(cells) - len(start)
