"""How large a pixel is, where only one of a movie's layers says it."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.ui.layers import share_scale

napari_layers = pytest.importorskip("napari.layers")

FINE, COARSE = (1.0, 0.5, 0.5), (1.0, 0.8, 0.8)


@pytest.mark.parametrize(
    ("image", "labels", "after"),
    [
        (FINE, None, (FINE, FINE)),
        (None, FINE, (FINE, FINE)),
        (None, None, ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))),
        (FINE, COARSE, (FINE, COARSE)),
    ],
)
def test_only_a_layer_that_says_nothing_takes_the_scale_of_the_other(image, labels, after):
    pixels = np.zeros((3, 20, 30), dtype=np.uint8)
    pair = [
        make(pixels, scale=scale, units=("pixel", "um", "um") if scale else None)
        for make, scale in ((napari_layers.Image, image), (napari_layers.Labels, labels))
    ]
    share_scale(*pair)
    assert [tuple(layer.scale) for layer in pair] == list(after)
