"""What kinds of links are wrong or missed, where truth and result have the same cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import NDArray

from graph_errors import one_parent

KINDS = {
    "missed_moves": "missed moves",
    "missed_daughters": "missed daughters",
    "over_a_gap": "wrong: over a gap",
    "false_daughters": "wrong: daughters of no division",
    "joined": "wrong: an end joined to a beginning",
    "exchanged": "wrong: another cell's",
}
"""Columns of a table, in words."""


def link_kinds(
    frame: NDArray[Any], true: Iterable[tuple[int, int]], found: Iterable[tuple[int, int]]
) -> dict[str, int]:
    """How many links of each kind are wrong or missed; `KINDS` names them.

    A wrong link is of the first kind that fits: it leaves out a frame; it is one of several links
    from a cell that does not divide, whose true one was found; its cell truly has no next or no
    previous one; or both cells truly go with others.

    Parameters
    ----------
    frame
        Of every true cell, shape (n,).
    true, found
        Links, rows of cells; the first parent counts.
    """
    right, mine = set(one_parent(true)), set(one_parent(found))
    children = _children(right)
    continued = {a for a, _ in right & mine}
    split = {a for a, n in _children(mine).items() if n > 1}
    parented = {b for _, b in right}
    counts = dict.fromkeys(KINDS, 0)
    for a, _ in right - mine:
        counts["missed_daughters" if children[a] > 1 else "missed_moves"] += 1
    for a, b in mine - right:
        if frame[b] - frame[a] > 1:
            kind = "over_a_gap"
        elif a in split and children.get(a) == 1 and a in continued:
            kind = "false_daughters"
        elif a not in children or b not in parented:
            kind = "joined"
        else:
            kind = "exchanged"
        counts[kind] += 1
    return counts


def _children(links: set[tuple[int, int]]) -> dict[int, int]:
    """How many cells follow each cell."""
    found: dict[int, int] = {}
    for a, _ in links:
        found[a] = found.get(a, 0) + 1
    return found
