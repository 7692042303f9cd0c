"""Files and folders are written whole or not at all: under a spare name, then put in place.

Nothing is written over what is being read.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import glob
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import IO, Any

from bridgetrack.errors import NotWrittenError, OutputError
from bridgetrack.leftovers import exchange, flush, locked, spare_name
from bridgetrack.placing import NEW, place, recover, remove, spare_for
from bridgetrack.readable import IN_CIRCLES, resolved

_LEFT_BY_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
_ZARR = ("zarr.json", ".zgroup", ".zarray", ".zattrs")


@contextmanager
def staged(
    path: Path, what: str = "", *, same_name: bool = False, last: Callable[[], None] | None = None
) -> Iterator[Path]:
    """A spare name beside `path`; the file or folder made there takes its place at the end.

    The folder of `path` is made where it is missing, and a link stays a link. Where the block
    fails, what was there stays as it was. The block itself tells its failures by `writing`. With
    ``same_name`` it is the name of `path` itself, in a spare folder. `last` is called when no
    other process of this program can put a file there any more, so that it may refuse.

    Raises
    ------
    OutputError
        Where there is no place for it.
    """
    target = resolved(path)
    with _spare(spare_name(target), target, path, what) as spare:
        new = spare / path.name if same_name else spare
        if same_name:
            with writing(path, what):
                spare.mkdir()
        yield new
        with writing(path, what):
            flush(new)
            with locked(target.parent):
                if last is not None:
                    last()
                _put(new, target)


@contextmanager
def staged_files(folder: Path, removed: Callable[[], Sequence[str]] = tuple) -> Iterator[Path]:
    """The same as `placed_together`; failures of the block are failures to write to `folder`."""
    with placed_together(folder, removed) as staging, writing(folder):
        yield staging


@contextmanager
def placed_together(folder: Path, removed: Callable[[], Sequence[str]] = tuple) -> Iterator[Path]:
    """A temporary folder whose content moves into `folder` when the block ends well.

    What is there under the same names is replaced; nothing else in `folder` is touched. Where
    the block or a move fails nothing is changed, and whatever ends the program, the files of
    two such blocks never stand side by side; see `placing`.

    Parameters
    ----------
    folder
        Where the files belong.
    removed
        Says which names in it go at the same time; called when everything is ready and nobody
        else writes there, so that it may refuse, too.

    Raises
    ------
    OutputError
        Where the folder cannot be written: no permission, a full disk, a file in its place.
    """
    target = resolved(folder)
    with _spare(spare_for(target), target, folder) as spare:
        with writing(folder):
            if target.exists() and not target.is_dir():
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
            (spare / NEW).mkdir(parents=True)
        with _told_of(folder, spare / NEW):
            yield spare / NEW
        with writing(folder):
            place(spare, target, removed)


@contextmanager
def lent_folder(folder: Path) -> Iterator[Path]:
    """A folder beside `folder`, gone when the block ends: other computers see what is there, too.

    Raises
    ------
    OutputError
        Where there is no place for it.
    """
    target = resolved(folder)
    with _spare(spare_for(target), target, folder) as spare:
        with writing(folder):
            spare.mkdir(parents=True)
        yield spare


@contextmanager
def replacing(
    path: Path, what: str, *, text: bool = True, last: Callable[[], None] | None = None
) -> Iterator[IO[Any]]:
    """A file to write to that takes the place of `path` when the block ends well.

    Parameters
    ----------
    path
        The file; its folder is made where it is missing.
    what
        What it holds, for messages: ``"the model"``.
    text
        UTF-8 text with plain line ends, or bytes.
    last
        May refuse when no other process can put a file there any more; see `staged`.

    Raises
    ------
    OutputError
        Where it cannot be written; an older file stays as it was.
    """
    how: dict[str, Any] = (
        {"mode": "w", "encoding": "utf-8", "newline": "\n"} if text else {"mode": "wb"}
    )
    made = staged(path, what, last=last)
    with made as spare, writing(path, what), spare.open(**how) as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: str, what: str, *, last: Callable[[], None] | None = None) -> Path:
    """Write a text file in one step; see `replacing`."""
    with replacing(path, what, last=last) as file:
        file.write(text)
    return path


def refuse_foreign(path: Path, ours: Callable[[str], bool]) -> None:
    """Complain where `path` is a file, or a folder with names in it that are not `ours`.

    Raises
    ------
    OutputError
        As above.
    """
    if path.is_dir():
        foreign = next((p.name for p in path.iterdir() if not ours(p.name)), None)
        if foreign is not None:
            raise OutputError(f"{path}: the folder holds other files ({foreign}); choose another")
    elif path.exists():
        raise OutputError(f"{path}: there is a file of that name; choose another")


def refuse_inputs(targets: Iterable[Path], inputs: Iterable[Path | str | None]) -> None:
    """Refuse to write over, or into, what is being read.

    Parameters
    ----------
    targets
        Files and folders to write.
    inputs
        Files, folders and patterns (``01/t*.tif``) that are read. Files are compared by what they
        are, not by name: links and other paths to the same file do not help.

    Raises
    ------
    OutputError
        Where they overlap; the message names both.
    """
    targets, reading = list(targets), [Path(given) for given in inputs if given is not None]
    there = {_identity(path): target for target in targets for path in every_file(target)}
    for given in reading:
        hit = next((target for target in targets if _joins(target, given)), None)
        if there and hit is None:
            hit = next((there[i] for i in map(_identity, _read_from(given)) if i in there), None)
        if hit is not None:
            part = "" if Path(hit) == given else f" a part of {given},"
            raise OutputError(f"{hit} is{part} what is being read; give another name")


def every_file(path: Path) -> Iterator[Path]:
    """A file, or all files in a folder; links, pipes and devices count, what systems leave not."""
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            if inner.name not in _LEFT_BY_SYSTEMS:
                yield from every_file(inner)
    elif os.path.lexists(path):
        yield path


@contextmanager
def writing(path: Path, what: str = "") -> Iterator[None]:
    """Turn the failures of writing to `path` into an OutputError that names it, and a cure."""
    what += " " if what else ""
    try:
        yield
    except OSError as error:
        why = error.strerror or error
        raise NotWrittenError(path, f"{what}cannot be written ({why}); {cure(error)}") from error
    except (ValueError, struct.error) as error:
        raise NotWrittenError(path, f"{what}cannot be written ({error})") from error


def cure(error: OSError) -> str:
    """What to do about a failure to write."""
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)):
        return "the disk is full: make room, or write to another disk"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return "there is no permission to write there: choose another folder"
    if error.errno in (errno.EISDIR, errno.ENOTDIR, errno.EEXIST):
        return "a file and a folder are in each other's place: choose another name"
    if error.errno == errno.ENAMETOOLONG:
        return "choose a shorter name"
    if error.errno == errno.ELOOP:
        return IN_CIRCLES
    return "choose another place"


def program_version() -> str:
    """Version of the installed package, ``"unknown"`` where it runs from a bare folder."""
    try:
        return version("bridgetrack")
    except PackageNotFoundError:
        return "unknown"


@contextmanager
def _told_of(path: Path, spare: Path) -> Iterator[None]:
    """Failures to write under a spare name are told of the name that is meant."""
    try:
        yield
    except NotWrittenError as error:
        if not error.path.is_relative_to(spare):
            raise
        raise NotWrittenError(path / error.path.relative_to(spare), error.why) from error


def _read_from(given: Path) -> Iterator[Path]:
    """The files that stand for an input: all of a store, the frames of a folder of frames."""
    if given.is_dir() and not _is_store(given):
        for place in (given, given / "TRA"):
            yield from (p for p in place.glob("*") if p.suffix.lower() in (".tif", ".tiff", ".txt"))
    elif given.exists():
        yield from every_file(resolved(given))
    else:
        yield from map(Path, glob(str(given)))  # noqa: PTH207 - a pattern may be absolute


def _joins(target: Path, given: Path) -> bool:
    """Whether a new file or folder would become part of an input."""
    if not given.is_dir():
        return False
    inside, outer = resolved(target), resolved(given)
    if inside == outer or _is_store(given):
        return outer in (inside, *inside.parents)
    return inside.parent == outer and inside.suffix.lower() in (".tif", ".tiff")


def _is_store(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _ZARR)


def _identity(path: Path) -> object:
    """What two names of one file have in common; a link to nothing is only itself."""
    try:
        found = path.stat()
    except OSError:
        return path.absolute()
    return found.st_dev, found.st_ino


@contextmanager
def _spare(spare: Path, target: Path, path: Path, what: str = "") -> Iterator[Path]:
    """Lend a free name, gone at the end; new folders go too where the block fails."""
    made = [p for p in target.parents if not p.exists()]
    try:
        with writing(path, what):
            recover(target)
            target.parent.mkdir(parents=True, exist_ok=True)
        yield spare
    except BaseException:
        remove(spare)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise
    remove(spare)


def _put(new: Path, old: Path) -> None:
    """Move `new` to the name `old`; what was there is gone only after that."""
    if not (old.is_dir() and new.is_dir()):
        new.replace(old)
        return
    if exchange(new, old):
        return
    aside = spare_name(old, "old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    remove(aside)
