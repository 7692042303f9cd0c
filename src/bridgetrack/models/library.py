"""The library: a folder of model files, known by their names.

A model of the name ``lab`` is the file ``lab.json``; earlier versions wrote a folder ``lab`` with a
file ``model.json`` in it, which is read as well.
"""

from __future__ import annotations

import os
import unicodedata
from dataclasses import replace
from pathlib import Path

from platformdirs import user_data_path

from bridgetrack.errors import ModelError
from bridgetrack.files import as_path, check_readable
from bridgetrack.models.model import Model, load_model, shipped_model

ENVIRONMENT = "BRIDGETRACK_MODELS"
"""Variable that names another folder than the user's."""
SHIPPED = "shipped"
"""The name of the model that comes with the program."""

_EARLIER = "model.json"
"""Name of the model file in the folders of earlier versions."""


def library_folder() -> Path:
    """The default folder of the models."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return Path(given)
    return user_data_path("bridgetrack", appauthor=False) / "models"


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

    def names(self) -> tuple[str, ...]:
        """Names of all models, sorted.

        Raises
        ------
        ModelError
            Where the folder is there but cannot be read.
        """
        return tuple(sorted(self._files(), key=lambda name: (name.casefold(), name)))

    def _files(self) -> dict[str, Path]:
        """The file of every model, by its name."""
        try:
            inside = [path for path in self.folder.iterdir() if path.name[0] != "."]
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise ModelError(
                f"{self.folder}: the model library cannot be read ({error.strerror})"
            ) from error
        earlier = {p.name: p / _EARLIER for p in inside if (p / _EARLIER).is_file()}
        return earlier | {p.stem: p for p in inside if p.suffix == ".json" and p.is_file()}

    def file(self, name: str) -> Path:
        """The file of a model.

        Raises
        ------
        ModelError
            Where there is no model of this name; the message lists those that are there.
        """
        files, wanted = self._files(), _folded(name)
        for known, path in files.items():
            if _folded(known) == wanted:
                return path
        holds = f"it holds {', '.join(self.names())}" if files else "it is empty"
        raise ModelError(f"there is no model {name!r} in {self.folder} ({holds})")

    def load(self, name: str) -> Model:
        """The model of a name.

        Raises
        ------
        ModelError
            Where there is no such model, or its file is damaged.
        """
        return replace(load_model(self.file(name)), name=name)


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
        Where there is no such file or model; where it is a folder.
    InputError
        Where it is a pipe, a device or a link to nothing.
    """
    path, name = as_path(given), str(given)
    if path.is_file():
        return path
    if _folded(name) == SHIPPED:
        return None
    library = Library() if library is None else library
    if _folded(name) in map(_folded, library.names()):
        return library.file(name)
    check_readable(path)
    if path.is_dir():
        raise ModelError(f"{path}: a folder, not a model; give the file of a model")
    if path.suffix == ".json" or len(path.parts) > 1:
        return path  # loading it raises the error
    return library.file(name)


def _folded(name: str) -> str:
    """The form of a name that is equal for names that some systems do not distinguish."""
    return unicodedata.normalize("NFC", name).strip().casefold()
