"""Which columns and slots of a movie belong to annotated components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.scene import Scene

Index = NDArray[np.int64]

LARGEST = 1500
"""Slots above which a component is cut into frame pairs for training."""


@dataclass(frozen=True)
class Cut:
    """Columns and slots of the annotated components, ordered by sample.

    Parameters
    ----------
    columns, slots
        Their numbers in the movie, shapes (H,) and (S,).
    column_sample, slot_sample
        Sample of every one, both rising, shapes (H,) and (S,).
    annotation_sample
        Sample of every annotation, shape (A,).
    """

    columns: Index
    slots: Index
    column_sample: Index
    slot_sample: Index
    annotation_sample: Index


def cut_out(scene: Scene, incidence: sp.csr_matrix) -> Cut:
    """Find the annotated components.

    Parameters
    ----------
    scene
        A movie with annotations.
    incidence
        Columns x slots, without the columns that tie too large components together; see `untied`.
    """
    annotated = annotated_slots(scene)
    _, label = connected_components(incidence.T @ incidence, directed=False)
    wanted, annotation_sample = np.unique(label[annotated], return_inverse=True)
    sample_of = np.full(int(label.max()) + 1, -1, dtype=np.int64)
    sample_of[wanted] = np.arange(len(wanted))
    slot_sample = sample_of[label]
    column_sample = np.full(incidence.shape[0], -1, dtype=np.int64)
    covering = np.flatnonzero(np.diff(incidence.indptr))
    column_sample[covering] = slot_sample[incidence.indices[incidence.indptr[covering]]]
    columns, slots = _members(column_sample), _members(slot_sample)
    return Cut(
        columns,
        slots,
        column_sample[columns],
        slot_sample[slots],
        annotation_sample.astype(np.int64),
    )


def annotated_slots(scene: Scene) -> Index:
    """Number in the problem of every annotation's slot, shape (A,)."""
    return np.searchsorted(scene.slots, scene.constraints.slot).astype(np.int64)


def untied(scene: Scene, largest: int) -> sp.csr_matrix:
    """Columns x slots, without the columns that tie frame pairs of too large components."""
    incidence = scene.problem.incidence
    _, label = connected_components(incidence.T @ incidence, directed=False)
    huge = np.bincount(label)[label] > largest
    event = scene.hypotheses.event
    tying = np.flatnonzero((event == Event.SKIP) | (event == Event.FALSE))
    tying = tying[huge[incidence.indices[incidence.indptr[tying]]]]
    tying = np.setdiff1d(tying, scene.constraints.indices)
    keep = np.ones(incidence.shape[0])
    keep[tying] = 0.0
    cut = sp.csr_matrix(sp.diags(keep) @ incidence)
    cut.eliminate_zeros()
    return cut


def _members(sample: Index) -> Index:
    """Entries that belong to a sample, ordered by sample."""
    order = np.argsort(sample, kind="stable")
    return order[np.searchsorted(sample[order], 0) :].astype(np.int64)
