"""Work in threads beside the window."""

import threading

from bridgetrack.errors import InputError
from bridgetrack.ui.background import ThreadWork


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

    work = ThreadWork()
    try:
        for k in range(20):
            work.run("one", lambda k=k: long_work(k), made.append, made.append)
            work.run(f"{k}", lambda: long_work(-1), made.append, made.append)
        work.run("short", short_work, made.append, made.append)
        qtbot.waitUntil(lambda: made == ["made"])
        work.cancel("3")
    finally:
        end.set()
    qtbot.waitUntil(lambda: not work.busy("one"))
    qtbot.waitUntil(lambda: len(made) == 21)
    qtbot.wait(50)
    assert sorted(made[1:]) == [-1] * 19 + [19], "neither cancelled nor replaced work reports"
    assert here != [threading.get_ident()]


def test_a_failure_is_handed_over_and_closing_ends_all(qtbot):
    def failing():
        yield 0.0
        raise InputError("no")

    closed = threading.Event()

    def endless():
        try:
            while True:
                yield 0.0
        finally:
            closed.set()

    work, heard, told = ThreadWork(), [], []
    work.message.connect(lambda *said: told.append(said))
    work.run("failing", failing, heard.append, heard.append)
    qtbot.waitUntil(lambda: len(heard) == 1)
    assert isinstance(heard[0], InputError) and told == [("error", "no")]
    assert not work.busy("failing")
    work.run("endless", endless, heard.append, heard.append)
    work.close()
    assert closed.wait(20) and not work.busy("endless")
