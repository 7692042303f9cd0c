"""Do the same to many parts of a movie: one after another here, or spread over a dask cluster.

What is computed never depends on where: results come back in the order of their parts.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from bridgetrack.errors import BridgetrackError, DependencyError
from bridgetrack.files import program_version

THREADS = 2
"""Threads that work beside each other in one process. Numpy and the solvers let others go on
meanwhile; more of them gain little, and each holds what it works on."""

_PATIENCE = 30.0
"""Seconds to wait for a scheduler."""

_WORTH = 50_000_000
"""Pixels to segment from which on processes on all cores gain: they begin in about five seconds, in
which one segments some ten million."""

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")


class ClusterError(BridgetrackError):
    """A cluster cannot be reached, or did not do its work."""


def spread(
    function: Callable[[Shared, Part], Result],
    shared: Shared,
    parts: Iterable[Part],
    client: Any = None,
    threads: int = 1,
) -> Iterator[Result]:
    """Apply a function to many parts; few results are waiting at any time.

    Parameters
    ----------
    function
        A function of a module, which the processes of a cluster import.
    shared
        Its first argument, the same for all parts.
    parts
        Its second one.
    client
        A ``distributed.Client``: workers that die are replaced, and what they had begun is done
        again. In this process where None.
    threads
        How many parts are worked on at a time in this process.

    Yields
    ------
    Result
        In the order of the parts.

    Raises
    ------
    ClusterError
        Where workers do not have this version of the program, or die again and again.
    """
    if client is not None:
        with _explained(client):
            version = program_version()
            # As the result of a task it is made again where every worker that held it has died.
            everywhere = client.submit(pickle.loads, pickle.dumps(shared), pure=False)
            ahead = 2 * max(sum(client.nthreads().values()), 1)

            def submit(part: Part) -> Any:
                return client.submit(_on_worker, version, function, everywhere, part, pure=False)

            yield from _in_order(submit, parts, ahead)
    elif threads == 1:
        for part in parts:
            yield function(shared, part)
    else:
        with ThreadPoolExecutor(threads) as pool:
            ahead = 2 * threads
            yield from _in_order(lambda part: pool.submit(function, shared, part), parts, ahead)


def _in_order(submit: Callable[[Part], Any], parts: Iterable[Part], ahead: int) -> Iterator[Any]:
    waiting: deque[Any] = deque()
    try:
        for part in parts:
            waiting.append(submit(part))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _on_worker(
    version: str, function: Callable[[Shared, Part], Result], shared: Shared, part: Part
) -> Result:
    """Arrays are read where this runs, and not spread once more."""
    import dask

    if version != program_version():
        raise ClusterError(
            f"a worker of the cluster has bridgetrack {program_version()}, here it is {version}; "
            "install the same version there"
        )
    with dask.config.set(scheduler="synchronous"):
        return function(shared, part)


@contextmanager
def _explained(client: Any) -> Iterator[None]:
    """Say in a sentence what went wrong with a cluster."""
    from distributed import KilledWorker
    from distributed.comm import CommClosedError

    try:
        yield
    except KilledWorker as error:
        raise ClusterError(
            "one part of the movie ended several workers, one after another; most often they have "
            "too little memory: give smaller windows (--memory, --window), or workers with more "
            "memory"
        ) from error
    except ImportError as error:
        raise ClusterError(
            f"the workers of {_address(client)} have no bridgetrack ({error}); install the same "
            "version there"
        ) from error
    except (CommClosedError, TimeoutError) as error:
        raise ClusterError(
            f"the cluster at {_address(client)} does not answer any more ({error}); start it again"
        ) from error


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", client))


def worth_it(pixels: int) -> bool:
    """Whether so much is to be segmented that a cluster of this machine's own cores gains."""
    several = (os.cpu_count() or 1) > 1
    return pixels >= _WORTH and several and find_spec("distributed") is not None


def connect(scheduler: str) -> Any:
    """A dask client: of the scheduler at an address, or of a cluster of this machine's own.

    Parameters
    ----------
    scheduler
        ``local``, an address such as ``tcp://10.0.0.1:8786``, or a scheduler file (``.json``).

    Raises
    ------
    DependencyError
        Where dask.distributed is not installed.
    ClusterError
        Where there is no such scheduler.
    """
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise DependencyError(
            "clusters need dask.distributed; install it by: pip install bridgetrack[cluster]"
        ) from error
    try:
        if scheduler == "local":
            cluster = LocalCluster(threads_per_worker=1, dashboard_address=None)
            return Client(cluster, set_as_default=False)
        if scheduler.endswith(".json"):
            if not Path(scheduler).is_file():  # dask would wait for it for ever
                raise FileNotFoundError("there is no such file")
            return Client(scheduler_file=scheduler, timeout=_PATIENCE, set_as_default=False)
        return Client(scheduler, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"{scheduler}: there is no dask scheduler ({error}); give its address, such as "
            "tcp://10.0.0.1:8786, its scheduler file, or local"
        ) from error
