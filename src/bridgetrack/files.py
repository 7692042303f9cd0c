"""Files and folders are written completely or not at all, and replace only what we wrote.

Output is written into a hidden folder beside its destination and moved there by one rename. The
hidden folder is then removed; if this program is killed, the next one removes it.
``.bridgetrack/NAME.json`` beside a file or folder keeps the digests of its files: a file that still
has its digest may be replaced. Files that are being read are never overwritten.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import shutil
import stat
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from glob import escape, glob
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from bridgetrack.errors import InputError, OutputError

ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")
"""Files at the top of a zarr folder."""
SAMPLE_SEQUENCE = "01"
_STORES = (*ZARR_MARKS, "project.json")
"""Files of folders that are read as a whole."""
_LEFT_BY_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
_INSIDE = "new"
"""Name of the one folder in a hidden folder that is written to."""
REMEDY = "make room and allow writing there, or write elsewhere"
"""Advice for when the system refuses to write."""

Digests = dict[str, list[str]]
"""Digests that a file may have, by its path relative to the folder that contains the output."""


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
            return  # reported by whatever opens it
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


# ---------------------------------------------------------------------- written whole


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
    with ExitStack() as held:
        with writing(path, what):
            folder = held.enter_context(_folder_beside(target))
        new = folder / (path.name if path.is_symlink() else target.name)
        with _named_as(path, new):
            yield new
        with writing(path, what):
            _flush(new)
            with locked(target.parent):
                if last is not None:
                    last()
                _replace(new, target)


@contextmanager
def _folder_beside(target: Path) -> Iterator[Path]:
    """A hidden folder beside a file, locked as long as it is used, and then removed.

    Folders of this user that killed programs left behind are removed, too: they are not locked.
    """
    made, name = [p for p in target.parents if not p.exists()], escape(target.name)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as used:
            with locked(target.parent):
                for left in filter(_is_ours, target.parent.glob(f".{name}.????????.part")):
                    # Its program may end just now, and remove it.
                    with suppress(FileNotFoundError), locked(left, wait=False) as abandoned:
                        if abandoned:
                            remove(left)
                folder = Path(mkdtemp(".part", f".{target.name}.", target.parent))
                used.callback(remove, folder)
                used.enter_context(locked(folder))
            inside = folder / _INSIDE  # which others may lock that write there in turn
            inside.mkdir()
            yield inside
    finally:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()


def _is_ours(left: Path) -> bool:
    """Whether a folder belongs to this user and holds only what `_folder_beside` puts there."""
    try:
        kind = left.lstat()
        mine = stat.S_ISDIR(kind.st_mode) and kind.st_uid == os.getuid()
        return mine and all(inner.name == _INSIDE for inner in left.iterdir())
    except (OSError, AttributeError):  # it is gone, or this is Windows
        return False


@contextmanager
def replacing(path: Path, what: str) -> Iterator[Path]:
    """As `staged`, for a block that does nothing but write `path`.

    Any error of the system in it becomes an `OutputError` that names `path` and `what` it holds.
    """
    with staged(path, what) as spare, writing(path, what):
        yield spare


def write_text(path: Path, text: str, what: str) -> Path:
    """Write a text file, in UTF-8 with plain line ends, in one step; see `staged`."""
    with replacing(path, what) as spare:
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
        raise OutputError(f"{path}: {what}cannot be written ({why}); {REMEDY}") from error
    except (ValueError, struct.error) as error:
        raise OutputError(f"{path}: {what}cannot be written ({error})") from error


@contextmanager
def _named_as(path: Path, spare: Path) -> Iterator[None]:
    """Report errors about a temporary path with the final path."""
    try:
        yield
    except OutputError as error:
        if str(spare) not in str(error):
            raise
        raise OutputError(str(error).replace(str(spare), str(path))) from error


def remove(path: Path) -> None:
    """Remove a file or a folder, as far as that is possible; links are not followed."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _replace(new: Path, old: Path) -> None:
    """Move `new` to the name `old`; what was there is removed only afterwards."""
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
    """Exchange the names of two folders in one step; False if that fails."""
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
def locked(folder: Path, *, wait: bool = True) -> Iterator[bool]:
    """Lock a folder against other processes of this program; yields whether that was possible.

    Waits until nobody else has locked it, or gives up at once. Windows and some file systems have
    no such locks; every step is atomic even there.
    """
    if sys.platform == "win32":
        yield False
        return
    import fcntl

    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            possible = True
        except OSError:
            possible = False
        yield possible
    finally:
        os.close(handle)


