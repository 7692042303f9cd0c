"""Files and folders are written completely or not at all: to a temporary folder, then renamed.

The temporary folder is beside the file or folder that is written. Temporary folders of killed
programs are removed by the next program that writes to the same place, but only those of the same
user on the same computer. Files that are being read are never overwritten.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import re
import shutil
import stat
import struct
import sys
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from bridgetrack.errors import InputError, OutputError

_TEMPORARY = re.compile(
    r"\.(?P<name>.+)\.(?P<host>[0-9a-f]{8})\.(?P<process>\d{1,10})\.[0-9a-f]{8}\.part"
)
_FULL = "the disk is full: free some space, or write to another disk"
_DENIED = "there is no permission to write there: choose another folder"
_OTHER_KIND = "there is a file where a folder is needed, or the reverse: choose another name"
_CURES = {
    errno.ENOSPC: _FULL, getattr(errno, "EDQUOT", errno.ENOSPC): _FULL,
    errno.EACCES: _DENIED, errno.EPERM: _DENIED, errno.EROFS: _DENIED,
    errno.EISDIR: _OTHER_KIND, errno.ENOTDIR: _OTHER_KIND, errno.EEXIST: _OTHER_KIND,
    errno.ENAMETOOLONG: "choose a shorter name",
}  # fmt: skip
"""What to do where the system refuses to write."""
SAMPLE_SEQUENCE = "01"


@contextmanager
def staged(path: Path, what: str = "", *, last: Callable[[], None] | None = None) -> Iterator[Path]:
    """A temporary path for a file or folder that replaces `path` when the block succeeds.

    It has the same name in a temporary folder beside `path`; `what` it holds is a word for
    messages. Missing parent folders are created, and links are kept. If the block fails, an older
    file or folder is unchanged. `last` is called just before the replacement, while other processes
    of this program are locked out, and may raise an error. Raises an `OutputError` if there is no
    place for it.
    """
    target = resolved(path)
    made = [p for p in target.parents if not p.exists()]
    folder = temporary_name(target)
    new = folder / (path.name if path.is_symlink() else target.name)
    try:
        with writing(path, what):
            _remove_abandoned(target)
            folder.mkdir(parents=True)
        with _named_as(path, new):
            yield new
        with writing(path, what):
            _flush(new)
            with locked(target.parent):
                if last is not None:
                    last()
                _replace(new, target)
    except BaseException:
        remove(folder)
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise
    remove(folder)


@contextmanager
def replacing(path: Path, what: str, *, last: Callable[[], None] | None = None) -> Iterator[Path]:
    """The same, where all that happens in the block is that `path` is written.

    Any error of the system in it becomes an `OutputError` that names `path` and `what` it holds.
    """
    with staged(path, what, last=last) as spare, writing(path, what):
        yield spare


def write_text(path: Path, text: str, what: str, *, last: Callable[[], None] | None = None) -> Path:
    """Write a text file, in UTF-8 with plain line ends, in one step; see `staged`."""
    with replacing(path, what, last=last) as spare:
        spare.write_text(text, encoding="utf-8", newline="\n")
    return path


def in_one_go(function: Callable[..., Any], *given: Any) -> None:
    """Call a function that writes; an interrupt is delayed until it has returned.

    Otherwise threads of a library might still write to a folder that was removed.
    """
    with ThreadPoolExecutor(1) as one:
        one.submit(function, *given).result()


@contextmanager
def writing(path: Path, what: str = "") -> Iterator[None]:
    """Turn errors while writing to `path` into an OutputError that names it, and a remedy."""
    what += " " if what else ""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise OutputError(f"{path}: {what}cannot be written ({why}); {cure(error)}") from error
    except (ValueError, struct.error) as error:
        raise OutputError(f"{path}: {what}cannot be written ({error})") from error


def cure(error: OSError) -> str:
    """What to do about an error while writing."""
    return _CURES.get(error.errno or 0, "choose another place")


def as_path(given: str | os.PathLike[str]) -> Path:
    """A path, in which a leading ``~`` is the home folder."""
    path = Path(given)
    return path.expanduser() if path.parts[:1] == ("~",) else path


def resolved(path: Path) -> Path:
    """The path that a name stands for, with all links resolved.

    Raises an `InputError` if links lead to each other, or the current folder was removed.
    """
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"{path}: links lead in a circle, or the current folder was removed ({error}); give "
            "another name, or change to another folder (cd)"
        ) from error


def check_readable(path: Path) -> None:
    """Refuse paths that exist but cannot be read as a file or folder.

    Raises an `InputError` if a link leads nowhere or to itself, or if it is a pipe or a device:
    reading these may never end.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if not path.is_symlink():
            return  # told by what opens it
        raise InputError(
            f"{path}: a link to {path.readlink()} ({error.strerror}), which does not exist; put "
            "the file there, or give another name"
        ) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InputError(
            f"{path}: a pipe or a device, not a file; save its output to a file, and give that"
        )


