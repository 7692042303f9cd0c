"""Pictures of tracks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from bridgetrack.errors import InputError, OutputError
from bridgetrack.movie.geometry import Geometry
from bridgetrack.tracks.colours import family_shades, paint
from bridgetrack.tracks.overlay import draw_overlay
from bridgetrack.tracks.tracks import Tracks

SHAPE = (40, 60)


def square(label: int, y: int, x: int, side: int = 8) -> np.ndarray:
    frame = np.zeros(SHAPE, dtype=np.uint16)
    frame[y : y + side, x : x + side] = label
    return frame


LABELS = [square(1, 10, 5), square(1, 10, 15), square(1, 4, 25) + square(2, 20, 25)]
"""A cell moves right and divides; its daughters are labels 1 and 2 of frame 2."""


def family(lineage: int = 7, ndim: int = 2) -> Tracks:
    nodes = pd.DataFrame(
        {
            "id": [0, 1, 2, 3],
            "frame": [0, 1, 2, 2],
            "label": [1, 1, 1, 2],
            "z": 1.0,
            "y": [13.5, 13.5, 7.5, 23.5],
            "x": [8.5, 18.5, 28.5, 28.5],
            "area": 64,
            "track_id": [7, 7, 8, 9],
            "lineage_id": lineage,
        }
    )
    edges = pd.DataFrame(
        {
            "source": [0, 1, 1],
            "target": [1, 2, 3],
            "event": ["move", "divide", "divide"],
            "score": 1.0,
            "margin_at_least": 1.0,
        }
    )
    links = pd.DataFrame({"track_id": [8, 9], "parent_id": 7, "event": "divide"})
    shape, scale = (SHAPE, (1.0, 1.0)) if ndim == 2 else ((3, *SHAPE), (2.0, 1.0, 1.0))
    events = pd.DataFrame(
        columns=["frame", "event", "sources", "targets", "score", "margin_at_least"]
    )
    return Tracks(nodes, edges, events, links, Geometry(3, shape, scale, frame_interval=10.0))


def coloured(picture: np.ndarray) -> np.ndarray:
    values = picture.astype(int)
    return (values.max(axis=2) - values.min(axis=2)) > 60


def test_outline_has_the_colour_of_the_lineage() -> None:
    picture = draw_overlay(None, LABELS[2], family(), 2, zoom=2, tail=1)
    expected = np.round(paint(family_shades(np.array([7])), "names")[0] * 255)
    corner = picture[2 * 20, 2 * 25]
    assert np.abs(corner - expected).max() <= 1
    assert coloured(picture).any()


def test_tail_connects_mother_and_daughters_within_its_length() -> None:
    with_tail = coloured(draw_overlay(None, None, family(), 2, tail=10, zoom=2))
    short = coloured(draw_overlay(None, None, family(), 2, tail=1, zoom=2))
    first_step = np.s_[2 * 13 : 2 * 15, 2 * 11 : 2 * 16]
    division = np.s_[2 * 8 : 2 * 13, 2 * 19 : 2 * 28]
    assert with_tail[first_step].any()
    assert not short[first_step].any()
    assert short[division].any()


def test_stack_is_projected() -> None:
    stack = np.zeros((3, *SHAPE), dtype=np.uint8)
    stack[1] = LABELS[0] * 200
    labels = np.stack([np.zeros(SHAPE, np.uint16), LABELS[0], LABELS[0] * 2])
    picture = draw_overlay(stack, labels, family(ndim=3), 0, zoom=3)
    assert picture.shape == (120, 180, 3)
    assert coloured(picture)[3 * 10, 3 * 5]
    assert picture[3 * 13, 3 * 8].min() > 150


def test_same_picture_in_the_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "overlay.png"
    picture = draw_overlay(LABELS[1] * 50, LABELS[1], family(), 1, path)
    assert np.array_equal(np.round(imread(path)[:, :, :3] * 255).astype(np.uint8), picture)
    assert [p.name for p in tmp_path.iterdir()] == ["overlay.png"]


def test_what_cannot_be_drawn(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\(40, 60\).*\(41, 60\)"):
        draw_overlay(np.zeros((41, 60)), LABELS[1], family(), 1)
    with pytest.raises(OutputError, match="nowhere"):
        draw_overlay(None, LABELS[1], family(), 1, tmp_path / "nowhere" / "overlay.png")
