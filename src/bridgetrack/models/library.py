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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from platformdirs import user_data_path

from bridgetrack.errors import InputError, ModelError
from bridgetrack.models.model import Model
from bridgetrack.models.names import check_name, free_name, same_name
from bridgetrack.models.record import Record
from bridgetrack.models.record_file import (
    record_from_json,
    record_from_text,
    record_text,
    record_to_json,
)
from bridgetrack.models.store import from_json, load_model, save_model, to_json
from bridgetrack.movie.writers import writing

ENVIRONMENT = "BRIDGETRACK_MODELS"
"""Variable that names another folder than the user's."""
KEPT_REMOVED = 20

_MODEL, _RECORD, _PREVIEW = "model.json", "entry.json", "preview.png"
_REMOVED = ".removed"
_LARGEST = 20_000_000
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_EMBEDDED = "library"

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A model of the library, or what is left of one.

    Parameters
    ----------
    name
        What to call it by.
    folder
        Where it is.
    model, record
        What was read; None where it is damaged.
    preview
        File of a picture, None where there is none.
    problem
        Why it is damaged; empty where it is not.
    """

    name: str
    folder: Path
    model: Model | None
    record: Record | None
    preview: Path | None
    problem: str = ""

    @property
    def damaged(self) -> bool:
        """Whether it cannot be used."""
        return bool(self.problem)


@dataclass(frozen=True)
class Removed:
    """A model that was removed and can be restored."""

    name: str
    folder: Path


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
        return self.entry(name).folder / _MODEL

    def _read(self, name: str) -> Entry:
        folder = self.folder / name
        preview = folder / _PREVIEW
        shown = preview if _is_picture(preview) else None
        try:
            model = replace(_file(folder / _MODEL, from_json), name=name)
            record = _file(folder / _RECORD, record_from_text)
        except ModelError as error:
            return Entry(name, folder, None, None, shown, str(error))
        return Entry(name, folder, model, record, shown)

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
        model_text, entry_text = to_json(replace(model, name=name)), record_text(record)
        staging = self.folder / f".{uuid.uuid4().hex}.part"
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            try:
                staging.mkdir()
                _write(staging / _MODEL, model_text.encode("utf-8"))
                _write(staging / _RECORD, entry_text.encode("utf-8"))
                if preview is not None:
                    _write(staging / _PREVIEW, preview)
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
        known = {} if record is None else {_EMBEDDED: record_to_json(record)}
        return save_model(replace(model, provenance={**model.provenance, **known}), path)

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


def read_model_file(path: Path | str) -> tuple[Model, Record | None]:
    """A model file and, where `Library.export_file` wrote it, what is known of the model.

    Raises
    ------
    ModelError
        Where the file cannot be read or is damaged.
    """
    model = load_model(path)
    provenance = dict(model.provenance)
    embedded = provenance.pop(_EMBEDDED, None)
    record = None if embedded is None else record_from_json(embedded, str(path))
    return replace(model, provenance=provenance), record


def library_folder() -> Path:
    """Where the models are kept unless somebody says otherwise."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return Path(given)
    return user_data_path("bridgetrack", appauthor=False) / "models"


def _file(path: Path, parse: Callable[[str, str], T]) -> T:
    """Read a small text file.

    Raises
    ------
    ModelError
        Where it is missing, too large, not text, or `parse` refuses it.
    """
    try:
        if path.stat().st_size > _LARGEST:
            raise ModelError(f"{path}: the file is far too large for what it should hold")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{path}: the file cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: the file is damaged (it is not text)") from error
    return parse(text, str(path))


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _is_picture(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_SIGNATURE)) == _SIGNATURE and path.stat().st_size <= _LARGEST
    return False
