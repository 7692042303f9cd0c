"""Names of samples by their content, so that a later training recognises what did not change.

Which columns and slots of a movie belong to annotated components.

The annotated part of one or more movies, as arrays a learner's model can use.

A *sample* is a connected component of the slot-hypothesis graph that holds at least one
annotation; in components without any, the loss is zero for every w.

How much kinds of events count that were annotated more often than they occur.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.learning.model import Sample
from bridgetrack.pipeline.scene import Scene

Index = NDArray[np.int64]
Array = NDArray[np.float64]


def digest(*matrices: sp.csr_matrix) -> bytes:
    """A name for the content of sparse matrices."""
    state = hashlib.blake2b(digest_size=16)
    for given in matrices:
        matrix = sp.csr_matrix(given, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        state.update(np.asarray(matrix.shape, dtype=np.int64).tobytes())
        for values in (matrix.indptr, matrix.indices):
            state.update(np.ascontiguousarray(values, dtype=np.int64).tobytes())
        state.update(np.ascontiguousarray(matrix.data, dtype=np.float64).tobytes())
    return state.digest()


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
    n = len(scene.detections)
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


_STEPS = 4


def balanced(data: TrainingSet, population: Array, balance: float) -> TrainingSet:
    """Count kinds of events less that were annotated more often than they occur.

    People seek out divisions and other rare events. Every annotation of kind e gets the factor
    ``(share of e in the movie / share of e among the annotations) ** balance``, scaled to mean
    1; a sample has the mean of its annotations, rounded to a quarter of an octave so that some
    more annotations leave most factors, and what training has cached, as they were.

    Parameters
    ----------
    data
        The annotated components.
    population
        How often each kind of event occurs in the movies, shape (len(Event),).
    balance
        0 counts annotations as they are, 1 makes them stand for the movie.
    """
    annotated = np.bincount(data.event, minlength=len(population)).astype(np.float64)
    expected = (population + 1.0) / (population + 1.0).sum()
    factor = (expected / np.maximum(annotated / annotated.sum(), 1e-12)) ** balance
    each = factor[data.event]
    each = each / each.mean()
    count = np.bincount(data.annotation_sample, minlength=len(data.samples))
    mean = np.bincount(data.annotation_sample, each, minlength=len(data.samples)) / count
    mean = np.exp2(np.rint(_STEPS * np.log2(mean)) / _STEPS)
    samples = tuple(
        Sample(s.x, s.y_star, (s.key, float(c)), s.version)
        for s, c in zip(data.samples, mean, strict=True)
    )
    return replace(data, importance=mean, samples=samples)
