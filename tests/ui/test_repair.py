"""The checkbox that repairs cells, its list, and taking a change back, in a real window."""

from __future__ import annotations

import numpy as np
import pytest
from qtpy.QtCore import Qt
from superqt import QCollapsible

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def opened(viewer, qtbot, pixels):
    """The state and panel of a viewer with cells of which one is missing in frame 2."""
    from bridgetrack.ui.panel import state_of

    image, truth = (each[:4, 60:330, 60:330] for each in pixels)
    labels = truth.copy()
    lost = max(np.unique(truth[2][40:230, 40:230])[1:], key=lambda k: (truth[2] == k).sum())
    labels[2][labels[2] == lost] = 0
    viewer.add_image(image, name="short")
    viewer.add_labels(labels, name="cells")
    _, widget = viewer.window.add_plugin_dock_widget("bridgetrack", "Bridgetrack")
    state = state_of(viewer)
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
    box = widget.segment.repair
    section = next(s for s in widget.segment.findChildren(QCollapsible) if s.isAncestorOf(box))
    section.expand(animate=False)
    return state, box, truth[2] == lost


def test_cells_are_repaired_listed_and_given_back(opened, viewer, qtbot):
    state, box, lost = opened
    session, given = state.session, viewer.layers["cells"].data.copy()
    assert box.on.isEnabled() and not box.table.isVisibleTo(box)
    box.on.click()
    qtbot.waitUntil(lambda: "cells repaired" in viewer.layers, timeout=120_000)
    layer = viewer.layers["cells repaired"]
    qtbot.waitUntil(
        lambda: session.tracking is not None and session.movie.layers[1] is layer, timeout=60_000
    )
    np.testing.assert_array_equal(viewer.layers["cells"].data, given)
    assert (layer.data[2][lost] > 0).mean() > 0.6
    assert box.table.rowCount() > 0 and "added" in box.words.text()
    rows = range(box.table.rowCount())
    row = next(
        k
        for k in rows
        if [box.table.item(k, c).text() for c in (0, 1)] == ["2", "added"]
        and (layer.data[2][lost] == int(box.table.item(k, 2).text())).any()
    )
    box.table.selectRow(row)
    n = box.table.rowCount()
    qtbot.mouseClick(box.back, Qt.MouseButton.LeftButton)
    assert (layer.data[2][lost] > 0).mean() < 0.2
    assert box.table.rowCount() == n - 1
    session.undo()
    assert (layer.data[2][lost] > 0).mean() > 0.6
    box.on.click()
    qtbot.waitUntil(lambda: session.movie.layers[1] is viewer.layers["cells"], timeout=20_000)
    assert not box.table.isVisibleTo(box)
    qtbot.waitUntil(lambda: session.tracking is not None, timeout=60_000)


def test_other_cells_end_the_repair_and_without_an_image_there_is_none(opened, viewer, qtbot):
    state, box, _ = opened
    viewer.layers.remove("short")
    qtbot.waitUntil(lambda: state.session.movie.image is None, timeout=20_000)
    assert not box.on.isEnabled()
    qtbot.waitUntil(lambda: state.session.tracking is not None, timeout=60_000)
