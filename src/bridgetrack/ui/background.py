"""Long work in threads of napari, and work of the window's own thread in small parts."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any

from napari.qt.threading import create_worker
from qtpy.QtCore import QObject, QThreadPool, QTimer, Signal

from bridgetrack.session.background import Done, Factory, Failed, Report

_EVERY = 0.05
"""Seconds between two reports, so that fast steps do not flood the event loop."""


_SIGNALS = ("started", "finished", "returned", "errored", "warned", "yielded")
_LAST = "_finished"
"""The last signal of a worker."""


class _Quiet:
    """A signal of a worker that may outlive the window, and so the object that has the signal."""

    def __init__(self, signal: Any) -> None:
        self._signal = signal

    def emit(self, *what: Any) -> None:
        """Emit, unless the work has ended or Qt has deleted the object."""
        if self._signal is not None:
            with contextlib.suppress(RuntimeError):
                self._signal.emit(*what)

    def end(self) -> None:
        """Say nothing more.

        Workers that overlap leave Python's warnings to one that has ended, and Qt crashes where
        this one speaks while the program ends.
        """
        self._signal = None

    def connect(self, act: Callable[..., Any]) -> None:
        """Call `act` whenever it is emitted."""
        self._signal.connect(act)


class _Final(_Quiet):
    """The last signal of a worker; after it the others say nothing more."""

    def __init__(self, signal: Any, others: Iterable[_Quiet]) -> None:
        super().__init__(signal)
        self._others = tuple(others)

    def emit(self, *what: Any) -> None:
        """Emit, and end them all."""
        super().emit(*what)
        for each in (*self._others, self):
            each.end()


@dataclass
class _Ending:
    """How work ended: with a value or with an error."""

    value: Any = None
    error: Exception | None = None


_PAUSE_AT_MOST = 0.25
"""Seconds that work lets the window go first where it has something to do."""


_OFTEN = 0.005
"""Seconds between two questions whether the window has something to do."""


class _Asking(QObject):
    """Asks the window's thread for an answer, which comes when it has nothing else to do."""

    asked = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self.asked.connect(lambda answer: answer.set())


class _Rest:
    """Lets the window go first where it has something to do; one for each work.

    A thread that computes takes Python's lock from one that draws hundreds of times in a drawing,
    each of which costs both. So work goes on once the window has drawn, or after a while.
    """

    def __init__(self, asking: _Asking) -> None:
        self._asking = asking
        self._answer = threading.Event()
        self._answer.set()
        self._last = 0.0

    def wait(self) -> None:
        """Return when the window rests; called by work between two steps."""
        now = time.monotonic()
        # Where there was no answer for a while, no other is waited for.
        if now - self._last < _OFTEN or not self._answer.is_set():
            return
        self._answer.clear()
        with contextlib.suppress(RuntimeError):  # Qt may be gone at the end of the program
            self._asking.asked.emit(self._answer)
            self._answer.wait(_PAUSE_AT_MOST)
        self._last = time.monotonic()

    def before_each(self, work: Factory) -> Factory:
        """The same work, which waits before each of its steps."""

        def steps() -> Generator[Any, None, Any]:
            made = work()
            try:
                while True:
                    self.wait()
                    try:
                        step = next(made)
                    except StopIteration as stop:
                        return stop.value
                    yield step
            finally:
                made.close()

        return steps


def _drive(work: Factory) -> Generator[Any, None, _Ending]:
    """Run steps in the worker's thread; closing this generator ends the work."""
    steps = work()
    last = 0.0
    try:
        while True:
            step = next(steps)
            now = time.monotonic()
            if now - last >= _EVERY or getattr(step, "done", 0.0) in (0.0, 1.0):
                last = now
                yield step
    except StopIteration as stop:
        return _Ending(stop.value)
    except GeneratorExit:
        raise
    except Exception as error:
        return _Ending(error=error)
    finally:
        steps.close()


_THREADS = 16
"""How many works can go on at once, with those that were told to stop and have not yet."""

_AT_ONCE, _LONG = 2, 5.0
"""Works that begin one beside the other but for pressing ones, and seconds after which one does not
count any more: the more threads compute, the longer the window's own waits for its turn."""

PICTURES = "pictures of the question"
"""Name of the work that cuts them out."""
PRESSING = frozenset({"measure", "collect", "track", "correct", PICTURES})
"""Names of works that somebody waits for: they do not wait for others."""


