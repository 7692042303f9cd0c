"""What may be replaced: nothing that we did not write ourselves, or that was changed since.

Beside every file or folder that we write, ``.bridgetrack/NAME.json`` keeps the digests of its
files. What is there and still has its digest may be replaced. While one takes the place of another,
the digests of both are kept, so that this holds wherever the program is ended.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from pathlib import Path

from bridgetrack.errors import OutputError
from bridgetrack.files import resolved, staged, write_text

_LEFT_BY_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")
ZARR_MARKS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")
"""Files at the top of a zarr folder."""
_STORES = (*ZARR_MARKS, "project.json")
"""Files of folders that are read as a whole."""

Digests = dict[str, list[str]]
"""Those that a file may have, by its path beside the manifest's folder."""


def refuse_other(path: Path) -> None:
    """Refuse to replace a file or folder that is not ours, or was changed.

    Raises an OutputError; the message names the file.
    """
    path = _named(path)
    known = _kept(path)
    for file in every_file(path):
        digests = known.get(_key(file, path))
        if digests is None:
            cause = "was not written by Bridgetrack"
        elif file.is_symlink() or not file.is_file() or _digest(file) not in digests:
            cause = "was changed since Bridgetrack wrote it"
        else:
            continue
        kept = "it" if file == path else path
        raise OutputError(
            f"{file} {cause}, so {kept} is not replaced; move it away, or write elsewhere"
        )


def check_file(out: Path, *inputs: Path | str | None) -> None:
    """Complain before the work begins about a file that must not, or cannot, be written.

    Raises an OutputError where it is one of the inputs, a folder, not ours, or in a place that
    cannot be written.
    """
    if out.is_dir():
        raise OutputError(f"{out}: this is a folder; give the name of a file in it")
    _check_place(out, inputs)


def check_folder(out: Path, *inputs: Path | str | None) -> None:
    """Complain before the work begins about a folder that results cannot take the place of.

    Raises an OutputError as `check_file`, and where we stand in the folder or below it.
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
    """Keep beside a file or folder that we have just written it.

    Raises an OutputError where that cannot be written.
    """
    path = _named(path)
    _keep(path, _digests(path))


@contextmanager
def signed(path: Path) -> Iterator[Path]:
    """Where to write a file or folder that takes the place of `path`, and is signed.

    What is written there is known as ours before it takes its place. Raises an OutputError where it
    cannot be written, or what is there is not ours; that stays as it was.
    """
    path = _named(path)
    refuse_other(path)
    with staged(path) as spare:
        yield spare
        refuse_other(path)  # it may have changed meanwhile
        new, known = _digests(spare), _kept(path)
        both = {n: [*known.get(n, []), *new.get(n, [])] for n in {**known, **new}}
        _keep(path, both)
    with suppress(OutputError):  # no room any more, and what is kept holds for the file, too
        sign(path)


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
                raise OutputError(f"{target}: {given} is being read there; give another name")


def every_file(path: Path) -> Iterator[Path]:
    """A file, or all files in a folder, with links, pipes and devices, without system files."""
    if path.is_dir() and not path.is_symlink():
        for inner in path.iterdir():
            if inner.name not in _LEFT_BY_SYSTEMS:
                yield from every_file(inner)
    elif os.path.lexists(path):
        yield path


def _read_from(given: Path) -> Iterator[Path]:
    """What stands for an input: a file, or a folder with what is in it, or what fits a pattern."""
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
    return {_key(file, path): [_digest(file)] for file in every_file(path)}


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
    """What is kept of a file or folder; nothing where there is no such record, or it is damaged."""
    try:
        files = json.loads(_manifest(path).read_text(encoding="utf-8"))["files"]
        return {name: [d] if isinstance(d, str) else list(d) for name, d in files.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
