"""Which candidate regions exist, decided frame by frame."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.regions.regions import Regions, exclusions

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def choose_by_frame(regions: Regions, scores: Array) -> Mask:
    """The regions with the largest total score of which no two share a pixel.

    Parameters
    ----------
    regions
        Candidates.
    scores
        What each adds when it is chosen, shape (R,); those below 0 are never chosen.

    Returns
    -------
    numpy.ndarray
        Which are chosen, shape (R,).
    """
    atoms = exclusions(regions).T.tocsr()
    contested = np.diff(atoms.indptr) > 0
    chosen = ~contested & (scores > 0)
    columns = np.flatnonzero(contested & (scores > 0))
    if len(columns):
        incidence = atoms[columns].astype(np.float64)
        problem = Problem(incidence, np.ones(incidence.shape[1], dtype=bool))
        chosen[columns] = solve(problem, scores[columns]).chosen
    return chosen
