"""The annotated part of one or more movies, as arrays a learner's model can use.

A *sample* is a connected component of the slot-hypothesis graph that holds at least one
annotation; in components without any, the loss is zero for every w.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.learning.model import Sample
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.cut import LARGEST, Cut, cut_out, untied
from bridgetrack.training.naming import digest

Array = NDArray[np.float64]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class TrainingSet:
    """Columns, slots and annotations of all samples.

    Parameters
    ----------
    phi
        Features of the columns, shape (H, d).
    incidence
        Columns x slots, shape (H, S).
    column_sample, slot_sample
        Sample of every column and slot, both rising, shapes (H,) and (S,).
    sets
        Annotations x columns, 1 where a column is in S_a, shape (A, H).
    annotation_sample
        Sample of every annotation, shape (A,).
    allowed
        Columns that some compatible output may choose, shape (H,).
    pair
        Earlier frame of the frame pair of every annotation's slot, shape (A,).
    event
        Event of every annotation's first allowed column, shape (A,), values of `Event`.
    single
        Whether an annotation confirms one event, shape (A,).
    scene
        Movie of every annotation, shape (A,).
    unbiased
        Whether an annotation was drawn at random, shape (A,).
    importance
        Factor of every sample's joint features and task loss, shape (n,); see
        `balance.balanced`.
    samples
        The samples as the learners see them; ``x`` is the number of the sample and ``y_star``
        the numbers of its annotations.
    names
        A name for every sample's features and slots, by content; empty where none was given.
    sure
        Columns that are held as if they were confirmed, shape (H,), see `sure.hold_sure`; None
        where there are none.
    """

    phi: sp.csr_matrix
    incidence: sp.csr_matrix
    column_sample: Index
    slot_sample: Index
    sets: sp.csr_matrix
    annotation_sample: Index
    allowed: NDArray[np.bool_]
    pair: Index
    event: NDArray[np.int8]
    single: NDArray[np.bool_]
    scene: Index
    unbiased: NDArray[np.bool_]
    importance: Array
    samples: tuple[Sample, ...]
    names: tuple[bytes, ...] = ()
    sure: NDArray[np.bool_] | None = None

    @property
    def n_annotations(self) -> int:
        """Number of annotations that constrain something."""
        return int(self.sets.shape[0])


def build_training_set(scenes: Sequence[Scene], largest: int = LARGEST) -> TrainingSet:
    """Collect the annotated components of some movies.

    Parameters
    ----------
    scenes
        Movies with their annotations.
    largest
        Components with more slots are cut into frame pairs by leaving out the skips and false
        detections that tie them together, save those that annotations name. Tracking itself
        always uses all of them.

    Raises
    ------
    InputError
        Where no annotation constrains anything.
    """
    found = (_part(scene, number, largest) for number, scene in enumerate(scenes))
    parts = [part for part in found if part is not None]
    if not parts:
        raise InputError(
            "there is nothing to learn from: no annotation says which event holds; annotate some "
            "cells first (ten moves and every division you see are a good start)"
        )
    return named(parts[0]) if len(parts) == 1 else join_sets(parts)


def _part(scene: Scene, number: int, largest: int) -> TrainingSet | None:
    """Annotated components of one movie."""
    if not len(scene.constraints):
        return None
    incidence = untied(scene, largest)
    cut = cut_out(scene, incidence)
    phi = sp.csr_matrix(scene.matrix.sparse()[cut.columns])
    return labelled(scene, cut, phi, sp.csr_matrix(incidence[cut.columns][:, cut.slots]), number)


def labelled(
    scene: Scene, cut: Cut, phi: sp.csr_matrix, incidence: sp.csr_matrix, number: int = 0
) -> TrainingSet:
    """Tie the annotations of a movie to the columns of its annotated components.

    Parameters
    ----------
    scene
        A movie with annotations.
    cut
        Its annotated components.
    phi, incidence
        Features and slots of the columns of the cut, shapes (H, d) and (H, S).
    number
        Number of the movie.

    Returns
    -------
    TrainingSet
        Without samples; see `named`.
    """
    constraints = scene.constraints
    place = np.full(len(scene.hypotheses), -1, dtype=np.int64)
    place[cut.columns] = np.arange(len(cut.columns))
    counts = np.diff(constraints.indptr)
    sets = sp.csr_matrix(
        (np.ones(len(constraints.indices)), (constraints.row, place[constraints.indices])),
        shape=(len(constraints), len(cut.columns)),
    )
    allowed = np.ones(len(cut.columns), dtype=bool)
    left_out = place[constraints.left_out]
    allowed[left_out[left_out >= 0]] = False
    first = constraints.indices[np.minimum(constraints.indptr[:-1], len(constraints.indices) - 1)]
    source = [scene.anchored.listed[k].source for k in constraints.annotation]
    return TrainingSet(
        phi=phi,
        incidence=incidence,
        column_sample=cut.column_sample,
        slot_sample=cut.slot_sample,
        sets=sets,
        annotation_sample=cut.annotation_sample,
        allowed=allowed,
        pair=_frame_pair(scene, constraints.slot),
        event=scene.hypotheses.event[first],
        single=counts == 1,
        scene=np.full(len(constraints), number, dtype=np.int64),
        unbiased=np.asarray([s in ("random", "import") for s in source], dtype=bool),
        importance=np.ones(int(cut.annotation_sample.max()) + 1),
        samples=(),
    )


def _frame_pair(scene: Scene, slot: Index) -> Index:
    """Earlier frame of the pair that a fate or a history belongs to."""
    n = scene.hypotheses.n_detections
    return np.asarray(scene.detections.frame[slot % n] - (slot >= n), dtype=np.int64)


def join_sets(parts: Sequence[TrainingSet]) -> TrainingSet:
    """Put the samples of several movies side by side."""
    shifts = np.cumsum([0] + [int(p.annotation_sample.max()) + 1 for p in parts])

    def shifted(name: str) -> Index:
        values = [getattr(p, name) + s for p, s in zip(parts, shifts, strict=False)]
        return np.concatenate(values)

    def joined(name: str) -> NDArray[np.bool_]:
        return np.concatenate([getattr(p, name) for p in parts])

    whole = TrainingSet(
        phi=sp.csr_matrix(sp.vstack([p.phi for p in parts])),
        incidence=sp.csr_matrix(sp.block_diag([p.incidence for p in parts])),
        column_sample=shifted("column_sample"),
        slot_sample=shifted("slot_sample"),
        sets=sp.csr_matrix(sp.block_diag([p.sets for p in parts])),
        annotation_sample=shifted("annotation_sample"),
        allowed=joined("allowed"),
        pair=np.concatenate([p.pair for p in parts]),
        event=np.concatenate([p.event for p in parts]),
        single=joined("single"),
        scene=np.concatenate([p.scene for p in parts]),
        unbiased=joined("unbiased"),
        importance=np.concatenate([p.importance for p in parts]),
        samples=(),
    )
    return named(whole)


def named(part: TrainingSet, names: Sequence[bytes] | None = None) -> TrainingSet:
    """Name the samples so that a later training recognises what did not change.

    Parameters
    ----------
    part
        A training set.
    names
        The `naming.digest` of every sample's features and slots, where it is known.
    """
    n = int(part.annotation_sample.max()) + 1
    columns = np.searchsorted(part.column_sample, np.arange(n + 1))
    if names is None:
        slots = np.searchsorted(part.slot_sample, np.arange(n + 1))
        names = [
            digest(
                part.phi[columns[k] : columns[k + 1]],
                part.incidence[columns[k] : columns[k + 1], slots[k] : slots[k + 1]],
            )
            for k in range(n)
        ]
    order = np.argsort(part.annotation_sample, kind="stable")
    cut = np.searchsorted(part.annotation_sample[order], np.arange(n + 1))
    samples = []
    seen: Counter[bytes] = Counter()
    for k, name in enumerate(names):
        seen[name] += 1
        rows = order[cut[k] : cut[k + 1]]
        sets = part.sets[rows][:, columns[k] : columns[k + 1]]
        samples.append(Sample(k, tuple(rows.tolist()), (name, seen[name]), digest(sets)))
    return replace(part, samples=tuple(samples), names=tuple(names))
