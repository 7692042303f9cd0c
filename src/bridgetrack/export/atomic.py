"""Files and folders that appear under their name only when they are complete."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bridgetrack.errors import OutputError
from bridgetrack.files import writing


@contextmanager
def staged_files(folder: Path) -> Iterator[Path]:
    """A temporary folder whose content moves into `folder` when the block ends well.

    What is there under the same names is replaced; nothing else in `folder` is touched. Where
    the block fails nothing is changed.

    Raises
    ------
    OutputError
        Where the folder cannot be written: no permission, a full disk, a file in its place.
    """
    with writing(folder):
        created = [p for p in (folder, *folder.parents) if not p.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        staging = folder / f".{uuid.uuid4().hex[:8]}.part"
        try:
            staging.mkdir()
            yield staging
            for path in sorted(staging.iterdir()):
                _replace(path, folder / path.name)
        except BaseException:
            shutil.rmtree(staging, ignore_errors=True)
            for path in created:
                _remove_if_empty(path)
            raise
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def staged_folder(path: Path, ours: Callable[[str], bool]) -> Iterator[Path]:
    """A temporary folder that takes the place of `path` when the block ends well.

    Parameters
    ----------
    path
        Final name. A folder there is replaced as a whole.
    ours
        Whether a name in an existing folder is one that we would write; a folder with anything
        else in it is left alone.

    Raises
    ------
    OutputError
        Where the folder cannot be written or holds other files.
    """
    with writing(path):
        refuse_foreign(path, ours)
        path.parent.mkdir(parents=True, exist_ok=True)
        staging = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.part")
        try:
            staging.mkdir()
            yield staging
            _replace(staging, path)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def refuse_foreign(path: Path, ours: Callable[[str], bool]) -> None:
    """Complain where `path` is something that we did not write.

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


def _replace(new: Path, old: Path) -> None:
    """Move `new` to the name `old`; what was there is gone only after that."""
    if not old.is_dir():
        new.replace(old)
        return
    aside = old.with_name(f".{old.name}.{uuid.uuid4().hex[:8]}.old")
    old.rename(aside)
    try:
        new.rename(old)
    except OSError:
        aside.rename(old)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def _remove_if_empty(path: Path) -> None:
    try:
        path.rmdir()
    except OSError:
        return
