"""A folder of models: one folder each, with the model, what is known of it, and a picture.

An entry appears under its name only when it is complete, and two programs that save under one
name at the same time do not mix: one of them is told that the name is taken. What is removed
is kept under a name that is not listed, until `KEPT_REMOVED` others were removed.
"""

from __future__ import annotations

import os
import shutil
import time
import uuid
from dataclasses import replace
from pathlib import Path

from platformdirs import user_data_path

from bridgetrack.errors import InputError, ModelError
from bridgetrack.models.entry import (
    MODEL,
    Entry,
    Removed,
    read_entry,
    read_model_file,
    write_entry,
    write_model_file,
)
from bridgetrack.models.model import Model
from bridgetrack.models.names import check_name, free_name, same_name
from bridgetrack.models.record import Record
from bridgetrack.movie.writers import writing

__all__ = ["ENVIRONMENT", "KEPT_REMOVED", "Entry", "Library", "Removed", "library_folder"]

ENVIRONMENT = "BRIDGETRACK_MODELS"
"""Variable that names another folder than the user's."""
KEPT_REMOVED = 20

_REMOVED = ".removed"


class Library:
    """The models in a folder.

    Parameters
    ----------
    folder
        Where they are; without it the folder named by the variable `ENVIRONMENT`, without that
        one in the user's data folder. It need not exist.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = library_folder() if folder is None else Path(folder)

    # ------------------------------------------------------------------ reading

    def names(self) -> tuple[str, ...]:
        """Names of all models, damaged ones too, sorted.

        Raises
        ------
        ModelError
            Where the folder is there but cannot be read.
        """
        try:
            found = [p.name for p in self.folder.iterdir() if p.is_dir() and p.name[0] != "."]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise ModelError(
                f"{self.folder}: the model library cannot be read ({error.strerror})"
            ) from error
        return tuple(sorted(found, key=lambda name: (name.casefold(), name)))

    def entries(self) -> tuple[Entry, ...]:
        """All models; a damaged one says why and hides none of the others.

        Raises
        ------
        ModelError
            Where the folder is there but cannot be read.
        """
        return tuple(self._read(name) for name in self.names())

    def entry(self, name: str) -> Entry:
        """The model of a name, damaged or not.

        Raises
        ------
        ModelError
            Where there is none; the message lists those that are there.
        """
        for known in self.names():
            if same_name(known, name):
                return self._read(known)
        raise ModelError(f"there is no model {name!r} in the library ({self.listed()})")

    def listed(self) -> str:
        """The names for messages."""
        names = self.names()
        return f"it holds {', '.join(names)}" if names else "it is empty"

    def load(self, name: str) -> Model:
        """The weights of a name.

        Raises
        ------
        ModelError
            Where there is no such model, or it is damaged.
        """
        entry = self.entry(name)
        if entry.model is None:
            raise ModelError(
                f"the model {entry.name!r} of the library is damaged: {entry.problem}; remove it, "
                "or put its files back"
            )
        return entry.model

    def file(self, name: str) -> Path:
        """The model file of a name.

        Raises
        ------
        ModelError
            Where there is no such model, or it is damaged.
        """
        self.load(name)
        return self.entry(name).folder / MODEL

    def _read(self, name: str) -> Entry:
        return read_entry(self.folder / name)

    # ------------------------------------------------------------------ writing

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
        bin_ = self.folder / _REMOVED
        place = bin_ / f"{time.time_ns():020d}~{uuid.uuid4().hex[:8]}~{entry.name}"
        with writing(self.folder):
            bin_.mkdir(exist_ok=True)
            entry.folder.rename(place)
        for old in self.removed()[KEPT_REMOVED:]:
            shutil.rmtree(old.folder, ignore_errors=True)
        return Removed(entry.name, place)

    def removed(self) -> tuple[Removed, ...]:
        """What can be restored, the last removed first."""
        try:
            found = [p for p in (self.folder / _REMOVED).iterdir() if p.name.count("~") >= 2]
        except OSError:
            return ()
        found.sort(key=lambda p: p.name, reverse=True)
        return tuple(Removed(p.name.split("~", 2)[2], p) for p in found)

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

    # ------------------------------------------------------------------ sharing

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


def library_folder() -> Path:
    """Where the models are kept unless somebody says otherwise."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return Path(given)
    return user_data_path("bridgetrack", appauthor=False) / "models"