def _flush(path: Path) -> None:
    """Wait until a file, or all files in a folder, are on the disk, safe from a power cut."""
    for file in [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]:
        handle = os.open(file, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# ---------------------------------------------------------------------- what may be replaced


def refuse_other(path: Path) -> Digests:
    """Refuse to replace a file or folder unless it is ours and unchanged; returns its digests.

    Raises an OutputError; the message names the file.
    """
    path = _named(path)
    known, ours = _kept(path), Digests()
    for file in _every_file(path):
        key = _key(file, path)
        if key not in known:
            cause = "was not written by Bridgetrack"
        elif file.is_symlink() or not file.is_file() or _digest(file) not in known[key]:
            cause = "was changed since Bridgetrack wrote it"
        else:
            ours[key] = [_digest(file)]
            continue
        kept = "it" if file == path else path
        raise OutputError(
            f"{file} {cause}, so {kept} is not replaced; move it away, or write elsewhere"
        )
    return ours


def check_file(out: Path, *inputs: Path | str | None) -> None:
    """Check before the work begins that a file may be written.

    Raises an OutputError where it is one of the inputs, a folder, not ours, or in a place that
    cannot be written.
    """
    if out.is_dir():
        raise OutputError(f"{out}: this is a folder; give the name of a file in it")
    _check_place(out, inputs)


def check_folder(out: Path, *inputs: Path | str | None) -> None:
    """Check before the work begins that results may replace a folder.

    Raises an OutputError as `check_file`, and if the current folder is this one or lies within it.
    """
    if out.is_file():
        raise OutputError(f"{out}: this is a file, results need a folder; give another name")
    full, here = resolved(out), resolved(Path())
    if full in (here, *here.parents) or (out.exists() and full.is_mount()):
        raise OutputError(
            f"{out}: this folder is in use, and results take the place of a whole folder; give "
            f"the name of a new one, such as {out / 'result'}"
        )
    _check_place(out, inputs)


def _check_place(out: Path, inputs: tuple[Path | str | None, ...]) -> None:
    place = next(p for p in out.absolute().parents if p.exists())
    if not place.is_dir():
        raise OutputError(f"{out}: {place} is a file, not a folder; give another name")
    refuse_inputs([out], inputs)
    if not os.access(place, os.W_OK):
        raise OutputError(
            f"{out}: there is no permission to write in {place}; choose another folder"
        )
    refuse_other(out)


def is_ours(path: Path) -> bool:
    """Whether a file or folder is as we wrote it."""
    try:
        refuse_other(path)
    except OutputError:
        return False
    return True


def sign(path: Path) -> None:
    """Record beside a file or folder that we have just written it.

    Raises an OutputError where that cannot be written.
    """
    path = _named(path)
    _keep(path, _digests(path))


@contextmanager
def signed(path: Path) -> Iterator[Path]:
    """A temporary path for a file or folder that replaces `path`, with a record that we wrote it.

    The record is written before the replacement and keeps the old digests, so that whichever
    version is there when the program is killed is known as ours. Raises an OutputError where it
    cannot be written, or what is there is not ours; that stays as it was.
    """
    path = _named(path)
    refuse_other(path)
    with staged(path) as spare:
        yield spare
        old = refuse_other(path)  # it may have changed meanwhile
        new = _digests(spare)
        _keep(path, {name: [*new.get(name, []), *old.get(name, [])] for name in {**new, **old}})


@contextmanager
def result_folder(out: Path, *inputs: Path | str | None) -> Iterator[Path]:
    """A new folder for a result, which takes the place of an earlier one when the block succeeds.

    Raises an OutputError as `check_folder`, before the block and after it.
    """
    check_folder(out, *inputs)
    with signed(out) as folder:
        folder.mkdir()
        yield folder


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[Path | str | None]) -> None:
    """Refuse to overwrite, or to write into, files that are being read.

    Inputs are files, folders and patterns (``01/t*.tif``); links are followed on both sides. Raises
    an OutputError if they overlap; the message names both.
    """
    places = {target: resolved(target) for target in targets}
    for given in (Path(each) for each in inputs if each is not None):
        read = {resolved(file) for file in _read_from(given)}
        for target, place in places.items():
            if any(file.is_relative_to(place) for file in read) or _joins(place, given):
                words = f"{target}: the output would overwrite {given}, which is being read"
                raise OutputError(f"{words}; give another name")


def _every_file(path: Path) -> Iterator[Path]:
    """A file, or all files in a folder, with links, pipes and devices, without system files."""
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            if inner.name not in _LEFT_BY_SYSTEMS:
                yield from _every_file(inner)
    elif os.path.lexists(path):
        yield path


def _read_from(given: Path) -> Iterator[Path]:
    """The files of an input: a file, a folder with its content, or the matches of a pattern."""
    yield given
    if given.is_dir():
        files = (*given.glob("*"), *given.glob("TRA/*"))
        yield from (p for p in files if p.suffix.lower() in (".tif", ".tiff", ".txt"))
    elif not given.exists():
        yield from map(Path, glob(str(given)))  # noqa: PTH207 - a pattern may be absolute


def _joins(place: Path, given: Path) -> bool:
    """Whether a new file or folder would become part of a folder that is read."""
    if not given.is_dir():
        return False
    if any((given / name).is_file() for name in _STORES):
        return place.is_relative_to(resolved(given))
    return place.parent == resolved(given) and place.suffix.lower() in (".tif", ".tiff")


def _named(path: Path) -> Path:
    """A path that ends in a name."""
    return resolved(path) if path.name in ("", "..") else path


def _digests(path: Path) -> Digests:
    return {_key(file, path): [_digest(file)] for file in _every_file(path)}


def _key(file: Path, path: Path) -> str:
    return file.relative_to(path.parent).as_posix()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def _manifest(path: Path) -> Path:
    return path.parent / ".bridgetrack" / f"{path.name}.json"


def _keep(path: Path, files: Digests) -> None:
    content = {"format": "bridgetrack-manifest", "files": files}
    write_text(_manifest(path), json.dumps(content, indent=1) + "\n", "the manifest")


def _kept(path: Path) -> Digests:
    """The recorded digests of a file or folder; none if there is no record or it is damaged."""
    try:
        files = json.loads(_manifest(path).read_text(encoding="utf-8"))["files"]
        return {name: [d] if isinstance(d, str) else list(d) for name, d in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
