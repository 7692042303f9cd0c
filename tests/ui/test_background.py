"""Work in threads of napari."""

from __future__ import annotations

import pytest

pytest.importorskip("napari", reason="napari is not installed")


def test_work_that_has_ended_says_nothing_more(qtbot):
    from bridgetrack.ui.background import ThreadRunner

    def work():
        yield 0.5
        return "made"

    runner, made, heard = ThreadRunner(), [], []
    runner.start("work", work, made.append, made.append, lambda _: None)
    worker = runner._active["work"][1]
    worker.warned.connect(heard.append)
    worker.warned.emit(("in time",))
    qtbot.waitUntil(lambda: made == ["made"] and not worker.is_running)
    qtbot.wait(20)
    # So do Python's warnings, which workers that overlap leave to one that has ended.
    worker.warned.emit(("late",))
    qtbot.wait(20)
    assert heard == [("in time",)]
