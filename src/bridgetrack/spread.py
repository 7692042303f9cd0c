"""Apply a function to many parts of a movie: in turn, by other processes, or on a cluster.

The results do not depend on this, and come back in the order of the parts.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import pickle
import signal
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from bridgetrack.errors import BridgetrackError, BridgetrackWarning, DependencyError
from bridgetrack.files import program_version

THREADS = 2
"""Threads in one process. Numpy and the solvers release the interpreter lock; more threads gain
little, and each needs memory for its part."""

_PATIENCE = 30.0
"""Seconds to wait for a scheduler, or for workers."""

_WORTH = 15_000_000
"""Number of pixels above which segmenting on all cores is faster: processes need about five seconds
to start, in which one process segments some three million pixels."""

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")


_LOST: weakref.WeakSet[Any] = weakref.WeakSet()
"""Clients that are not waited for again."""


class ClusterError(BridgetrackError):
    """A cluster cannot be reached, or failed."""


def spread(
    function: Callable[[Shared, Part], Result],
    shared: Shared,
    parts: Iterable[Part],
    client: Any = None,
    threads: int = 1,
) -> Iterator[Result]:
    """Apply a function to many parts; few results are kept in memory at any time.

    Parameters
    ----------
    function
        A function of a module, which other processes import.
    shared
        Its first argument, the same for all parts.
    parts
        Its second one.
    client
        A ``concurrent.futures.Executor`` or a ``distributed.Client``. In this process if None.
    threads
        How many parts are worked on at a time in this process.

    Yields
    ------
    Result
        In the order of the parts.

    Raises
    ------
    ClusterError
        If workers do not have this version of the program, or die repeatedly.

    Warns
    -----
    BridgetrackWarning
        If no worker is left; the remaining work is done in this process.
    """
    if client is not None:
        yield from _Workers(function, shared, client).results(parts)
    elif threads == 1:
        for part in parts:
            yield function(shared, part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from _Workers(function, shared, pool).results(parts)


class _Workers(Generic[Shared, Part, Result]):
    """Workers of a client that apply a function; without any it is applied in this process."""

    def __init__(
        self, function: Callable[[Shared, Part], Result], shared: Shared, client: Any
    ) -> None:
        self.function, self.shared, self.client = function, shared, client
        self.here = isinstance(client, Executor)  # on this computer
        self.gone = client in _LOST
        self._given: tuple[Any, ...] = ()
        self._ahead = 1
        self._how: dict[str, Any] = {} if self.here else {"pure": False}
        if isinstance(client, ThreadPoolExecutor):
            self._given, self._ahead = (function, shared), 2 * THREADS
        elif self.here:
            self._given = (_in_process, pickle.dumps(shared), function)
            self._ahead = 2 * (os.cpu_count() or 1)
        elif not self.gone:
            try:
                # As the result of a task it is made again where every worker that held it has died.
                content = client.submit(pickle.loads, pickle.dumps(shared), pure=False)
                self._given = (_on_worker, program_version(), function, content)
                self._ahead = 2 * max(sum(client.nthreads().values()), 1)
            except Exception as error:
                self._go_on_here(f"no longer responds ({type(error).__name__})")

    def results(self, parts: Iterable[Part]) -> Iterator[Result]:
        """Those of all parts, in order."""
        waiting: deque[tuple[Part, Any]] = deque()
        try:
            for part in parts:
                waiting.append((part, self._submitted(part)))
                if len(waiting) > self._ahead:
                    yield self._result(*waiting.popleft())
            while waiting:
                yield self._result(*waiting.popleft())
        finally:
            for _, future in waiting:
                if future is not None and not self.gone:
                    future.cancel()

    def _submitted(self, part: Part) -> Any:
        """The future of a part; None if no worker is left."""
        if not self.gone:
            try:
                return self.client.submit(*self._given, part, **self._how)
            except Exception as error:
                self._go_on_here(f"accepts no more work ({type(error).__name__})")
        return None

    def _result(self, part: Part, future: Any) -> Result:
        """What came of a part, by a worker or, if none is left, by this process."""
        while future is not None and not self.gone:
            try:
                result: Result = future.result(timeout=_PATIENCE)
                return result
            except TimeoutError:
                if future.done() and isinstance(future.exception(), TimeoutError):
                    raise  # of the work itself
                if not (future.done() or self.here or self._has_workers()):
                    self._go_on_here(f"has had no worker for {_PATIENCE:.0f} seconds")
            except (BrokenExecutor, CancelledError, OSError) as error:
                if self.here and isinstance(error, OSError):
                    raise  # of the work itself
                self._go_on_here(f"no longer responds ({type(error).__name__})")
            except Exception as error:
                if (told := self._told(error)) is not None:
                    raise told from error
                raise
        return self.function(self.shared, part)

    def _told(self, error: Exception) -> ClusterError | None:
        """What to say of an error of the cluster; None of those of the work itself."""
        if isinstance(error, ImportError) and not self.here:
            return ClusterError(
                f"the workers of {_address(self.client)} have no bridgetrack ({error}); install "
                "the same version there"
            )
        if type(error).__name__ == "KilledWorker":
            return ClusterError(
                "several workers died on the same part of the movie; usually they have too little "
                "memory: use smaller windows (--memory, --window), or workers with more memory"
            )
        return None

    def _has_workers(self) -> bool:
        # A scheduler that has ended may go on naming its workers.
        try:
            return self.client.status == "running" and bool(self.client.nthreads())
        except OSError:
            return False

    def _go_on_here(self, why: str) -> None:
        self.gone = True
        _LOST.add(self.client)
        warnings.warn(
            f"the cluster at {_address(self.client)} {why}; the remaining work was done in this "
            "process",
            BridgetrackWarning,
            stacklevel=2,
        )


_loaded = lru_cache(maxsize=1)(pickle.loads)


def _in_process(content: bytes, function: Callable[[Any, Part], Result], part: Part) -> Result:
    """Run in another process of this computer, which keeps what the parts share."""
    return function(_loaded(content), part)


def _on_worker(
    version: str, function: Callable[[Shared, Part], Result], shared: Shared, part: Part
) -> Result:
    """Arrays are read where this runs, and not spread once more."""
    import dask

    if version != program_version():
        raise ClusterError(
            f"a worker of the cluster has bridgetrack {program_version()}, but {version} is "
            "needed; install the same version there"
        )
    with dask.config.set(scheduler="synchronous"):
        return function(shared, part)


def _begin_worker() -> None:
    """Start a process that ignores interrupts and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def _address(client: Any) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", "this machine"))


def worth_it(pixels: int) -> bool:
    """Whether segmenting so many pixels is faster with processes on all cores."""
    return pixels >= _WORTH and (os.cpu_count() or 1) > 1


def connect(scheduler: str) -> Any:
    """A dask client of the scheduler at an address, or processes on all cores of this computer.

    The scheduler is ``local``, an address such as ``tcp://10.0.0.1:8786``, or a scheduler file
    (``.json``). Raises a `DependencyError` if dask.distributed is not installed, and a
    `ClusterError` if there is no such scheduler.
    """
    if scheduler == "local":
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(mp_context=context, initializer=_begin_worker)
    try:
        from distributed import Client
    except ImportError as error:
        raise DependencyError(
            "clusters need dask.distributed; install it with: pip install bridgetrack[cluster]"
        ) from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # the rest is told in our words
    try:
        if scheduler.endswith(".json"):
            if not Path(scheduler).is_file():  # dask would wait for it forever
                raise FileNotFoundError("no such file")
            return Client(scheduler_file=scheduler, timeout=_PATIENCE, set_as_default=False)
        return Client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"{scheduler}: no dask scheduler was found ({error}); give its address, such as "
            "tcp://10.0.0.1:8786, its scheduler file, or local"
        ) from error
