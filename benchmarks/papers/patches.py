"""Cutting a movie into local patches, the samples of Algorithm 1.2 (000, section 1.5.3).

A patch is a part of a pair of frames: fates of the cells of the first and histories of the cells
of the second. Events that reach from one patch into another are cut away, which violates the
structure.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.training_set import TrainingSet, labelled


def local_patches(scene: Scene, cells: float = 8.0, shift: float = 0.0) -> Index:
    """Patch of every slot, (S,): every pair of frames in boxes that hold about as many cells each.

    Frames are halved at the median of the longer side of the cells' bounding box, again and again,
    until a box holds at most 4/3 of the wanted number: where cells are dense, patches are small.
    ``shift`` moves the cuts from the median, as a quantile: other cuts for another repetition.
    """
    if cells < 1 or not -0.3 <= shift <= 0.3:
        raise InputError("a patch needs a cell or more, and a shift between -0.3 and 0.3")
    n = len(scene.detections)
    row = scene.slots % n
    pair = scene.detections.frame[row] - (scene.slots >= n)
    place = scene.detections.position[row]
    out = np.full(len(row), -1, dtype=np.int64)
    count = 0
    for t in np.unique(pair):
        todo = [np.flatnonzero(pair == t)]
        while todo:
            slots = todo.pop()
            low = _lower_part(place[slots], 0.5 + shift)
            if len(slots) / 2.0 <= cells * 4 / 3 or low.all() or not low.any():
                out[slots] = count
                count += 1
            else:
                todo += [slots[low], slots[~low]]
    return out


def _lower_part(place: Array, quantile: float) -> NDArray[np.bool_]:
    """Which places lie on the lower side of a cut across the longer side of their box."""
    axis = int(np.argmax(np.ptp(place, axis=0)))
    return np.asarray(place[:, axis] <= np.quantile(place[:, axis], quantile))


def build_pool(scene: Scene, patch: Index) -> TrainingSet:
    """The annotated patches of a movie as samples, given the patch of every slot, shape (S,).

    An annotation belongs to a patch where all that it allows lies in the patch; slots of events
    that reach out of it stay without a label. For an experiment all true events are annotations.
    """
    incidence, constraints = scene.problem.incidence, scene.constraints
    home = _home(incidence, patch)
    slot = np.searchsorted(scene.slots, constraints.slot)
    row, column = constraints.sets.nonzero()
    inside = np.ones(len(constraints), dtype=bool)
    inside[row[home[column] != patch[slot[row]]]] = False
    kept = np.flatnonzero(inside)
    if not len(kept):
        raise InputError("no patch holds an annotated event; make patches larger")
    wanted, annotation_sample = np.unique(patch[slot[kept]], return_inverse=True)
    number = np.full(int(patch.max()) + 2, -1, dtype=np.int64)
    number[wanted] = np.arange(len(wanted))
    columns, slots = _members(number[home]), _members(number[patch])
    mine = number[home[columns]], slots, number[patch[slots]]
    labels = replace(scene, constraints=constraints.take(kept))
    return labelled(labels, columns, *mine, annotation_sample.astype(np.int64))


def _home(incidence: sp.csr_matrix, patch: Index) -> Index:
    """Patch that holds all slots of a column, -1 where it reaches over several, shape (H,)."""
    width = np.diff(incidence.indptr)
    first = patch[incidence.indices[incidence.indptr[:-1]]]
    row = np.repeat(np.arange(len(width)), width)
    home = first.copy()
    home[row[patch[incidence.indices] != first[row]]] = -1
    return home


def _members(sample: Index) -> Index:
    """Entries that belong to a sample, ordered by sample."""
    order = np.argsort(sample, kind="stable")
    return order[np.searchsorted(sample[order], 0) :].astype(np.int64)
