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

    from bridgetrack.ui import responsive

    monkeypatch.setattr(responsive, "_SETTLED", 10)
    before = sys.getswitchinterval(), gc.get_threshold()
    model = ViewerModel()
    model.add_image(np.zeros((3, 3)))
    made = responsive.Responsive(model.layers)
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


def test_several_windows_leave_all_as_it_was_in_any_order(thawed, qtbot):
    from napari.components import ViewerModel

    from bridgetrack.ui.responsive import Responsive

    before = sys.getswitchinterval(), gc.get_threshold()
    try:
        sys.setswitchinterval(0.005)
        one, other = Responsive(ViewerModel().layers), Responsive(ViewerModel().layers)
        one.close()
        other.close()
        assert sys.getswitchinterval() == pytest.approx(0.005, rel=0.1)
        one, other = Responsive(ViewerModel().layers), Responsive(ViewerModel().layers)
        other.close()
        assert sys.getswitchinterval() < 0.001, "the other one is still open"
        one.close()
        assert sys.getswitchinterval() == pytest.approx(0.005, rel=0.1)
    finally:
        sys.setswitchinterval(before[0])
        gc.set_threshold(*before[1])


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


def test_what_is_drawn_comes_before_what_nobody_sees(qtbot):
    from bridgetrack.ui.background import _PATIENCE, EventLoopQueue, ThreadRunner, Turns

    turns, done = Turns(), []
    runner, drawing = ThreadRunner(turns), EventLoopQueue(turns)

    def work(name):
        def steps():
            done.append(name)
            yield None

        return steps

    def start(name):
        runner.start(name, work(name), lambda _: None, done.append, lambda _: None)

    start("computed")
    start("cancelled")
    drawing.begin(lambda: done.append("drawn"), lambda: done.append("written"))
    assert runner.running("computed") and not done
    runner.cancel("cancelled")
    qtbot.waitUntil(lambda: not runner.running("computed"), timeout=20_000)
    assert done == ["drawn", "written", "computed"]

    def drawn_again():
        done.append("again")
        drawing.then(drawn_again)

    done.clear()
    drawing.then(drawn_again)
    start("late")
    qtbot.waitUntil(
        lambda: not runner.running("late"), timeout=20_000
    )  # although there is always more to draw
    drawing.stop()
    assert 1 <= done.index("late") <= 2 * _PATIENCE
    start("never")
    runner.close()
    qtbot.wait(100)
    assert "never" not in done
