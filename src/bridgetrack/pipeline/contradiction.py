"""Annotations that only together leave no choice of events."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.words import describe
from bridgetrack.errors import ContradictionError, InfeasibleError
from bridgetrack.inference.solve import solve
from bridgetrack.pipeline.scene import Scene

Index = NDArray[np.int64]


def explain_contradiction(scene: Scene) -> ContradictionError:
    """The error for a movie whose annotations leave no choice of events.

    Annotations that exclude each other at a cell are found without a solver when they are
    compiled. What is left are circles, such as two cells that may not appear and have only one
    cell to come from.

    Parameters
    ----------
    scene
        A prepared movie, whose problem has no solution under its constraints.

    Returns
    -------
    ContradictionError
        Naming annotations none of which can be left out of the contradiction.
    """
    rows = _culprits(scene)
    annotations = [scene.anchored.listed[a] for a in scene.constraints.annotation[rows].tolist()]
    named = "; ".join(f"{describe(a)} ({a.id})" for a in annotations)
    return ContradictionError(
        f"annotations contradict each other: these cannot all be true: {named}. "
        "Remove or change one of them"
    )


def _culprits(scene: Scene) -> Index:
    """A smallest set of constraints that leaves no choice: none of them can be spared.

    The last row of the shortest run of rows that leaves no choice belongs to it; the search
    goes on before that row, with it taken as given.
    """
    core: list[int] = []
    rest = np.arange(len(scene.constraints))
    while _possible(scene, np.asarray(core, dtype=np.int64)):
        low, high = 0, len(rest)
        while low + 1 < high:
            middle = (low + high) // 2
            if _possible(scene, np.append(rest[:middle], core).astype(np.int64)):
                low = middle
            else:
                high = middle
        core.append(int(rest[high - 1]))
        rest = rest[: high - 1]
    return np.sort(np.asarray(core, dtype=np.int64))


def _possible(scene: Scene, rows: Index) -> bool:
    allowed = np.ones(len(scene.hypotheses), dtype=bool)
    allowed[scene.constraints.take(rows).left_out] = False
    try:
        solve(scene.problem, np.zeros(len(scene.hypotheses)), allowed)
    except InfeasibleError:
        return False
    return True
