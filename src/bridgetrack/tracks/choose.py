"""Choosing rows of a table of tracks by a few words that a person types."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.errors import InputError

_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le, ">=": operator.ge, "!=": operator.ne, "<": operator.lt, ">": operator.gt,
    "==": operator.eq, "=": operator.eq,
}  # fmt: skip
_TRUTH = {"yes": "1", "true": "1", "no": "0", "false": "0"}
_NUMBERS = re.compile(r"\d+(?:\s*[,;\s]\s*\d+)*[,;\s]*")
_PART = re.compile(r"\s*([A-Za-z_][\w ]*?)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*")


def rows_named(table: pd.DataFrame, words: str) -> NDArray[np.bool_]:
    """Which rows are meant.

    Parameters
    ----------
    table
        One row per track, see `track_table`.
    words
        Numbers of tracks (``12`` or ``12, 40``: they, and all tracks of their families), or
        conditions parted by commas, that all hold: ``divisions > 0, certainty < 0.9``,
        ``ends_in = leaving``. Columns are named without units; empty words mean all rows.

    Raises
    ------
    InputError
        Where a condition cannot be understood, or names no column.
    """
    words = words.strip()
    kept = np.ones(len(table), dtype=bool)
    if _NUMBERS.fullmatch(words):
        numbers = [int(n) for n in re.findall(r"\d+", words)]
        families = table.loc[table["track_id"].isin(numbers), "lineage_id"]
        return table["lineage_id"].isin(families).to_numpy(dtype=bool)
    columns = {str(c).split(" [")[0]: c for c in table.columns}
    for part in filter(str.strip, words.split(",")):
        found = _PART.fullmatch(part)
        name = "" if found is None else found[1].strip().replace(" ", "_")
        if found is None or name not in columns:
            raise InputError(
                f"“{part.strip()}” is not understood: type numbers of tracks (12, 40) or "
                f"conditions such as divisions > 0; known are {', '.join(columns)}"
            )
        kept &= _holds(table[columns[name]], found[2], found[3])
    return kept


def _holds(column: pd.Series[Any], sign: str, value: str) -> NDArray[np.bool_]:
    if column.dtype.kind == "b" and value.lower() in _TRUTH:
        value = _TRUTH[value.lower()]
    if column.dtype.kind in "iufb":
        try:
            number = float(value)
        except ValueError:
            raise InputError(f"“{value}” is no number; {column.name} needs one") from None
        return np.asarray(_COMPARED[sign](column.to_numpy(dtype=np.float64), number), dtype=bool)
    if sign not in ("=", "==", "!="):
        raise InputError(f"{column.name} holds words: compare it by = or !=")
    same = column.astype(str).str.lower() == value.lower()
    return np.asarray(~same if sign == "!=" else same, dtype=bool)
