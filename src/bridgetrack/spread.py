"""Do the same to many parts of a movie: one after another here, or spread over a cluster.

What is computed never depends on where: results come back in the order of their parts.
"""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any, Protocol, TypeVar

from bridgetrack.errors import BridgetrackError, DependencyError
from bridgetrack.files import program_version
from bridgetrack.progress import relayed, run

THREADS = 2
"""Threads that work beside each other in one process. Numpy and the solvers let others go on
meanwhile; more of them gain little, and each holds what it works on."""

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")
Step = TypeVar("Step")
Work = Callable[[Shared, Part], Generator[Step, None, Result]]
"""A function of a module, which workers import; returns the result."""
Task = Callable[[Shared, Part], Generator[float, None, Result]]
"""The same; yields the share that is done."""


class ClusterError(BridgetrackError):
    """A cluster cannot be reached, or did not do its work."""


class Workers(Protocol):
    """Who does the work."""

    def stream(
        self, task: Work[Shared, Part, Any, Result], shared: Shared, parts: Iterable[Part]
    ) -> Iterator[Result]:
        """Results in the order of the parts; few are waiting at any time."""

    def map(
        self, task: Task[Shared, Part, Result], shared: Shared, parts: Iterable[Part]
    ) -> Generator[float, None, list[Result]]:
        """All results in the order of the parts; yields the share that is done."""

    def follow(
        self,
        task: Work[Shared, Part, Step, Result],
        shared: Shared,
        parts: Iterable[Part],
    ) -> Generator[tuple[int, Step | None], None, list[Result]]:
        """As `map`; yields how many are done, and the step of the next where it is known here."""


class Here:
    """One part after another, in this process."""

    def stream(
        self, task: Work[Shared, Part, Any, Result], shared: Shared, parts: Iterable[Part]
    ) -> Iterator[Result]:
        """See `Workers`."""
        return (run(task(shared, part)) for part in parts)

    def map(
        self, task: Task[Shared, Part, Result], shared: Shared, parts: Iterable[Part]
    ) -> Generator[float, None, list[Result]]:
        """See `Workers`."""
        listed = list(parts)
        return relayed(self.follow(task, shared, listed), partial(_share, len(listed)))

    def follow(
        self,
        task: Work[Shared, Part, Step, Result],
        shared: Shared,
        parts: Iterable[Part],
    ) -> Generator[tuple[int, Step | None], None, list[Result]]:
        """See `Workers`."""
        found: list[Result] = []
        for part in parts:
            found.append((yield from relayed(task(shared, part), partial(_step, len(found)))))
            yield len(found), None
        return found


def _step(done: int, step: Step) -> tuple[int, Step | None]:
    return done, step


def _share(count: int, told: tuple[int, float | None]) -> float:
    done, share = told
    return (done + (share or 0.0)) / count


_PATIENCE = 30.0
"""Seconds to wait for a scheduler."""

_WORTH = 50_000_000
"""Pixels to segment from which on processes on all cores gain: they begin in about five seconds, in
which one segments some ten million."""


@dataclass(frozen=True)
class Cluster:
    """A dask cluster: workers that die are replaced, and what they had begun is done again.

    Parameters
    ----------
    client
        A ``distributed.Client``.
    """

    client: Any

    def map(
        self, task: Task[Shared, Part, Result], shared: Shared, parts: Iterable[Part]
    ) -> Generator[float, None, list[Result]]:
        """See `Workers`."""
        listed = list(parts)
        return relayed(self.follow(task, shared, listed), partial(_share, len(listed)))

    def follow(
        self,
        task: Work[Shared, Part, Step, Result],
        shared: Shared,
        parts: Iterable[Part],
    ) -> Generator[tuple[int, Step | None], None, list[Result]]:
        """See `Workers`."""
        found = []
        for result in self.stream(task, shared, parts):
            found.append(result)
            yield len(found), None
        return found

    def stream(
        self, task: Work[Shared, Part, Any, Result], shared: Shared, parts: Iterable[Part]
    ) -> Iterator[Result]:
        """See `Workers`."""
        with _told(self.client):
            yield from self._stream(task, shared, iter(parts))

    def _stream(
        self, task: Work[Shared, Part, Any, Result], shared: Shared, parts: Iterator[Part]
    ) -> Iterator[Result]:
        # As the result of a task it is made again where every worker that held it has died.
        everywhere = self.client.submit(pickle.loads, pickle.dumps(shared), pure=False)
        ahead = 2 * max(sum(self.client.nthreads().values()), 1)
        waiting: deque[Any] = deque()
        try:
            while True:
                for part in islice(parts, ahead - len(waiting)):
                    waiting.append(self.client.submit(_finish, task, everywhere, part, pure=False))
                if not waiting:
                    return
                result = waiting[0].result()
                waiting.popleft()
                yield result
        finally:
            self.client.cancel(list(waiting))


@contextmanager
def _told(client: Any) -> Iterator[None]:
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
    except (CommClosedError, TimeoutError) as error:
        raise ClusterError(
            f"the cluster at {address_of(client)} does not answer any more ({error}); start it "
            "again"
        ) from error


def _finish(task: Work[Shared, Part, Any, Result], shared: Shared, part: Part) -> Result:
    """Do a part to its end, on a worker; arrays are read there and not spread once more."""
    import dask

    with dask.config.set(scheduler="synchronous"):
        return run(task(shared, part))


def on(client: Any) -> Workers:
    """The workers of a dask client; this process where None.

    Raises
    ------
    ClusterError
        Where the workers do not have this version of the program.
    """
    if client is None:
        return Here()
    try:
        theirs = client.run(_version)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"the workers of {address_of(client)} have no bridgetrack ({error}); install the same "
            "version there"
        ) from error
    other = sorted({version for version in theirs.values() if version != program_version()})
    if other:
        raise ClusterError(
            f"workers of {address_of(client)} have bridgetrack {', '.join(other)}, here it is "
            f"{program_version()}; install the same version there"
        )
    return Cluster(client)


def _version() -> str:
    """The version where this runs."""
    return program_version()


def address_of(client: Any) -> str:
    """Where the scheduler of a client is."""
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
