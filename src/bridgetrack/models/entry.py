"""One model of the library on disk: a folder with three files, and one file to share it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from bridgetrack.errors import ModelError
from bridgetrack.models.model import Model
from bridgetrack.models.record import Record
from bridgetrack.models.record_file import (
    record_from_json,
    record_from_text,
    record_text,
    record_to_json,
)
from bridgetrack.models.store import from_json, load_model, save_model, to_json

MODEL, RECORD, PREVIEW = "model.json", "entry.json", "preview.png"

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


def read_entry(folder: Path) -> Entry:
    """What is in a folder of the library; where it is damaged, why."""
    preview = folder / PREVIEW
    shown = preview if _is_picture(preview) else None
    try:
        model = replace(_file(folder / MODEL, from_json), name=folder.name)
        record = _file(folder / RECORD, record_from_text)
    except ModelError as error:
        return Entry(folder.name, folder, None, None, shown, str(error))
    return Entry(folder.name, folder, model, record, shown)


def write_entry(folder: Path, model: Model, record: Record, preview: bytes | None) -> None:
    """Make a folder that holds a model.

    Raises
    ------
    ModelError
        Where something is not made of finite JSON values; nothing is written then.
    OSError
        Where it cannot be written.
    """
    texts = {MODEL: to_json(model), RECORD: record_text(record)}
    folder.mkdir()
    for name, text in texts.items():
        _write(folder / name, text.encode("utf-8"))
    if preview is not None:
        _write(folder / PREVIEW, preview)


def write_model_file(model: Model, record: Record | None, path: Path | str) -> Path:
    """A model file that holds what is known of the model too."""
    known = {} if record is None else {_EMBEDDED: record_to_json(record)}
    return save_model(replace(model, provenance={**model.provenance, **known}), path)


def read_model_file(path: Path | str) -> tuple[Model, Record | None]:
    """A model file and, where `write_model_file` wrote it, what is known of the model.

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
