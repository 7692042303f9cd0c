"""The track table of the Cell Tracking Challenge: rows of label, begin, end and parent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError


def read_track_table(path: Path) -> NDArray[np.int64]:
    """Rows ``L B E P`` of a track table, shape (n, 4).

    Raises
    ------
    InputError
        Where a row is not four integers, a label repeats or is not positive, a track ends before
        it begins, or a parent is unknown or still there when its child begins.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read as a text file ({error})") from error
    rows: list[list[int]] = []
    numbers: list[int] = []
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        try:
            row = [int(w) for w in words]
        except ValueError:
            row = []
        if len(row) != 4:
            raise InputError(
                f"{path}, row {number}: expected four integers 'label begin end parent', "
                f"found {line.strip()[:60]!r}"
            )
        rows.append(row)
        numbers.append(number)
    table = np.asarray(rows, dtype=np.int64).reshape(-1, 4)
    _check_table(table, numbers, path)
    return table


def _check_table(table: NDArray[np.int64], numbers: list[int], path: Path) -> None:
    label, begin, end, parent = table.T
    _complain(label < 1, numbers, path, "the label must be 1 or more")
    _complain((begin < 0) | (end < begin), numbers, path, "the track ends before it begins")
    order = np.argsort(label, kind="stable")
    repeats = np.zeros(len(label), dtype=bool)
    repeats[order[1:]] = np.diff(label[order]) == 0
    _complain(repeats, numbers, path, "the label was used before")
    at = np.searchsorted(label[order], parent)
    at = order[np.minimum(at, max(len(order) - 1, 0))] if len(order) else at
    has_parent = parent != 0
    _complain(has_parent & (label[at] != parent), numbers, path, "there is no track of its parent")
    late = has_parent & (end[at] >= begin)
    _complain(late, numbers, path, "its parent is still there when the track begins")


def _complain(wrong: NDArray[np.bool_], numbers: list[int], path: Path, what: str) -> None:
    if np.any(wrong):
        raise InputError(f"{path}, row {numbers[int(np.argmax(wrong))]}: {what}")


def only_children(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of the tracks whose parent has no other child."""
    parents, counts = np.unique(table[table[:, 3] != 0, 3], return_counts=True)
    return table[np.isin(table[:, 3], parents[counts == 1])]
