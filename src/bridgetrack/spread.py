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
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from bridgetrack.errors import BridgetrackError, DependencyError, warn
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


class ClusterError(BridgetrackError):
    """A cluster cannot be reached, or failed."""


@dataclass
class Workers:
    """A ``concurrent.futures.Executor`` or a ``distributed.Client`` that several stages share."""

    client: Any
    lost: bool = False  # whether they failed, so that they are not asked again

    @classmethod
    def of(cls, client: Any) -> Workers | None:
        """Workers of a client; None without one."""
        return client if client is None or isinstance(client, cls) else cls(client)


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
        `Workers`, an executor or a dask client. In this process if None.
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
    if (workers := Workers.of(client)) is not None:
        cluster = _Cluster(workers, function, shared)
        yield from _in_order(cluster.begin, cluster.result, parts, cluster.ahead)
    elif threads == 1:
        for part in parts:
            yield function(shared, part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            yield from _in_order(
                lambda part: pool.submit(function, shared, part),
                lambda part, future: future.result(), parts, 2 * threads,
            )  # fmt: skip


def _in_order(
    begin: Callable[[Part], Any],
    result: Callable[[Part, Any], Result],
    parts: Iterable[Part],
    ahead: int,
) -> Iterator[Result]:
    """Results of all parts in order; a few parts are begun in advance."""
    waiting: deque[tuple[Part, Any]] = deque()
    try:
        for part in parts:
            waiting.append((part, begin(part)))
            if len(waiting) > ahead:
                yield result(*waiting.popleft())
        while waiting:
            yield result(*waiting.popleft())
    finally:
        for _, future in waiting:
            if future is not None:
                future.cancel()


class _Cluster(Generic[Shared, Part, Result]):
    """Workers that apply a function; if they fail, this process does the rest.

    Errors of the function are returned as values, so that errors raised are those of the cluster.
    """

    def __init__(
        self, workers: Workers, function: Callable[[Shared, Part], Result], shared: Shared
    ) -> None:
        self.workers, self.function, self.shared = workers, function, shared
        self.client = client = workers.client
        self.ahead, self._how = 2 * (os.cpu_count() or 1), dict[str, Any]()
        self._begun: tuple[Any, ...] = (_in_process, pickle.dumps(shared), function)
        if isinstance(client, Executor) or workers.lost:
            return
        try:
            # As the result of a task it is computed again if every worker that held it has died.
            content = client.submit(pickle.loads, pickle.dumps(shared), pure=False)
            self.ahead = 2 * max(sum(client.nthreads().values()), 1)
            self._begun = (_on_worker, content, function, program_version())
            self._how = {"pure": False}
        except Exception as error:
            self._failed(error)

    def begin(self, part: Part) -> Any:
        """The future of a part; None if no worker is left."""
        if not self.workers.lost:
            try:
                return self.client.submit(*self._begun, part, **self._how)
            except Exception as error:
                self._failed(error)
        return None

    def result(self, part: Part, future: Any) -> Result:
        """The result of a part, from a worker or, if none is left, from this process."""
        while future is not None and not self.workers.lost:
            try:
                result, error = future.result(timeout=_PATIENCE)
            except TimeoutError:
                if not (future.done() or self._has_workers()):
                    self._go_on_here(f"has had no worker for {_PATIENCE:.0f} seconds")
            except Exception as error:
                self._failed(error)
            else:
                if error is not None:
                    raise error
                return result
        return self.function(self.shared, part)

    def _has_workers(self) -> bool:
        if isinstance(self.client, Executor):
            return True
        try:  # a scheduler that has ended may go on naming its workers
            return self.client.status == "running" and bool(self.client.nthreads())
        except OSError:
            return False

    def _failed(self, error: Exception) -> None:
        if type(error).__name__ == "KilledWorker":
            raise ClusterError(
                "several workers died on the same part of the movie; usually they have too little "
                "memory: use smaller windows (--memory, --window), or workers with more memory"
            ) from error
        self._go_on_here(f"failed ({type(error).__name__}: {error})")

    def _go_on_here(self, why: str) -> None:
        self.workers.lost = True
        address = getattr(getattr(self.client, "scheduler", None), "address", "this machine")
        warn(f"the cluster at {address} {why}; the remaining work was done in this process")


def _outcome(
    function: Callable[[Shared, Part], Result], shared: Shared, part: Part
) -> tuple[Result | None, Exception | None]:
    """The result of a function, or the error that it raises."""
    try:
        return function(shared, part), None
    except Exception as error:
        return None, error


_loaded = lru_cache(maxsize=1)(pickle.loads)


def _in_process(content: bytes, function: Callable[[Any, Part], Result], part: Part) -> Any:
    """Apply the function in another process of this computer, which keeps the shared argument."""
    return _outcome(function, _loaded(content), part)


def _on_worker(
    shared: Shared, function: Callable[[Shared, Part], Result], version: str, part: Part
) -> Any:
    """Apply the function on a worker of a cluster; arrays are computed in the worker itself."""
    import dask

    if version != program_version():
        return None, ClusterError(
            f"a worker of the cluster has bridgetrack {program_version()}, but {version} is "
            "needed; install the same version there"
        )
    with dask.config.set(scheduler="synchronous"):
        return _outcome(function, shared, part)


def _begin_worker() -> None:
    """Start a process that ignores interrupts and ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


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
            'clusters need dask.distributed; install it with: pip install "bridgetrack[cluster]"'
        ) from error
    # all other problems are reported in our own words
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
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
