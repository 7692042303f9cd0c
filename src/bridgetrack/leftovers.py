"""Spare names beside what is being written: who writes there, and what the dead left behind."""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_FORM = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})\.(?P<process>\d{1,10})\.[0-9a-f]{8}\.(part|old)"
)
_WEEK = 7 * 24 * 3600.0
"""What another computer left is taken for dead when it was not touched for so many seconds."""


def spare_name(target: Path, suffix: str = "part") -> Path:
    """A hidden name beside `target` that says which process of which computer uses it."""
    mark = uuid.uuid4().hex[:8]
    return target.with_name(f".{target.name}.{_host()}.{os.getpid()}.{mark}.{suffix}")


def spare_names(target: Path) -> list[Path]:
    """All spare names beside `target` that were made for it, of the living and the dead."""
    try:
        names = sorted(os.listdir(target.parent))  # noqa: PTH208 - the names alone, at once
    except OSError:
        return []
    start = f".{target.name}."
    found = ((n, _FORM.fullmatch(n)) for n in names if n.startswith(start))
    return [target.with_name(n) for n, form in found if form and form["name"] == target.name]


def is_dead(spare: Path) -> bool:
    """Whether nobody writes under a spare name any more.

    A process of this computer is asked for; of others only the time of the last change is known.
    """
    form = _FORM.fullmatch(spare.name)
    if form is None:
        return False
    if form["host"] == _host():
        return not _lives(int(form["process"]))
    try:
        return time.time() - spare.lstat().st_mtime > _WEEK
    except OSError:
        return False


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Wait until no other process of this program puts files in place in a folder.

    Yields
    ------
    bool
        Whether this is certain: some systems and file systems have no such locks.
    """
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        yield False
        return
    try:
        yield _lock(handle)
    finally:
        os.close(handle)


def exchange(one: Path, other: Path) -> bool:
    """Give each of two files or folders the other's name, in one step; False where that fails."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        a, b = os.fsencode(one), os.fsencode(other)
        if sys.platform.startswith("linux"):
            here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
            return int(libc.renameat2(here, a, here, b, swap)) == 0
        if sys.platform == "darwin":
            swap = 2  # RENAME_SWAP
            return int(libc.renamex_np(a, b, swap)) == 0
    return False


def flush(path: Path) -> None:
    """Wait until a file, or all files in a folder, are on the disk: no power cut takes them."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        handle = os.open(file, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


if sys.platform == "win32":

    def _lives(process: int) -> bool:
        limited, refused = 0x1000, 5  # PROCESS_QUERY_LIMITED_INFORMATION, ERROR_ACCESS_DENIED
        kernel = ctypes.WinDLL("kernel32", use_last_error=True)
        handle = kernel.OpenProcess(limited, False, process)
        if handle:
            kernel.CloseHandle(handle)
            return True
        return ctypes.get_last_error() == refused

    def _lock(handle: int) -> bool:
        return False

else:
    import fcntl

    def _lives(process: int) -> bool:
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError):
            return False
        except PermissionError:
            return True
        return True

    def _lock(handle: int) -> bool:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
            return True
        return False
