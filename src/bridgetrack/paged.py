"""Large arrays on disk, of which only what is looked at is held in memory.

A movie may have more cells than memory holds. Its tables then lie in files without a name, which
the system reads and writes as they are needed and which are gone when the program is, however it
ends. To all other code they are ordinary arrays.
"""

from __future__ import annotations

import mmap
import os
import tempfile
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
        small = array.nbytes < _SMALL or array.dtype.hasobject
        if self.folder is None or small or self._holds(array):
            return array
        rows = max(_AT_ONCE // max(array.nbytes // len(array), 1), 1)
        try:
            with tempfile.TemporaryFile(dir=self.folder) as file:
                for first in range(0, len(array), rows):
                    file.write(np.ascontiguousarray(array[first : first + rows]).data)
                file.flush()
                pages = mmap.mmap(file.fileno(), 0)
        except OSError as error:
            raise BridgetrackError(
                f"{self.folder} has no room for the tables of a movie that is larger than memory "
                f"({error}); make room there, or name another folder in TMPDIR"
            ) from error
        self._open.add(pages)
        return np.frombuffer(pages, dtype=array.dtype).reshape(array.shape)

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
