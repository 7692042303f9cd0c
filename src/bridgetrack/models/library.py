"""The library of models: a folder that holds one folder for each model.

A model appears under its name only when it is complete, and two programs that save under one
name at the same time do not mix: one of them is told that the name is taken. What is removed
is kept in a folder that is not listed, until `KEPT_REMOVED` others were removed.
"""

from __future__ import annotations

import os
import shutil
import time
import unicodedata
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from platformdirs import user_data_path

from bridgetrack.errors import InputError, ModelError
from bridgetrack.files import writing
from bridgetrack.leftovers import is_dead, spare_name, spare_names
from bridgetrack.models.entry import (
    MODEL,
    ModelCard,
    ModelEntry,
    read_entry,
    read_model_file,
    write_entry,
    write_model_file,
)
from bridgetrack.models.model import Model, load_model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.placing import remove
from bridgetrack.readable import check_readable

ENVIRONMENT = "BRIDGETRACK_MODELS"
"""Variable that names another folder than the user's."""

KEPT_REMOVED = 20
_STAGED = "model"
"""What spare names in the library are made for."""


def library_folder() -> Path:
    """Where the models are kept unless somebody says otherwise."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return Path(given)
    return user_data_path("bridgetrack", appauthor=False) / "models"


@dataclass(frozen=True)
class Removed:
    """A model that was removed and can be restored."""

    name: str
    folder: Path


class Library:
    """The models in a folder, to read and to change them.

    Parameters
    ----------
    folder
        Where they are; without it the folder named by the variable `ENVIRONMENT`, without that
        one in the user's data folder. It need not exist. Folders in it whose names begin with a
        dot are no models.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = library_folder() if folder is None else Path(folder)
        self._removed = self.folder / ".removed"

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

    def entries(self) -> tuple[ModelEntry, ...]:
        """All models; a damaged one says why and hides none of the others.

        Raises
        ------
        ModelError
            Where the folder is there but cannot be read.
        """
        return tuple(self._read(name) for name in self.names())

    def entry(self, name: str) -> ModelEntry:
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

    def _read(self, name: str) -> ModelEntry:
        return read_entry(self.folder / name)

    def save(
        self, name: str, model: Model, card: ModelCard, preview: bytes | None = None
    ) -> ModelEntry:
        """Keep a model under a new name.

        Parameters
        ----------
        name
            See `names.check_name`.
        model, card
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
        staging = spare_name(self.folder / _STAGED)
        with writing(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for spare in spare_names(self.folder / _STAGED):
                if is_dead(spare):
                    remove(spare)
            try:
                write_entry(staging, replace(model, name=name), card, preview)
                self._place(staging, name)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        return self._read(name)

    def free_name(self, wanted: str) -> str:
        """A name like the wanted one that can be used and is not taken."""
        return free_name(wanted, self.names())

    def remove(self, name: str) -> Removed:
        """Take a model off the list; `restore` brings it back, until many others were removed.

        Raises
        ------
        ModelError
            Where there is none of this name.
        OutputError
            Where it cannot be moved.
        """
        entry = self.entry(name)
        # The name tells when it was removed and what it was called.
        place = self._removed / f"{time.time_ns():020d}~{uuid.uuid4().hex[:8]}~{entry.name}"
        with writing(self.folder):
            self._removed.mkdir(exist_ok=True)
            entry.folder.rename(place)
        for old in self.removed()[KEPT_REMOVED:]:
            shutil.rmtree(old.folder, ignore_errors=True)
        return Removed(entry.name, place)

    def removed(self) -> tuple[Removed, ...]:
        """What can be restored, the last removed first."""
        try:
            found = [p for p in self._removed.iterdir() if p.name.count("~") >= 2]
        except OSError:
            return ()
        found.sort(key=lambda p: p.name, reverse=True)
        return tuple(Removed(p.name.split("~", 2)[2], p) for p in found)

    def restore(self, removed: Removed) -> ModelEntry:
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
        while True:
            name = self.free_name(removed.name)
            try:
                with writing(self.folder):
                    self._place(removed.folder, name)
            except InputError:  # another program was quicker with this name
                continue
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
        model, card = self.load(name), self.entry(name).card
        return write_model_file(model, card, path)

    def import_file(self, path: Path | str, name: str | None = None) -> ModelEntry:
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
        model, card = read_model_file(path)
        card = card or ModelCard()
        if name is not None:
            return self.save(name, model, card)
        while True:
            name = self.free_name(path.stem)
            try:
                return self.save(name, model, card)
            except InputError:  # another program was quicker with this name
                if not any(same_name(known, name) for known in self.names()):
                    raise


def find_model(given: Path | str, library: Library | None = None) -> Model:
    """A model by its file, by its name in the library, or ``"shipped"``.

    A file comes before a model of the same name.

    Raises
    ------
    ModelError
        Where there is neither; the message says what there is. Where what was found is damaged.
    """
    file = find_model_file(given, library)
    return shipped_model() if file is None else load_model(file)


def find_model_file(given: Path | str, library: Library | None = None) -> Path | None:
    """The file of a model that is called so; None for the shipped one.

    Raises
    ------
    ModelError
        Where there is no such file or model, or that of the library is damaged; where it is a
        folder.
    InputError
        Where it is a pipe, a device or a link to nothing.
    """
    path, name = Path(given), str(given)
    if path.is_file():
        return path
    if same_name(name, SHIPPED):
        return None
    library = Library() if library is None else library
    if any(same_name(known, name) for known in library.names()):
        return library.file(name)
    check_readable(path)
    if path.is_dir():
        inside = path / MODEL
        hint = f", such as {inside}" if inside.is_file() else ""
        raise ModelError(f"{path}: a folder, not a model; give the file of a model{hint}")
    if path.suffix == ".json" or len(path.parts) > 1:
        return path
    raise ModelError(
        f"{name}: there is no such file, and no model of that name in the library "
        f"({library.listed()}); see bridgetrack models list"
    )


LONGEST = 40
SHIPPED = "shipped"
"""The name of the model that comes with the program."""

_FORBIDDEN = '/\\:*?"<>|'
_DEVICES = {"con", "prn", "aux", "nul", *(f"{d}{k}" for d in ("com", "lpt") for k in range(1, 10))}


def check_name(name: str) -> str:
    """A name as it is kept: without blanks around it, in composed characters.

    Raises
    ------
    InputError
        Where it cannot be the name of a model; the message says why.
    """
    clean = unicodedata.normalize("NFC", name).strip()
    problem = _problem(clean)
    if problem:
        raise InputError(f"a model cannot be called {name!r}: {problem}; choose another name")
    return clean


def _problem(name: str) -> str:
    if not name:
        return "the name is empty"
    if len(name) > LONGEST:
        return f"the name has more than {LONGEST} characters"
    if not name.isprintable():
        return "the name holds characters that cannot be shown"
    bad = sorted(set(name) & set(_FORBIDDEN))
    if bad:
        return f"the name holds {' '.join(bad)}"
    if name[0] in ".~" or name[-1] == ".":
        return "the name begins or ends with a dot, or begins with ~"
    if name.casefold().endswith(".json"):
        return "names that end in .json are for files"
    if name.casefold() == SHIPPED:
        return "that is the name of the model that comes with the program"
    if name.casefold().split(".")[0].strip() in _DEVICES:
        return "some systems keep that name for themselves"
    return ""


def same_name(one: str, two: str) -> bool:
    """Whether some system would take two names for one."""
    return _folded(one) == _folded(two)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).strip().casefold()


def free_name(wanted: str, taken: Iterable[str]) -> str:
    """A name like the wanted one that can be used and is not taken."""
    plain = "".join(c if c.isprintable() and c not in _FORBIDDEN else " " for c in wanted)
    plain = unicodedata.normalize("NFC", " ".join(plain.split()).lstrip(".~ "))
    while plain.casefold().endswith(".json"):
        plain = plain[: -len(".json")].rstrip(". ")
    plain = plain[: LONGEST - 6].rstrip(". ") or "model"
    if _problem(plain):
        plain = "model"
    known = {_folded(name) for name in taken}
    if _folded(plain) not in known:
        return plain
    k = 2
    while _folded(f"{plain} {k}") in known:
        k += 1
    return f"{plain} {k}"
