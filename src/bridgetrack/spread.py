"""Do the same to many parts of a movie: one after another here, or spread over a cluster.

What is computed never depends on where: results come back in the order of their parts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bridgetrack.errors import BridgetrackError, DependencyError
from bridgetrack.files import program_version
from bridgetrack.progress import run

Shared = TypeVar("Shared")
Part = TypeVar("Part")
Result = TypeVar("Result")
Task = Callable[[Shared, Part], Generator[float, None, Result]]
"""A function of a module, which workers import; yields the share done, returns the result."""


class ClusterError(BridgetrackError):
    """A cluster cannot be reached, or did not do its work."""


class Workers(Protocol):
    """Who does the work."""

    def map(
        self, task: Task[Shared, Part, Result], shared: Shared, parts: Iterable[Part]
    ) -> Generator[float, None, list[Result]]:
        """Results in the order of the parts; yields the share that is done."""


class Here:
    """One part after another, in this process."""

    def map(
        self, task: Task[Shared, Part, Result], shared: Shared, parts: Iterable[Part]
    ) -> Generator[float, None, list[Result]]:
        """See `Workers`."""
        found, listed = [], list(parts)
        for k, part in enumerate(listed):
            work = task(shared, part)
            while True:
                try:
                    share = next(work)
                except StopIteration as end:
                    found.append(end.value)
                    break
                yield (k + share) / len(listed)
            yield (k + 1) / len(listed)
        return found


_ATTEMPTS = 5
"""How often what all parts share is sent anew because every worker that held it has died."""


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
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        listed = list(parts)
        found: dict[int, Result] = {}
        for attempt in range(_ATTEMPTS):
            try:
                for k, result in self._some(task, shared, listed, found):
                    found[k] = result
                    yield len(found) / len(listed)
                return [found[k] for k in range(len(listed))]
            except KilledWorker as error:
                raise ClusterError(
                    "one part of the movie ended several workers, one after another; most often "
                    "they have too little memory: give smaller windows (--memory, --window), or "
                    "workers with more memory"
                ) from error
            except FutureCancelledError as error:
                if attempt + 1 == _ATTEMPTS:
                    raise ClusterError(
                        "the cluster lost all of its workers again and again; look at its log"
                    ) from error
            except (OSError, TimeoutError) as error:
                raise ClusterError(
                    f"the cluster at {address_of(self.client)} does not answer any more ({error}); "
                    "start it again"
                ) from error
        raise AssertionError("every attempt returns or raises")

    def _some(
        self,
        task: Task[Shared, Part, Result],
        shared: Shared,
        parts: list[Part],
        found: dict[int, Result],
    ) -> Iterator[tuple[int, Result]]:
        """What is not found yet, as it is finished."""
        from distributed import as_completed

        everywhere = self.client.scatter(shared, broadcast=True, hash=False)
        number = {}
        for k in range(len(parts)):
            if k not in found:
                future = self.client.submit(_finish, task, everywhere, parts[k], pure=False)
                number[future] = k
        try:
            for future in as_completed(list(number)):
                yield number[future], future.result()
        finally:
            self.client.cancel(list(number))


def _finish(task: Task[Shared, Part, Result], shared: Shared, part: Part) -> Result:
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
        theirs = client.run(program_version)
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


def address_of(client: Any) -> str:
    """Where the scheduler of a client is."""
    return str(getattr(client.scheduler, "address", client))


def connect(scheduler: str, seconds: float = 30.0) -> Any:
    """A dask client: of the scheduler at an address, or of a cluster of this machine's own.

    Parameters
    ----------
    scheduler
        ``local``, an address such as ``tcp://10.0.0.1:8786``, or a scheduler file (``.json``).
    seconds
        How long to wait for it.

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
            return Client(scheduler_file=scheduler, timeout=seconds, set_as_default=False)
        return Client(scheduler, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"{scheduler}: there is no dask scheduler ({error}); give its address, such as "
            "tcp://10.0.0.1:8786, its scheduler file, or local"
        ) from error
