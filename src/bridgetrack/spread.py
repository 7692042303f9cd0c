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
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

from bridgetrack.errors import BridgetrackError, DependencyError
from bridgetrack.files import program_version

THREADS = 2
"""Threads in one process. Numpy and the solvers release the interpreter lock; more threads gain
little, and each needs memory for its part."""

_PATIENCE = 30.0
"""Seconds to wait for a scheduler."""

_WORTH = 15_000_000
"""Number of pixels above which segmenting on all cores is faster: processes need about five seconds
to start, in which one process segments some three million pixels."""

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")


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
        A ``concurrent.futures.Executor`` or a dask client. In this process if None.
    threads
        How many parts are worked on at a time in this process.

    Yields
    ------
    Result
        In the order of the parts.

    Raises
    ------
    ClusterError
        If workers do not have this version of the program, or die, or cannot be reached.
    """
    if client is not None:
        yield from _on_cluster(function, shared, parts, client)
    elif threads == 1:
        for part in parts:
            yield function(shared, part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            applied = partial(function, shared)
            for future in _in_order(parts, partial(pool.submit, applied), 2 * threads):
                yield future.result()


def _in_order(parts: Iterable[Part], begin: Callable[[Part], Any], ahead: int) -> Iterator[Any]:
    """Futures of all parts in order; some more are begun ahead of that which is waited for."""
    waiting: deque[Any] = deque()
    try:
        for part in parts:
            waiting.append(begin(part))
            if len(waiting) > ahead:
                yield waiting.popleft()
        while waiting:
            yield waiting.popleft()
    finally:
        for future in waiting:
            future.cancel()


def _on_cluster(
    function: Callable[[Shared, Part], Result],
    shared: Shared,
    parts: Iterable[Part],
    client: Any,
) -> Iterator[Result]:
    """Results of workers, which give errors of the function as values; others are the cluster's."""
    error: Exception | None = None
    try:
        for future in _in_order(parts, *_beginning(client, function, shared)):
            result, error = future.result()
            if error is not None:
                break
            yield result
    except BridgetrackError:  # of what makes the parts
        raise
    except Exception as failed:
        raise ClusterError(
            f"the cluster failed ({type(failed).__name__}: {failed}); usually its workers have too "
            "little memory: use smaller windows (--memory, --window), or work without a cluster "
            "(--scheduler here)"
        ) from failed
    if error is not None:
        raise error


def _beginning(
    client: Any, function: Callable[[Shared, Part], Result], shared: Shared
) -> tuple[Callable[[Part], Any], int]:
    """What begins a part, and how many to begin ahead."""
    content, submit = pickle.dumps(shared), client.submit
    if isinstance(client, Executor):
        return partial(submit, _in_process, content, function), 2 * (os.cpu_count() or 1)
    # As the result of a task it is made again where every worker that held it has died.
    there = submit(pickle.loads, content, pure=False)
    begin = partial(submit, _on_worker, there, function, program_version(), pure=False)
    return begin, 2 * max(sum(client.nthreads().values()), 1)


def _outcome(
    function: Callable[[Shared, Part], Result], shared: Shared, part: Part
) -> tuple[Result | None, Exception | None]:
    """What a function gives, or the error that it raises."""
    try:
        return function(shared, part), None
    except Exception as error:
        return None, error


_loaded = lru_cache(maxsize=1)(pickle.loads)


def _in_process(content: bytes, function: Callable[[Any, Part], Result], part: Part) -> Any:
    """Run in another process of this computer, which keeps what the parts share."""
    return _outcome(function, _loaded(content), part)


def _on_worker(
    shared: Shared, function: Callable[[Shared, Part], Result], version: str, part: Part
) -> Any:
    """Run on a cluster; arrays are read there, and not spread once more."""
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
