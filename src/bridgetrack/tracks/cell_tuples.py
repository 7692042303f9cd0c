"""A column of a table whose values are tuples of cells, held as numbers until somebody looks.

A million tuples of one number each take 160 bytes a piece as Python's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api.extensions import ExtensionArray, ExtensionDtype, take

Rows = NDArray[np.int64]
_NOBODY = -1
_MISSING = -2


class CellTuplesDtype(ExtensionDtype):
    """Tuples of up to two cells."""

    name = "cells"
    na_value = None

    type = tuple

    @classmethod
    def construct_array_type(cls) -> Any:
        """As pandas wants it."""
        return CellTuples


class CellTuples(ExtensionArray):
    """Tuples of cells.

    Parameters
    ----------
    rows
        The cells of every tuple, shape (n, 2), -1 where it has fewer; the first entry is filled
        first.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @classmethod
    def _from_sequence(
        cls, scalars: Sequence[Any], *, dtype: Any = None, copy: bool = False
    ) -> CellTuples:
        if isinstance(scalars, CellTuples):
            return scalars.copy() if copy else scalars
        rows = np.full((len(scalars), 2), _NOBODY, dtype=np.int64)
        for k, one in enumerate(scalars):
            if one is None:
                rows[k] = _MISSING
            else:
                rows[k, : len(one)] = one
        return cls(rows)

    @classmethod
    def _concat_same_type(cls, to_concat: Sequence[CellTuples]) -> CellTuples:
        return cls(np.concatenate([one._rows for one in to_concat]))

    @property
    def dtype(self) -> CellTuplesDtype:
        """Tuples of cells."""
        return CellTuplesDtype()

    @property
    def nbytes(self) -> int:
        """Bytes of the numbers."""
        return int(self._rows.nbytes)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, item: Any) -> Any:
        item = pd.api.indexers.check_array_indexer(self, item)
        if isinstance(item, int | np.integer):
            return _tuple(self._rows[item].tolist())
        return CellTuples(self._rows[item])

    def __iter__(self) -> Iterator[tuple[int, ...] | None]:
        return map(_tuple, self._rows.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        out = np.empty(len(self), dtype=object)
        for k, one in enumerate(self):  # else numpy takes tuples for another axis
            out[k] = one
        return out

    def __eq__(self, other: object) -> NDArray[np.bool_]:  # type: ignore[override]
        if isinstance(other, CellTuples):
            return np.asarray((self._rows == other._rows).all(axis=1))
        return np.asarray([one == other for one in self], dtype=bool)

    __hash__ = None  # type: ignore[assignment]

    def isna(self) -> NDArray[np.bool_]:
        """Which are missing altogether, shape (n,); an empty tuple is not."""
        return np.asarray(self._rows[:, 0] == _MISSING)

    def take(self, indices: Any, *, allow_fill: bool = False, fill_value: Any = None) -> CellTuples:
        """Some of them; missing ones for -1 where that is asked for."""
        rows = take(self._rows, indices, allow_fill=allow_fill, fill_value=_MISSING)
        return CellTuples(np.asarray(rows, dtype=np.int64))

    def copy(self) -> CellTuples:
        """The same in memory of its own."""
        return CellTuples(self._rows.copy())

    def _explode(self) -> tuple[ExtensionArray, NDArray[np.uint64]]:
        """One cell each, missing for empty tuples, and how many each tuple gives."""
        named = self._rows >= 0
        count = np.maximum(named.sum(axis=1), 1).astype(np.uint64)
        shown = named.copy()
        shown[:, 0] = True
        values = pd.array(self._rows[shown], dtype="Int64")
        values[~named[shown]] = pd.NA
        return values, count


def _tuple(row: list[int]) -> tuple[int, ...] | None:
    first, second = row
    if second >= 0:
        return first, second
    return (first,) if first >= 0 else None if first == _MISSING else ()