def program_version() -> str:
    """Version of the installed package, ``"unknown"`` where it runs from a bare folder."""
    try:
        return version("bridgetrack")
    except PackageNotFoundError:
        return "unknown"


def sample_folder() -> Path:
    """Folder of the sample movie: images in ``01``, truth in ``01_GT/TRA``, annotations beside.

    In an installed package it lies inside the package, in a working copy at the top level.

    Raises
    ------
    InputError
        If the sample did not come with the package.
    """
    here = Path(__file__).resolve()
    packaged, working_copy = here.parent / "_sample", here.parents[2] / "sample_data"
    for folder in (packaged, working_copy):
        if (folder / SAMPLE_SEQUENCE).is_dir():
            return folder
    raise InputError(
        f"the sample movie is missing (looked in {packaged} and {working_copy}); reinstall "
        "bridgetrack"
    )


@contextmanager
def _named_as(path: Path, spare: Path) -> Iterator[None]:
    """Report errors about a temporary path with the final path."""
    try:
        yield
    except OutputError as error:
        if str(spare) not in str(error):
            raise
        raise OutputError(str(error).replace(str(spare), str(path))) from error


def temporary_name(target: Path) -> Path:
    """A hidden name beside `target` that says which process of which computer uses it."""
    mark = uuid.uuid4().hex[:8]
    return target.with_name(f".{target.name}.{_host()}.{os.getpid()}.{mark}.part")


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as that is possible; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _remove_abandoned(target: Path) -> None:
    """Remove what killed processes of this user left while they wrote to `target`."""
    with suppress(OSError):
        for path in target.parent.iterdir():
            form = _TEMPORARY.fullmatch(path.name)
            if form and form["name"] == target.name and _is_abandoned(path, form):
                remove(path)


def _is_abandoned(path: Path, form: re.Match[str]) -> bool:
    """Whether the process is gone that left a temporary folder of ours on this computer."""
    if sys.platform == "win32" or form["host"] != _host() or path.lstat().st_uid != os.getuid():
        return False
    try:
        os.kill(int(form["process"]), 0)
    except (ProcessLookupError, OverflowError):
        return True
    except PermissionError:
        return False
    return False


def _host() -> str:
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _replace(new: Path, old: Path) -> None:
    """Move `new` to the name `old`; what was there is gone only after that."""
    if not (old.is_dir() and new.is_dir()):
        new.replace(old)
        return
    with suppress(OSError, LookupError):
        shutil.copymode(old, new)
        shutil.chown(new, old.stat().st_uid, old.stat().st_gid)
    if _exchange(new, old):
        return
    aside = new.with_name(f"{new.name}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise


def _exchange(one: Path, other: Path) -> bool:
    """Give each of two folders the other's name, in one step; False where that fails."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None, use_errno=True)
        a, b = os.fsencode(one), os.fsencode(other)
        if sys.platform.startswith("linux"):
            here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
            return int(libc.renameat2(here, a, here, b, swap)) == 0
        if sys.platform == "darwin":
            return int(libc.renamex_np(a, b, 2)) == 0  # RENAME_SWAP
    return False


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Wait until no other process of this program puts files in place in a folder.

    Windows and some file systems have no such locks; there every step is still whole.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _flush(path: Path) -> None:
    """Wait until a file, or all files in a folder, are on the disk: no power cut takes them."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        handle = os.open(file, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
