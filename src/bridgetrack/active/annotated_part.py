"""The part of a movie that its annotations speak of, cut out quickly.

Collecting annotated components anew after every few answers must not take longer in a longer movie,
so the components of the whole movie are found once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.annotations.constraints import Constraints
from bridgetrack.features.matrix import FeatureMatrix
from bridgetrack.hypotheses.events import Event
from bridgetrack.hypotheses.hypotheses import Hypotheses
from bridgetrack.inference.problem import Problem
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.training_set import LARGEST

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Components:
    """Connected components of a movie, without what ties too large ones together.

    Parameters
    ----------
    hypotheses
        The hypotheses that they belong to.
    label
        Component of every slot of the problem, shape (S,).
    tying
        Hypotheses left out because they tie frame pairs of too large components, shape (H,).
    """

    hypotheses: Hypotheses
    label: Index
    tying: Mask

    @classmethod
    def of(cls, scene: Scene) -> Components:
        """Find the components, as `training.training_set` does for a movie without answers."""
        incidence = scene.problem.incidence
        _, label = connected_components(incidence.T @ incidence, directed=False)
        first = incidence.indices[incidence.indptr[:-1]]
        huge = np.bincount(label)[label[first]] > LARGEST
        tying = huge & np.isin(scene.hypotheses.event, (Event.SKIP, Event.FALSE))
        if tying.any():
            part = sp.csr_matrix(incidence[np.flatnonzero(~tying)])
            _, label = connected_components(part.T @ part, directed=False)
        return cls(scene.hypotheses, label.astype(np.int64), tying)

    def annotated(self, scene: Scene) -> Scene:
        """The movie cut down to the components that its annotations name.

        Building a training set from it gives the samples that the whole movie would give.
        """
        constraints, incidence = scene.constraints, scene.problem.incidence
        named = np.zeros(len(scene.hypotheses), dtype=bool)
        named[constraints.indices] = True
        slots = np.concatenate(
            [incidence[named].indices, np.searchsorted(scene.slots, constraints.slot)]
        )
        wanted = np.zeros(int(self.label.max(initial=-1)) + 1, dtype=bool)
        wanted[self.label[slots]] = True
        slot_kept = wanted[self.label]
        reached = incidence @ slot_kept.astype(np.float64)
        columns = np.flatnonzero((reached == scene.problem.width) & (~self.tying | named))
        kept = np.flatnonzero(slot_kept)
        place = np.full(len(named), -1, dtype=np.int64)
        place[columns] = np.arange(len(columns))
        h = scene.hypotheses
        return replace(
            scene,
            hypotheses=replace(
                h, event=h.event[columns], sources=h.sources[columns], targets=h.targets[columns]
            ),
            matrix=_rows(scene.matrix, columns, place),
            problem=Problem(sp.csr_matrix(incidence[columns][:, kept])),
            slots=scene.slots[kept],
            constraints=_renumbered(constraints, place),
        )


def _rows(matrix: FeatureMatrix, columns: Index, place: Index) -> FeatureMatrix:
    """Some rows of a feature matrix, renumbered."""
    rows, blocks = [], []
    for mine, block in zip(matrix.rows, matrix.blocks, strict=True):
        keep = place[mine] >= 0
        rows.append(place[mine[keep]])
        blocks.append(block[keep])
    return FeatureMatrix(matrix.features, tuple(rows), tuple(blocks), len(columns))


def _renumbered(constraints: Constraints, place: Index) -> Constraints:
    """Constraints on renumbered hypotheses; those left out that are gone are forgotten."""
    left = place[constraints.left_out]
    row = np.repeat(np.arange(len(constraints)), np.diff(constraints.left_out_indptr))
    counts = np.bincount(row[left >= 0], minlength=len(constraints))
    return replace(
        constraints,
        indices=place[constraints.indices],
        left_out_indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        left_out=left[left >= 0],
    )
