"""How much memory the system lets this process have: limits of the shell and of its group.

Read before anything is imported that takes memory, so only the standard library is used here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

TO_BEGIN = 7.5e8
"""Bytes of addresses below which libraries end at random places while they are loaded."""
_GROUPS = Path("/sys/fs/cgroup")


def address_space() -> float:
    """Bytes of addresses that this process may have (``ulimit -v``); infinite without a limit."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # only on Unix

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most != resource.RLIM_INFINITY:
            return float(most)
    return math.inf


def left_in_groups(own: Path = Path("/proc/self/cgroup"), root: Path = _GROUPS) -> float:
    """Bytes that the control groups of this process leave it: a container's, or a cluster's job's.

    Parameters
    ----------
    own
        Where the system names the groups of this process.
    root
        Where it tells of them.
    """
    left = [math.inf]
    for group in _groups(own, root):
        for limit, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            with suppress(OSError, ValueError):  # without a limit it says "max"
                most = float((group / limit).read_text(encoding="ascii"))
                left.append(most - float((group / used).read_text(encoding="ascii")))
                left[-1] += _given_back(group / "memory.stat")
    return min(left)


def _groups(own: Path, root: Path) -> Iterator[Path]:
    """The groups of this process and those around them, as far as they can be seen."""
    places = [root, root / "memory"]
    with suppress(OSError, ValueError):
        for line in own.read_text(encoding="utf-8").splitlines():
            _, kinds, name = line.split(":", 2)
            if kinds == "" or "memory" in kinds.split(","):
                base = root / "memory" if kinds else root
                inner = Path(name.lstrip("/"))
                places += [base / part for part in (inner, *inner.parents)]
    yield from dict.fromkeys(places)


def _given_back(stat: Path) -> float:
    """Bytes of files that were read and are kept only as long as nobody needs the memory."""
    with suppress(OSError, ValueError):
        rows = (line.split() for line in stat.read_text(encoding="ascii").splitlines())
        told = {row[0]: float(row[1]) for row in rows if len(row) == 2}
        return told.get("total_inactive_file", told.get("inactive_file", 0.0))
    return 0.0
