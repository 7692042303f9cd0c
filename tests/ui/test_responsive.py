"""What is asked of Python while a window is open, and what is done first in it."""

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

    from bridgetrack.ui import state

    monkeypatch.setattr(state, "_SETTLED", 10)
    before = sys.getswitchinterval(), gc.get_threshold()
    model = ViewerModel()
    model.add_image(np.zeros((3, 3)))
    made = state.Responsive(model.layers)
    assert sys.getswitchinterval() < before[0] and gc.get_threshold()[2] > before[1][2]
    qtbot.waitUntil(lambda: gc.get_freeze_count() > 0, timeout=20_000)
    seen = []
    model.layers.events.removed.connect(lambda _: seen.append(gc.get_freeze_count()))
    model.layers.clear()
    assert seen == [0], "what the layer held can be found as it goes"
    qtbot.waitUntil(lambda: gc.get_freeze_count() > 0, timeout=20_000)
    made.close()
    assert gc.get_freeze_count() == 0
    assert (sys.getswitchinterval(), gc.get_threshold()) == before
