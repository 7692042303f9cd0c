"""Layers that are drawn over others are placed where those are, once."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.ui.layers import place_like

layers = pytest.importorskip("napari.layers")


def test_what_is_right_already_is_not_set_again():
    where = {"scale": (1, 0.5, 0.5), "translate": (0, 3, 4), "units": ("pixel", "um", "um")}
    movie = layers.Image(np.zeros((2, 8, 8)), **where)
    shown, flat = layers.Labels(np.zeros((2, 8, 8), int)), layers.Points(ndim=2)
    told = []
    for layer in (shown, flat):
        for name in ("scale", "translate", "units", "axis_labels"):
            getattr(layer.events, name).connect(lambda _, name=name: told.append(name))
    place_like(shown, movie)
    assert shown.scale.tolist() == [1, 0.5, 0.5] and shown.translate.tolist() == [0, 3, 4]
    assert shown.units == movie.units
    place_like(flat, movie, still=True)
    assert flat.scale.tolist() == [0.5, 0.5] and flat.translate.tolist() == [3, 4]
    assert told
    told.clear()
    place_like(shown, movie)
    place_like(flat, movie, still=True)
    assert not told, "napari draws a layer anew for each"
