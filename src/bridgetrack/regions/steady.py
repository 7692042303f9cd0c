"""How steady a way to see a movie is: whether its cells are found again in the next frame."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bridgetrack.regions.regions import Regions


def found_again(blocks: Sequence[Sequence[Regions]], source: str) -> float:
    """Share of the cells of a source that one of the next frame covers by an IoU above one half.

    Parameters
    ----------
    blocks
        Candidates of successive frames, at some places of a movie.
    source
        Whose cells are looked for.

    Returns
    -------
    float
        0 where the source shows nothing, or no frames follow each other.
    """
    again = cells = 0
    for block in blocks:
        shown = [_of_source(regions, source) for regions in block if len(regions)]
        for here, there in zip(shown[:-1], shown[1:], strict=True):
            cells += len(here)
            if len(here) and len(there):
                again += _covered(here, there)
    return again / max(cells, 1)


def _of_source(regions: Regions, source: str) -> Regions:
    if source not in regions.sources:
        return regions.select(np.zeros(len(regions), dtype=bool))
    return regions.select(regions.votes[:, regions.sources.index(source)] > 0)


def _covered(here: Regions, there: Regions) -> int:
    """How many cells of a frame one of the next covers."""
    shared = (here.membership(int(here.frame[0])) @ there.membership(int(there.frame[0])).T).tocoo()
    union = here.area[shared.row] + there.area[shared.col] - shared.data
    return len(np.unique(shared.row[2 * shared.data > union]))
