"""A model by what a user calls it: a file, or a name in the library."""

from __future__ import annotations

from pathlib import Path

from bridgetrack.errors import ModelError
from bridgetrack.models.library import Library
from bridgetrack.models.model import Model
from bridgetrack.models.names import SHIPPED, same_name
from bridgetrack.models.shipped import shipped_model
from bridgetrack.models.store import load_model


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
        Where there is no such file or model, or that of the library is damaged.
    """
    path, name = Path(given), str(given)
    if path.is_file():
        return path
    if same_name(name, SHIPPED):
        return None
    library = Library() if library is None else library
    if any(same_name(known, name) for known in library.names()):
        return library.file(name)
    if path.suffix == ".json" or len(path.parts) > 1:
        return path
    raise ModelError(
        f"{name}: there is no such file, and no model of that name in the library "
        f"({library.listed()}); see bridgetrack models list"
    )
