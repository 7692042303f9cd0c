"""A button repairs the cells that were brought along into a layer of their own."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.ui.layers import tags_of
from drawn_movie import drawn

pytestmark = pytest.mark.filterwarnings("ignore")


def test_cells_are_repaired_into_a_layer_of_their_own(viewer, qtbot):
    from bridgetrack.ui.state import state_of

    images, truth = drawn()
    labels = truth.copy()
    labels[2][labels[2] == 2] = 1  # two drawn as one
    viewer.add_image(images, name="movie")
    layer = viewer.add_labels(labels.copy(), name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    session, box = state_of(viewer).session, widget.segment.repair
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    box.go.click()
    qtbot.waitUntil(lambda: "cells repaired" in viewer.layers, timeout=120_000)
    made = viewer.layers["cells repaired"]
    assert "cut" in box.words.text()
    both = made.data[2][np.isin(truth[2], (1, 2))]
    assert len(np.unique(both[both > 0])) == 2
    np.testing.assert_array_equal(layer.data, labels)
    assert not layer.visible and tags_of(made)["found"].brought
    qtbot.waitUntil(lambda: session.movie.layers[1] is made, timeout=60_000)
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
