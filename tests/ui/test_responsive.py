"""What is asked of Python while a window is open, and that it is as before afterwards."""

from __future__ import annotations

import gc
import sys

import numpy as np
import pytest

pytest.importorskip("napari", reason="napari is not installed")


@pytest.fixture
def thawed():
    """Nothing is left out of the search for garbage, as in a program of somebody else."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_garbage_is_searched_among_new_objects_until_a_layer_goes(thawed, qtbot, monkeypatch):
    from napari.components import ViewerModel

    from bridgetrack.ui import responsive

    monkeypatch.setattr(responsive, "_SETTLED", 10)
    before = sys.getswitchinterval(), gc.get_threshold()
    model = ViewerModel()
    model.add_image(np.zeros((3, 3)))
    made = responsive.Responsive(model.layers)
    assert sys.getswitchinterval() < before[0] and gc.get_threshold()[2] > before[1][2]
    qtbot.waitUntil(lambda: gc.get_freeze_count() > 0)
    seen = []
    model.layers.events.removed.connect(lambda _: seen.append(gc.get_freeze_count()))
    model.layers.clear()
    assert seen == [0], "what the layer held can be found as it goes"
    qtbot.waitUntil(lambda: gc.get_freeze_count() > 0)
    made.close()
    assert gc.get_freeze_count() == 0
    assert (sys.getswitchinterval(), gc.get_threshold()) == before


def test_objects_that_others_left_out_stay_so(thawed):
    from napari.components import ViewerModel

    from bridgetrack.ui.responsive import Responsive

    gc.freeze()
    count, threshold = gc.get_freeze_count(), gc.get_threshold()
    model = ViewerModel()
    made = Responsive(model.layers)
    model.add_image(np.zeros((3, 3)))
    model.layers.clear()
    assert gc.get_threshold() == threshold
    made.close()
    assert gc.get_freeze_count() >= 0.9 * count
