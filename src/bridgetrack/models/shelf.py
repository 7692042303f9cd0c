"""Reading a folder of models: one folder each, with the model, what is known of it, and a picture.

A folder whose name begins with a dot is not listed.
"""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_data_path

from bridgetrack.errors import ModelError
from bridgetrack.models.entry import MODEL, Entry, read_entry
from bridgetrack.models.model import Model
from bridgetrack.models.names import same_name

ENVIRONMENT = "BRIDGETRACK_MODELS"
"""Variable that names another folder than the user's."""


class Shelf:
    """The models in a folder, to read them.

    Parameters
    ----------
    folder
        Where they are; without it the folder named by the variable `ENVIRONMENT`, without that
        one in the user's data folder. It need not exist.
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = library_folder() if folder is None else Path(folder)

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


def library_folder() -> Path:
    """Where the models are kept unless somebody says otherwise."""
    given = os.environ.get(ENVIRONMENT, "")
    if given:
        return Path(given)
    return user_data_path("bridgetrack", appauthor=False) / "models"
