"""Work in threads beside the window."""

from __future__ import annotations

import threading

from bridgetrack.ui.background import ThreadRunner


def test_work_does_not_wait_for_other_work_and_the_latest_of_a_name_counts(qtbot):
    end, made, here = threading.Event(), [], []

    def long_work(k):
        yield 0.0
        end.wait(60)
        return k

    def short_work():
        here.append(threading.get_ident())
        yield 0.5
        return "made"

    runner = ThreadRunner()
    try:
        for k in range(20):
            runner.start("one", lambda k=k: long_work(k), made.append, made.append, lambda _: None)
            runner.start(f"{k}", lambda: long_work(-1), made.append, made.append, lambda _: None)
        runner.start("short", short_work, made.append, made.append, lambda _: None)
        qtbot.waitUntil(lambda: made == ["made"], timeout=20_000)
        runner.cancel("3")
    finally:
        end.set()
    qtbot.waitUntil(lambda: not runner.running("one"), timeout=20_000)
    qtbot.waitUntil(lambda: len(made) == 21, timeout=20_000)
    qtbot.wait(50)
    assert sorted(made[1:]) == [-1] * 19 + [19], "neither cancelled nor replaced work reports"
    assert here != [threading.get_ident()]


def test_a_failure_is_handed_over_and_closing_ends_all(qtbot):
    def failing():
        yield 0.0
        raise ValueError("no")

    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 0.0
        finally:
            closed.set()

    runner, heard = ThreadRunner(), []
    runner.start("failing", failing, heard.append, heard.append, lambda _: None)
    qtbot.waitUntil(lambda: len(heard) == 1, timeout=20_000)
    assert isinstance(heard[0], ValueError) and not runner.running("failing")
    runner.start("endless", endless, heard.append, heard.append, lambda _: None)
    runner.close()
    assert closed.wait(20) and not runner.running("endless")
