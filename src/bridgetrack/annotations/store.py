"""Annotation files: whole reads, atomic writes, and a store that saves every change."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.decode import decode
from bridgetrack.annotations.encode import Lines, encode
from bridgetrack.annotations.history import History, redo, undo
from bridgetrack.errors import InputError, OutputError
from bridgetrack.files import write_text
from bridgetrack.movie.geometry import Geometry

_Stamp = tuple[int, int, int] | None
_STALE = 60.0


def _write(path: Path, text: str) -> None:
    """Replace a file in one step: after a crash it is the old or the new one, whole."""
    write_text(path, text, "the annotations")


def load_history(path: str | os.PathLike[str]) -> History:
    """Annotations and what can be undone and redone, from a file.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is no annotation file: it is not text in UTF-8") from error
    return decode(text, str(file))


def load_annotations(path: str | os.PathLike[str]) -> AnnotationSet:
    """Annotations from a file.

    Raises
    ------
    InputError
        Where the file is missing or not valid; the message names the entry.
    """
    return load_history(path).annotations


def save_annotations(annotations: AnnotationSet | History, path: str | os.PathLike[str]) -> None:
    """Write annotations, and the undo history where one is given, to a file in one step.

    Raises
    ------
    OutputError
        Where the file cannot be written; what was there before is left as it was.
    """
    history = annotations if isinstance(annotations, History) else History(annotations)
    _write(Path(path), encode(history))


def _sweep(path: Path) -> None:
    """Remove what a killed program left beside the file a minute ago or earlier."""
    target = path.resolve()
    for left in target.parent.glob(f".{target.name}.*.tmp"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE:
                left.unlink()


def _stamp(path: Path) -> _Stamp:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


class AutosavingStore:
    """Annotations of a movie kept in a file: a change is on disk when the call returns.

    Parameters
    ----------
    path
        The file; read where it is there (to resume), made at the first change where not.
    geometry
        Extent and scale of the movie, for a new file.

    Raises
    ------
    InputError
        Where the file is there but not valid, or belongs to a movie with another number of
        axes.
    """

    def __init__(self, path: str | os.PathLike[str], geometry: Geometry) -> None:
        self._path = Path(path)
        self._lines: Lines = {}
        _sweep(self._path)
        self._seen = _stamp(self._path)
        if self._seen is None:
            self._history = History(AnnotationSet(geometry))
        else:
            self._history = load_history(self._path)
            self._check_movie(geometry)

    def _check_movie(self, geometry: Geometry) -> None:
        known = self.annotations.geometry
        if known.ndim != geometry.ndim:
            raise InputError(
                f"{self._path} belongs to a movie with {known.ndim} spatial axes, this one has "
                f"{geometry.ndim}; choose another file"
            )

    @property
    def path(self) -> Path:
        """Where the annotations are kept."""
        return self._path

    @property
    def history(self) -> History:
        """The present annotations with what can be undone and redone."""
        return self._history

    @property
    def annotations(self) -> AnnotationSet:
        """The present annotations."""
        return self._history.annotations

    def _keep(self, history: History) -> AnnotationSet:
        """Write first, then believe it: a failed write leaves memory and disk as they were."""
        if _stamp(self._path) not in (self._seen, None):
            raise OutputError(
                f"{self._path} was changed by another program since it was opened; open it "
                f"again, nothing was overwritten"
            )
        _write(self._path, encode(history, self._lines))
        self._seen = _stamp(self._path)
        self._history = history
        return history.annotations

    def edit(self, remove: Iterable[str] = (), add: Iterable[Annotation] = ()) -> AnnotationSet:
        """Remove and add annotations as one step.

        Raises
        ------
        InputError
            Where the step does not fit the set.
        OutputError
            Where it cannot be saved; then nothing has changed.
        """
        return self._keep(self._history.record(remove, add))

    def add(self, *annotations: Annotation) -> AnnotationSet:
        """Add annotations as one step; raises as `edit`."""
        return self.edit(add=annotations)

    def remove(self, *ids: str) -> AnnotationSet:
        """Remove annotations as one step; raises as `edit`."""
        return self.edit(remove=ids)

    def replace(self, annotation: Annotation) -> AnnotationSet:
        """Put an annotation in the place of the one with its id; raises as `edit`."""
        return self.edit(remove=[annotation.id], add=[annotation])

    def undo(self) -> AnnotationSet:
        """Take back the last step, where there is one; raises OutputError as `edit`."""
        return self._keep(undo(self._history)) if self._history.past else self.annotations

    def redo(self) -> AnnotationSet:
        """Repeat the step undone last, where there is one; raises OutputError as `edit`."""
        return self._keep(redo(self._history)) if self._history.future else self.annotations
