"""Which chains are one cell, through splits and merges."""

import numpy as np

from annotations.annotation_cases import table_of
from bridgetrack.tracks.build import Junction, resolve_identities


def tracks_of_chains(places, junctions, sizes=78.0):
    """Track of every chain of one cell, which lie on a line, with their sizes."""
    cells = table_of([(t, 1, 0.0, x) for t, x in enumerate(places)], len(places))
    cells.table["area"] = sizes
    rows = np.arange(len(places))
    return resolve_identities(cells, rows, rows, junctions).track.tolist()


def test_and_by_size_where_the_place_does_not_tell():
    junctions = [Junction(2, (0, 1), (2,)), Junction(4, (2,), (3, 4))]
    assert tracks_of_chains([10.0] * 5, junctions, [55, 403, 490, 403, 55]) == [0, 1, 2, 1, 0]


def test_three_cells_in_one_region():
    #  0, 1 -> 3;  3, 2 -> 4;  4 -> 5, 6;  6 -> 7, 8
    where = [0.0, 10.0, 20.0, 5.0, 10.0, 0.0, 15.0, 10.0, 20.0]
    junctions = [
        Junction(2, (0, 1), (3,)),
        Junction(4, (2, 3), (4,)),
        Junction(6, (4,), (5, 6)),
        Junction(8, (6,), (7, 8)),
    ]
    found = tracks_of_chains(where, junctions)
    assert found[5] == 0
    assert found[7:] == [1, 2]
    assert found[6] == 6, "two of them together are a region of their own"
