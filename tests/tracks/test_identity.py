"""Which chains are one cell, through splits and merges."""

from __future__ import annotations

import numpy as np

from bridgetrack.tracks.build import ChainEnds, Identities, Junction
from bridgetrack.tracks.build import resolve_identities as resolve


def ends(first, last=None, length=3, first_size=None, last_size=None) -> ChainEnds:
    """Chains on a line: where they begin and end, and for how many frames they live."""
    n = len(first)
    last = first if last is None else last

    def column(values, default):
        return np.asarray(np.full(n, default) if values is None else values, dtype=float)

    return ChainEnds(
        np.column_stack([np.zeros(n), first]).astype(float),
        np.column_stack([np.zeros(n), last]).astype(float),
        column(first_size, 5.0),
        column(last_size, 5.0),
        np.broadcast_to(np.asarray(length, dtype=np.int64), n),
    )


def names(state: Identities) -> list[int]:
    return state.track.tolist()


def test_and_by_size_where_the_place_does_not_tell() -> None:
    sizes = [4.0, 6.0, 6.2, 6.0, 4.0]
    state = resolve(
        5,
        [Junction(2, (0, 1), (2,)), Junction(4, (2,), (3, 4))],
        ends(first=[10] * 5, first_size=sizes, last_size=sizes),
        10.0,
    )
    assert names(state) == [0, 1, 2, 1, 0]


def test_three_cells_in_one_region() -> None:
    #  0, 1 -> 3;  3, 2 -> 4;  4 -> 5, 6;  6 -> 7, 8
    where = [0, 10, 20, 5, 10, 0, 15, 10, 20]
    junctions = [
        Junction(2, (0, 1), (3,)),
        Junction(4, (2, 3), (4,)),
        Junction(6, (4,), (5, 6)),
        Junction(8, (6,), (7, 8)),
    ]
    state = resolve(9, junctions, ends(where), 10.0)
    assert names(state)[5] == 0
    assert names(state)[7:] == [1, 2]
    assert names(state)[6] == 6, "two of them together are a region of their own"
