"""A button repairs the cells that were brought along; Undo takes that back."""

from __future__ import annotations

import numpy as np
import pytest

from bridgetrack.ui.state import state_of
from drawn_movie import drawn

pytestmark = pytest.mark.filterwarnings("ignore")


def test_cells_are_repaired_in_one_step(viewer, qtbot):
    images, truth = drawn()
    labels = truth.copy()
    labels[2][labels[2] == 2] = 1  # two drawn as one
    viewer.add_image(images, name="movie")
    layer = viewer.add_labels(labels.copy(), name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    session = state_of(viewer).session
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)
    widget.open_step(1)
    widget.annotate.again.click()
    qtbot.waitUntil(lambda: session.can_undo, timeout=120_000)
    both = layer.data[2][np.isin(truth[2], (1, 2))]
    assert len(np.unique(both[both > 0])) == 2
    session.undo()
    np.testing.assert_array_equal(layer.data, labels)
