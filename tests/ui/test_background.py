"""Work in threads of napari."""

from __future__ import annotations

import os
import threading

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
    qtbot.waitUntil(lambda: made == ["made"] and not worker.is_running, timeout=20_000)
    qtbot.wait(20)
    # So do Python's warnings, which workers that overlap leave to one that has ended.
    worker.warned.emit(("late",))
    qtbot.wait(20)
    assert heard == [("in time",)]


def test_short_work_does_not_wait_for_long_work(qtbot, monkeypatch):
    from bridgetrack.ui import background
    from bridgetrack.ui.background import PICTURES, ThreadRunner

    end, begun, made = threading.Event(), [], []

    def long_work(k):
        begun.append(k)
        yield 0.0
        end.wait(60)

    def short_work():
        yield 0.5
        return "made"

    runner = ThreadRunner()
    many = (os.cpu_count() or 1) + 1
    try:
        for k in range(many):
            runner.start(f"long {k}", lambda k=k: long_work(k), made.append, made.append, print)
        qtbot.waitUntil(lambda: len(begun) == 2, timeout=20_000)
        # An answer is tracked, and a question shown, at once; other work waits until there is room.
        for name in ("correct", PICTURES):
            made.clear()
            runner.start(name, short_work, made.append, made.append, lambda _: None)
            qtbot.waitUntil(lambda: made == ["made"], timeout=20_000)
        assert len(begun) == 2
        monkeypatch.setattr(background, "_LONG", 0.0)  # as if some seconds had gone by
        qtbot.waitUntil(lambda: len(begun) == many, timeout=20_000)
        runner.start("other", short_work, made.append, made.append, lambda _: None)
        qtbot.waitUntil(lambda: made == ["made", "made"], timeout=20_000)
    finally:
        end.set()
    qtbot.waitUntil(lambda: len(made) == many + 2, timeout=20_000)