class ThreadRunner:
    """Runs work in napari's worker threads; reports arrive in the thread that started it.

    What came of it is handed on as a part of work of that thread, in its `turns`. Work begins
    after what these have to do already: a thread that computes at the same time as the window
    draws makes both take twice as long, and only the window is waited for.
    """

    def __init__(self, turns: Turns | None = None) -> None:
        turns, self._asking = turns or Turns(), _Asking()
        # Qt has as many as there are processors; an answer must not wait for a long training.
        pool = QThreadPool.globalInstance()
        pool.setMaxThreadCount(max(_THREADS, pool.maxThreadCount()))
        self._starting = EventLoopQueue(turns, patient=True)
        self._ended = EventLoopQueue(turns)
        self._generation = 0
        self._active: dict[str, tuple[int, Any]] = {}
        self._waiting: deque[tuple[str, Any]] = deque()
        self._again = QTimer()
        self._again.setSingleShot(True)
        self._again.setInterval(500)
        self._again.timeout.connect(self._begin_next)
        self._begun: dict[Any, float] = {}  # when works began that have not ended

    def start(self, name: str, work: Factory, done: Done, failed: Failed, report: Report) -> None:
        """Begin work; an earlier run of this name is told to stop."""
        self.cancel(name)
        self._generation += 1
        mine = self._generation
        polite = _Rest(self._asking).before_each(work)
        worker = create_worker(_drive, polite, _start_thread=False)

        def current() -> bool:
            return name in self._active and self._active[name][0] == mine

        def on_step(step: Any) -> None:
            if current():
                report(step)

        def on_end(outcome: _Ending) -> None:
            if current():
                self._ended.then(lambda: hand_on(outcome))

        def hand_on(outcome: _Ending) -> None:
            if not current():
                return
            del self._active[name]
            if outcome.error is not None:
                failed(outcome.error)
            else:
                done(outcome.value)

        worker.yielded.connect(on_step)
        worker.returned.connect(on_end)
        self._active[name] = (mine, worker)
        quiet = {each: _Quiet(getattr(worker, each)) for each in _SIGNALS if hasattr(worker, each)}
        for each, signal in quiet.items():
            setattr(worker, each, signal)
        setattr(worker, _LAST, _Final(getattr(worker, _LAST), quiet.values()))

        def begin() -> None:
            if not current():
                return
            self._waiting.append((name, worker))
            self._begin_next()

        worker.finished.connect(lambda: self._on_finished(worker))
        self._starting.then(begin)

    def _begin_next(self) -> None:
        """Begin what waits, in turn, as far as there is room, and what is pressing."""
        now = time.monotonic()
        for name, worker in tuple(self._waiting):
            short = sum(now - begun < _LONG for begun in self._begun.values())
            if name in PRESSING or short < _AT_ONCE:
                self._waiting.remove((name, worker))
                self._begun[worker] = now
                worker.start()
        if self._waiting:
            self._again.start()

    def _on_finished(self, worker: Any) -> None:
        self._begun.pop(worker, None)
        self._begin_next()

    def cancel(self, name: str) -> None:
        """Tell work to stop; what it still delivers is dropped."""
        found = self._active.pop(name, None)
        if found is not None:
            found[1].quit()
            self._waiting = deque(w for w in self._waiting if w[1] is not found[1])

    def running(self, name: str) -> bool:
        """Whether work of this name is under way."""
        return name in self._active

    def close(self) -> None:
        """End all work."""
        for name in list(self._active):
            self.cancel(name)
        self._starting.stop()
        # At the end of the program Qt may be gone before this is called.
        with contextlib.suppress(RuntimeError):
            self._again.stop()


_PAUSE = 20
"""Milliseconds between two parts: time for drawing, for the mouse and for keys."""

_PATIENCE = 6
"""Turns of others that a queue which can wait lets pass."""


class Turns:
    """Whose part of work comes next, where several have work for the main thread.

    With a timer each, all that are due would come in the same turn of the event loop.
    """

    def __init__(self) -> None:
        self._waiting: deque[EventLoopQueue] = deque()
        self._passed = 0  # turns for which those that can wait have waited
        self._timer = QTimer()
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._next)

    def ask(self, queue: EventLoopQueue) -> None:
        """A queue has something to do."""
        if queue not in self._waiting:
            self._waiting.append(queue)
        if not self._timer.isActive():
            self._timer.start(_PAUSE)

    def give_up(self, queue: EventLoopQueue) -> None:
        """A queue has nothing to do any more."""
        if queue in self._waiting:
            self._waiting.remove(queue)

    def _next(self) -> None:
        if not self._waiting:
            return
        queue = self._first()
        self._waiting.remove(queue)
        try:
            queue.do_one()
        finally:
            if queue.busy:
                self.ask(queue)
            if self._waiting:
                self._timer.start(_PAUSE)

    def _first(self) -> EventLoopQueue:
        """The queue that has waited longest; one that can wait lets some others pass."""
        patient = next((q for q in self._waiting if q.patient), None)
        pressing = next((q for q in self._waiting if not q.patient), None)
        if patient is None or (pressing is not None and self._passed < _PATIENCE):
            self._passed += patient is not None
            return pressing or self._waiting[0]
        self._passed = 0
        return patient


class EventLoopQueue:
    """Does parts of work on the main thread, one per turn of the event loop.

    Queues that share their `turns` come one after the other; a `patient` one has nothing that
    somebody sees, so that what is to be drawn comes first.
    """

    def __init__(self, turns: Turns | None = None, *, patient: bool = False) -> None:
        self._parts: deque[Callable[[], None]] = deque()
        self._turns = turns or Turns()
        self.patient = patient

    @property
    def busy(self) -> bool:
        """Whether parts are left."""
        return bool(self._parts)

    def begin(self, *parts: Callable[[], None]) -> None:
        """Do these parts; what is left of earlier ones is dropped."""
        self._parts = deque(parts)
        self._turns.ask(self)

    def then(self, *parts: Callable[[], None]) -> None:
        """Do these parts after those that are left."""
        self._parts.extend(parts)
        self._turns.ask(self)

    def stop(self) -> None:
        """Drop what is left."""
        self._parts.clear()
        self._turns.give_up(self)

    def do_one(self) -> None:
        """Do the next part."""
        if self._parts:
            self._parts.popleft()()
