"""Large arrays on disk, of which only what is looked at is held in memory.

A movie may have more cells than memory holds. Its tables then lie in files without a name, which
the system reads and writes as they are needed and which are gone when the program is, however it
ends. To all other code they are ordinary arrays.
"""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import BridgetrackError

Thing = TypeVar("Thing")
Scalar = TypeVar("Scalar", bound=np.generic)

_SMALL = 1 << 16
"""Bytes below which an array is not worth a file."""
_AT_ONCE = 1 << 24
"""Bytes that are written at once."""
ROWS_AT_ONCE = 1 << 16
"""Rows of a table that are worked on at once where that takes much memory for each."""


def in_parts(rows: int) -> Iterator[slice]:
    """So many rows, some at a time."""
    return (slice(k, k + ROWS_AT_ONCE) for k in range(0, rows, ROWS_AT_ONCE))


def room_on_disk() -> Path:
    """Folder for large temporary files: ``TMPDIR``, else ``/var/tmp``, else the system's.

    ``/tmp`` often lies in memory, where it would be no gain.
    """
    lasting = Path("/var/tmp")
    if "TMPDIR" not in os.environ and os.access(lasting, os.W_OK):
        return lasting
    return Path(tempfile.gettempdir())


@dataclass(frozen=True)
class Pages:
    """Where the large arrays of a movie lie.

    Parameters
    ----------
    folder
        Where their files are; None: arrays stay in memory.
    """

    folder: Path | None = None
    _open: WeakSet[mmap.mmap] = field(default_factory=WeakSet, repr=False, compare=False)

    def put(self, array: NDArray[Scalar]) -> NDArray[Scalar]:
        """The same numbers, on disk where that is worth it; writing to them writes to the file.

        Raises
        ------
        BridgetrackError
            Where the disk is full.
        """
        return array if self._holds(array) else self._gathered(array, None)

    def take(self, thing: Thing, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Thing:
        """Some rows of an array, or of a dataclass of arrays, by index or by mask, put here.

        Few are in memory at a time.
        """
        named: NDArray[Any] = np.flatnonzero(rows) if rows.dtype == bool else rows
        return self._each([thing], lambda arrays: self._gathered(arrays[0], named))

    def join(self, parts: Sequence[Thing]) -> Thing:
        """Arrays, or dataclasses of arrays, one after another, put here."""
        return self._each(parts, self._joined)

    def _each(self, things: Sequence[Any], what: Callable[[Sequence[Any]], Any]) -> Any:
        """What is made of arrays, or of those in each field of dataclasses."""
        one = things[0]
        if isinstance(one, np.ndarray):
            return what(things)
        names = [f.name for f in fields(one)]
        found = {n: self._each([getattr(thing, n) for thing in things], what) for n in names}
        return replace(one, **found)

    def _joined(self, parts: Sequence[NDArray[Scalar]]) -> NDArray[Scalar]:
        if not self._worth(sum(part.nbytes for part in parts), parts[0].dtype):
            return np.concatenate(parts)
        shape = (sum(len(part) for part in parts), *parts[0].shape[1:])
        pieces = (piece for part in parts for piece in _pieces(part, None))
        return self._written(pieces, parts[0].dtype, shape)

    def _gathered(
        self, array: NDArray[Scalar], rows: NDArray[np.integer] | None
    ) -> NDArray[Scalar]:
        shape = (len(array if rows is None else rows), *array.shape[1:])
        if not self._worth(array.dtype.itemsize * math.prod(shape), array.dtype):
            return array if rows is None else array[rows]
        return self._written(_pieces(array, rows), array.dtype, shape)

    def _worth(self, size: int, kind: np.dtype[Any]) -> bool:
        return self.folder is not None and size >= _SMALL and not kind.hasobject

    def _written(
        self, pieces: Iterable[NDArray[Scalar]], kind: np.dtype[Scalar], shape: tuple[int, ...]
    ) -> NDArray[Scalar]:
        """Pieces of an array, one after another in a file."""
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                for piece in pieces:
                    file.write(np.ascontiguousarray(piece).data)
                file.flush()
                pages = mmap.mmap(file.fileno(), 0)
        except OSError as error:
            raise BridgetrackError(
                f"{self.folder} has no room for the tables of a movie that is larger than memory "
                f"({error}); make room there, or name another folder in TMPDIR"
            ) from error
        self._open.add(pages)
        return np.frombuffer(pages, dtype=kind).reshape(shape)

    def _holds(self, array: NDArray[Any]) -> bool:
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        base = base.obj if isinstance(base, memoryview) else base
        return isinstance(base, mmap.mmap) and base in self._open

    def keep(self, thing: Thing) -> Thing:
        """The same dataclass or table with all its large arrays put here, each once."""
        if self.folder is None:
            return thing
        return self._keep(thing, {})

    def _keep(self, thing: Any, known: dict[int, Any]) -> Any:
        if id(thing) in known:
            return known[id(thing)]
        if isinstance(thing, np.ndarray):
            out: Any = self.put(thing)
        elif isinstance(thing, pd.DataFrame):
            columns = {name: self.put_column(thing[name]) for name in thing.columns}
            out = thing
            if not all(self._same(column, thing[name]) for name, column in columns.items()):
                out = pd.DataFrame(columns, index=thing.index, copy=False)
        elif is_dataclass(thing) and not isinstance(thing, type):
            found = {f.name: self._keep(getattr(thing, f.name), known) for f in fields(thing)}
            changed = {n: v for n, v in found.items() if v is not getattr(thing, n)}
            out = replace(thing, **changed) if changed else thing
        else:
            out = thing
        known[id(thing)] = out
        return out

    def _same(self, column: Any, before: pd.Series[Any]) -> bool:
        if not isinstance(column, np.ndarray):
            return True
        return bool(np.shares_memory(column, before.to_numpy()))

    def put_column(self, column: pd.Series[Any]) -> Any:
        """The values of a column, on disk where they are numbers."""
        plain = isinstance(column.dtype, np.dtype) and not column.dtype.hasobject
        return self.put(column.to_numpy()) if plain else column.array

    def __reduce__(self) -> tuple[type[Pages], tuple[()]]:
        """On another machine arrays stay in memory."""
        return Pages, ()

    def let_go(self) -> None:
        """Hold nothing of them in memory until it is looked at again, where the system can."""
        for pages in list(self._open):
            with suppress(AttributeError, OSError, ValueError):  # only on Unix
                pages.madvise(mmap.MADV_DONTNEED)


def _pieces(array: NDArray[Scalar], rows: NDArray[np.integer] | None) -> Iterator[NDArray[Scalar]]:
    """The array, or some rows of it, a few at a time."""
    length = len(array if rows is None else rows)
    each = array.dtype.itemsize * math.prod(array.shape[1:])
    step = max(_AT_ONCE // max(each, 1), 1)
    for first in range(0, length, step):
        some = slice(first, first + step)
        yield array[some] if rows is None else array[rows[some]]
