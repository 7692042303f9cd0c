"""Changing a folder of models (`shelf`), and sharing them.

An entry appears under its name only when it is complete, and two programs that save under one
name at the same time do not mix: one of them is told that the name is taken. What is removed
is kept under a name that is not listed, until `KEPT_REMOVED` others were removed.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import replace
from pathlib import Path

from bridgetrack.errors import InputError, ModelError
from bridgetrack.models.entry import (
    Entry,
    read_model_file,
    write_entry,
    write_model_file,
)
from bridgetrack.models.model import Model
from bridgetrack.models.names import check_name, free_name, same_name
from bridgetrack.models.record import Record
from bridgetrack.models.removed import KEPT_REMOVED, Bin, Removed
from bridgetrack.models.shelf import ENVIRONMENT, Shelf, library_folder
from bridgetrack.movie.writers import writing

__all__ = ["ENVIRONMENT", "KEPT_REMOVED", "Entry", "Library", "Removed", "library_folder"]

_REMOVED = ".removed"


class Library(Shelf):
    """The models in a folder, to read and to change them.

    Parameters as in `Shelf`.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        super().__init__(folder)
        self._bin = Bin(self.folder / _REMOVED)

    def save(self, name: str, model: Model, record: Record, preview: bytes | None = None) -> Entry:
        """Keep a model under a new name.

        Parameters
        ----------
        name
            See `names.check_name`.
        model, record
            What to keep.
        preview
            A picture as the bytes of a PNG file.

        Raises
        ------
        InputError
            Where the name cannot be one, or is taken.
        OutputError
            Where the folder cannot be written; nothing is left behind.
        """
        name = check_name(name)
        self._refuse_taken(name)
        staging = self.folder / f".{uuid.uuid4().hex}.part"
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                write_entry(staging, replace(model, name=name), record, preview)
                self._place(staging, name)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        return self._read(name)

    def free_name(self, wanted: str) -> str:
        """A name like the wanted one that can be used and is not taken."""
        return free_name(wanted, self.names())

    def remove(self, name: str) -> Removed:
        """Take a model off the list; `restore` brings it back.

        Raises
        ------
        ModelError
            Where there is none of this name.
        OutputError
            Where it cannot be moved.
        """
        entry = self.entry(name)
        with writing(self.folder):
            return self._bin.take(entry.folder, entry.name)

    def removed(self) -> tuple[Removed, ...]:
        """What can be restored, the last removed first."""
        return self._bin.contents()

    def restore(self, removed: Removed) -> Entry:
        """Bring a removed model back, under its old name or, where it is taken, one like it.

        Raises
        ------
        ModelError
            Where it is gone for good.
        OutputError
            Where it cannot be moved.
        """
        if not removed.folder.is_dir():
            raise ModelError(f"the removed model {removed.name!r} is not there any more")
        name = self.free_name(removed.name)
        with writing(self.folder):
            self._place(removed.folder, name)
        return self._read(name)

    def _refuse_taken(self, name: str) -> None:
        taken = next((known for known in self.names() if same_name(known, name)), None)
        if taken is not None:
            raise InputError(
                f"there is a model {taken!r} in the library already; remove it first, or choose "
                f"another name such as {self.free_name(name)!r}"
            )

    def _place(self, folder: Path, name: str) -> None:
        """Give a complete folder its name, unless somebody else was quicker."""
        target = self.folder / name
        try:
            folder.rename(target)
        except OSError:
            if target.exists():
                self._refuse_taken(name)
            raise

    def export_file(self, name: str, path: Path | str) -> Path:
        """Write a model with all that is known of it, except the picture, into one model file.

        The file can be used wherever a model file can.

        Raises
        ------
        ModelError
            Where there is no such model, or it is damaged.
        OutputError
            Where the file cannot be written.
        """
        model, record = self.load(name), self.entry(name).record
        return write_model_file(model, record, path)

    def import_file(self, path: Path | str, name: str | None = None) -> Entry:
        """Take a model file into the library.

        Parameters
        ----------
        path
            A model file; where `export_file` wrote it, its description and statistics come
            along, otherwise nobody knows how similar other movies are to its own.
        name
            Its name; without it that of the file, or one like it where that is taken.

        Raises
        ------
        ModelError
            Where the file cannot be read or is damaged.
        InputError
            Where the name cannot be one, or is taken.
        OutputError
            Where the library cannot be written.
        """
        path = Path(path)
        model, record = read_model_file(path)
        name = self.free_name(path.stem) if name is None else name
        return self.save(name, model, record or Record())
