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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeVar
from weakref import WeakSet

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike, NDArray

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


def ascending(values: NDArray[np.integer]) -> bool:
    """Whether no number is smaller than the one before; few are looked at at a time."""
    return all(
        bool((np.diff(values[max(some.start - 1, 0) : some.stop]) >= 0).all())
        for some in in_parts(len(values))
    )


def room_on_disk() -> Path:
    """Folder for large temporary files: ``TMPDIR``, else ``/var/tmp``, else the system's.

    ``/tmp`` often lies in memory, where it would be no gain.
    """
    lasting = Path("/var/tmp")
    if "TMPDIR" not in os.environ and os.access(lasting, os.W_OK):
        return lasting
    return Path(tempfile.gettempdir())


class _Page(mmap.mmap):
    """A file that we made."""


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

    def zeros(self, shape: int | tuple[int, ...], kind: DTypeLike = np.float64) -> NDArray[Any]:
        """An array to be filled, on disk where that is worth it."""
        shape = (shape,) if isinstance(shape, int) else shape
        kind = np.dtype(kind)
        size = kind.itemsize * math.prod(shape)
        if not self._worth(size, kind):
            return np.zeros(shape, dtype=kind)
        count, step = math.prod(shape), max(_AT_ONCE // kind.itemsize, 1)
        # Written, as a page that a full disk has no room for ends the program when it is filled.
        empty = (np.zeros(min(step, count - k), dtype=kind) for k in range(0, count, step))
        return self._written(empty, kind, shape)

    def stack(self, pieces: Iterable[Thing]) -> Thing:
        """As `join`, of pieces that are made one after another; there must be one at least."""
        found: list[Any] = []
        piles: dict[str, Pile] = {}
        for piece in pieces:
            found = found or [piece]
            for name, array in _leaves(piece):
                piles.setdefault(name, Pile(self)).add(array)
        arrays = {name: pile.done() for name, pile in piles.items()}
        whole: Thing = _rebuilt(found[0], arrays)
        return whole

    def argsort(self, keys: NDArray[np.integer]) -> NDArray[np.int64]:
        """Stable order of many integers, put here; few are in memory unless most are alike."""
        n = len(keys)
        if not self._worth(8 * n, np.dtype(np.int64)) or n <= ROWS_AT_ONCE:
            return np.argsort(keys, kind="stable")
        parts = list(in_parts(n))
        low, high = min(int(keys[p].min()) for p in parts), max(int(keys[p].max()) for p in parts)
        count = -(-n // ROWS_AT_ONCE)
        wide = -(-(high - low + 1) // count)  # integers of a bucket
        sizes = np.zeros(count + 1, dtype=np.int64)
        for p in parts:
            sizes[1:] += np.bincount((keys[p] - low) // wide, minlength=count)
        ends = np.cumsum(sizes)
        free = ends[:-1].copy()
        order, sorted_ = self.zeros(n, np.int64), self.zeros(n, keys.dtype)
        for p in parts:
            bucket = (keys[p] - low) // wide
            by = np.argsort(bucket, kind="stable")
            many = np.bincount(bucket, minlength=count)
            begin = np.cumsum(many) - many
            place = np.arange(len(by)) + np.repeat(free - begin, many)
            order[place], sorted_[place] = by + p.start, keys[p][by]
            free += many
            self.let_go()
        for a, b in pairwise(ends.tolist()):
            order[a:b] = order[a:b][np.argsort(sorted_[a:b], kind="stable")]
            self.let_go()
        return order

    def median(self, pieces: Iterable[NDArray[np.float64]], count: int) -> float:
        """Median of so many numbers, which come in pieces and need not fit into memory."""
        room, at = self.zeros(count), 0
        for piece in pieces:
            room[at : at + len(piece)] = piece
            at += len(piece)
        return float(np.median(room, overwrite_input=True))

    def take(self, thing: Thing, rows: NDArray[np.integer] | NDArray[np.bool_]) -> Thing:
        """Some rows of an array, or of a dataclass of arrays, by index or by mask, put here.

        Few are in memory at a time.
        """
        if rows.dtype == bool and self.folder is not None:
            mask = np.asarray(rows, dtype=bool)
            return self.stack(_among(thing, mask, some) for some in _and_none(len(mask)))
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
        with self._file() as file:
            for piece in pieces:
                file.write(np.ascontiguousarray(piece).data)
                self.let_go()
            return self._mapped(file, kind, shape)

    @contextmanager
    def _file(self) -> Iterator[IO[bytes]]:
        """A file without a name."""
        with self._told(), tempfile.TemporaryFile(dir=self.folder) as file:
            yield file

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What is said where the disk is full."""
        try:
            yield
        except OSError as error:
            raise BridgetrackError(
                f"{self.folder} has no room for the tables of a movie that is larger than memory "
                f"({error}); make room there, or name another folder in TMPDIR"
            ) from error

    def _mapped(
        self, file: IO[bytes], kind: np.dtype[Scalar], shape: tuple[int, ...]
    ) -> NDArray[Scalar]:
        file.flush()
        pages = _Page(file.fileno(), 0)
        self._open.add(pages)
        return np.frombuffer(pages, dtype=kind).reshape(shape)

    def _holds(self, array: NDArray[Any]) -> bool:
        base: Any = array
        while isinstance(base, np.ndarray):
            base = base.base
        base = base.obj if isinstance(base, memoryview) else base
        if isinstance(base, _Page):
            self._open.add(base)  # of others, too
        return isinstance(base, _Page)

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


@dataclass
class Pile:
    """An array that grows: in memory while it is small, then in a file."""

    pages: Pages
    _parts: list[NDArray[Any]] = field(default_factory=list)
    _like: NDArray[Any] | None = None
    _rows: int = 0
    _held: int = 0
    _file: IO[bytes] | None = None

    def add(self, array: NDArray[Any]) -> None:
        """Put some rows at the end."""
        self._like = array[:0]
        self._parts.append(array)
        self._rows += len(array)
        self._held += array.nbytes
        if self.pages._worth(self._held, array.dtype) and self._held > _AT_ONCE // 16:
            self._write()

    def _write(self) -> None:
        with self.pages._told():
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self.pages.folder)  # noqa: SIM115
            for part in self._parts:
                self._file.write(np.ascontiguousarray(part).data)
        self._parts, self._held = [], 0
        self.pages.let_go()  # what the rows were made of, too

    def done(self) -> NDArray[Any]:
        """All rows."""
        if self._like is None:
            return np.zeros(0)
        if self._file is None:
            return self.pages._joined(self._parts)
        self._write()
        with self._file as file, self.pages._told():
            return self.pages._mapped(file, self._like.dtype, (self._rows, *self._like.shape[1:]))


def _leaves(thing: Any, above: str = "") -> Iterator[tuple[str, NDArray[Any]]]:
    """The arrays of an array, or of a dataclass of arrays, by where they are in it."""
    if isinstance(thing, np.ndarray):
        yield above, thing
    else:
        for f in fields(thing):
            yield from _leaves(getattr(thing, f.name), f"{above}.{f.name}")


def _rebuilt(thing: Any, arrays: dict[str, NDArray[Any]], above: str = "") -> Any:
    """The same with other arrays, named as by `_leaves`."""
    if isinstance(thing, np.ndarray):
        return arrays[above]
    inner = {f.name: getattr(thing, f.name) for f in fields(thing)}
    found = {n: _rebuilt(one, arrays, f"{above}.{n}") for n, one in inner.items()}
    return replace(thing, **found)


def _and_none(rows: int) -> Iterator[slice]:
    """As `in_parts`, with a part of no rows first."""
    yield slice(0, 0)
    yield from in_parts(rows)


def _among(thing: Thing, mask: NDArray[np.bool_], rows: slice) -> Thing:
    """Those of some rows that a mask names."""
    found: Thing = _rebuilt(thing, {name: a[rows][mask[rows]] for name, a in _leaves(thing)})
    return found


def _pieces(array: NDArray[Scalar], rows: NDArray[np.integer] | None) -> Iterator[NDArray[Scalar]]:
    """The array, or some rows of it, a few at a time."""
    length = len(array if rows is None else rows)
    each = array.dtype.itemsize * math.prod(array.shape[1:])
    step = max(_AT_ONCE // max(each, 1), 1)
    for first in range(0, length, step):
        some = slice(first, first + step)
        yield array[some] if rows is None else array[rows[some]]
