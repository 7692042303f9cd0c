"""The annotated part of a movie, as arrays a learner's model can use.

A *sample* is a connected component of the slot-hypothesis graph that holds at least one
annotation; in components without any, the loss is zero for every w.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import RANDOM, UNIFORM
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.problem import components
from bridgetrack.learning import Sample
from bridgetrack.pipeline.scene import Scene

LARGEST = 1500
"""Slots above which a component is cut into frame pairs for training."""

BALANCE = 0.75
"""How far annotated kinds of events are weighted by how often they occur: 0 not at all, 1 fully."""

_STEPS = 4
"""Steps to an octave of the importance of samples."""


@dataclass(frozen=True)
class TrainingSet:
    """Columns, slots and annotations of all samples."""

    phi: sp.csr_matrix  # features of the columns, shape (H, d)
    incidence: sp.csr_matrix  # columns x slots, shape (H, S)
    # sample of every column and slot, both rising, shapes (H,) and (S,)
    column_sample: Index
    slot_sample: Index
    sets: sp.csr_matrix  # annotations x columns, 1 where a column is in S_a, shape (A, H)
    annotation_sample: Index  # sample of every annotation, shape (A,)
    allowed: Mask  # columns that some compatible output may choose, shape (H,)
    pair: Index  # earlier frame of the frame pair of every annotation's slot, shape (A,)
    # the `Event` that an annotation confirms, -1 where it leaves several, as a rejection does,
    # shape (A,)
    event: NDArray[np.int8]
    # how often each annotation's event could be drawn at random: once where events were drawn, by
    # any of its slots where slots were; 0 where a person chose it. Shape (A,)
    drawn: Index
    # factor of every sample's joint features and task loss, shape (n,); see `balanced`
    importance: Array
    # names of every sample by its features, its slots and what its annotations allow; see `named`
    names: tuple[bytes, ...] = ()
    # how often each kind of event occurs, by which the samples are weighted; None if they are not,
    # see `balanced`
    population: Array | None = None

    @cached_property
    def samples(self) -> tuple[Sample, ...]:
        """The samples as the learners see them, each with the numbers of its annotations.

        A later training knows by their keys what did not change.
        """
        order = np.argsort(self.annotation_sample, kind="stable")
        numbers = np.arange(len(self.names) + 1)
        begin = np.searchsorted(self.annotation_sample[order], numbers)
        return tuple(
            Sample(k, tuple(order[begin[k] : begin[k + 1]].tolist()), (name, float(factor)))
            for k, (name, factor) in enumerate(zip(self.names, self.importance, strict=True))
        )

    @property
    def single(self) -> Mask:
        """Whether an annotation confirms one event, shape (A,)."""
        return self.event >= 0

    @property
    def n_annotations(self) -> int:
        """Number of annotations that constrain something."""
        return int(self.sets.shape[0])

    @property
    def cut(self) -> Index:
        """Where the columns of every sample begin, and the end, shape (n + 1,)."""
        return np.searchsorted(self.column_sample, np.arange(len(self.importance) + 1))

    @property
    def slot_cut(self) -> Index:
        """Where the slots of every sample begin, and the end, shape (n + 1,)."""
        return np.searchsorted(self.slot_sample, np.arange(len(self.importance) + 1))


def build_training_set(scene: Scene, largest: int = LARGEST) -> TrainingSet:
    """Collect the annotated components of a movie, in the order of their slots.

    Parameters
    ----------
    scene
        A movie with its annotations.
    largest
        Components with more slots are cut into frame pairs by leaving out the skips and false
        detections that tie them together, save those that annotations name: the components that
        these join are one sample. Tracking itself always uses all of them.

    Raises
    ------
    InputError
        If no annotation constrains anything.
    """
    incidence, constraints = scene.problem.incidence, scene.constraints
    if not len(constraints):
        raise InputError(
            "there is nothing to learn from: no annotation says which event is right; annotate "
            "some cells first (ten moves and every division you see are a good start)"
        )
    _, label, home = components(incidence)
    huge = np.bincount(label)[home] > largest
    tying = huge & np.isin(scene.hypotheses.event, (Event.SKIP, Event.FALSE))
    tying[constraints.sets.indices] = False
    if tying.any():
        _, label, _ = components(sp.csr_matrix(incidence[np.flatnonzero(~tying)]))
    slot = np.searchsorted(scene.slots, constraints.slot)
    wanted, annotation_sample = np.unique(label[slot], return_inverse=True)
    sample = np.full(int(label.max()) + 1, -1, dtype=np.int64)
    sample[wanted] = np.arange(len(wanted))
    of_slot = sample[label]
    of_column = np.where(tying, -1, of_slot[incidence.indices[incidence.indptr[:-1]]])
    columns, slots = _inside(of_column), _inside(of_slot)
    owner = annotation_sample.astype(np.int64)
    return labelled(scene, columns, of_column[columns], slots, of_slot[slots], owner)


def _inside(sample: Index) -> Index:
    """Indices that belong to some sample, ordered by sample."""
    order = np.argsort(sample, kind="stable")
    return order[np.searchsorted(sample[order], 0) :]


def labelled(
    scene: Scene,
    columns: Index,
    column_sample: Index,
    slots: Index,
    slot_sample: Index,
    annotation_sample: Index,
) -> TrainingSet:
    """Some parts of a movie, each a sample, with their annotations.

    Parameters
    ----------
    scene
        A movie with annotations.
    columns, slots
        Those of the parts, by their numbers in the movie and ordered by sample, shapes (H,), (S,).
    column_sample, slot_sample, annotation_sample
        Sample of every column, slot and annotation, shapes (H,), (S,) and (A,).
    """
    constraints, sets = scene.constraints, scene.constraints.sets
    single = np.flatnonzero(np.diff(sets.indptr) == 1)
    event = np.full(len(constraints), -1, dtype=np.int8)
    said = sets.indices[sets.indptr[single]]
    event[single] = scene.hypotheses.event[said]
    source = np.asarray([scene.anchored.listed[k].source for k in constraints.annotation])
    drawn = np.isin(source, (RANDOM, UNIFORM)).astype(np.int64)
    width = np.diff(scene.problem.incidence.indptr)[said]
    drawn[single] = np.where(source[single] == RANDOM, width, drawn[single])
    n_cells = len(scene.detections)
    frame = scene.detections.frame[constraints.slot % n_cells]
    part = TrainingSet(
        phi=scene.matrix.sparse(columns),
        incidence=sp.csr_matrix(scene.problem.incidence[columns][:, slots]),
        column_sample=column_sample,
        slot_sample=slot_sample,
        sets=sp.csr_matrix(sets[:, columns]),
        annotation_sample=annotation_sample,
        allowed=constraints.allowed[columns],
        pair=np.asarray(frame - (constraints.slot >= n_cells), dtype=np.int64),
        event=event,
        drawn=drawn,
        importance=np.ones(int(annotation_sample.max()) + 1),
    )
    return named(part)


def named(part: TrainingSet) -> TrainingSet:
    """Name the samples by content."""
    columns, slots, names = part.cut, part.slot_cut, []
    for k in range(len(part.importance)):
        mine = slice(columns[k], columns[k + 1])
        incidence = part.incidence[mine, slots[k] : slots[k + 1]]
        sets = part.sets[np.flatnonzero(part.annotation_sample == k)][:, mine]
        names.append(_digest(part.phi[mine], incidence, sets))
    return replace(part, names=tuple(names))


def _digest(*matrices: sp.csr_matrix) -> bytes:
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


def balanced(data: TrainingSet, population: Array, rows: Index | None = None) -> TrainingSet:
    """Weigh down samples whose kinds of events were annotated more often than they occur.

    People seek out divisions and other rare events. An answer of kind e was asked for
    ``share of e among the annotations / share of e in the movie`` times as often as it occurs; an
    answer that leaves several events is not counted. With r the mean of this ratio over the answers
    of a sample, the sample has the factor ``r ** -BALANCE``, scaled to mean 1 over these answers,
    so that a rare event weighs little beside common ones, too. Factors are rounded to a quarter of
    an octave so that some more annotations leave most of them, and what training has cached, as
    they were. ``population`` is how often each kind of event occurs in the movie, shape
    (len(Event),). ``rows`` are the samples whose annotations are known (all if None); others stay
    as they are, those without such answers have the factor 1.
    """
    owner, n = data.annotation_sample, len(data.importance)
    rows = np.arange(n) if rows is None else rows
    counted = data.single & np.isin(owner, rows)
    known, factor = data.event[counted], np.ones(n)
    if len(known):
        annotated = np.bincount(known, minlength=len(population)) / len(known)
        ratio = annotated * (population + 1.0).sum() / (population + 1.0)
        answers = np.bincount(owner[counted], minlength=n)
        asked = np.bincount(owner[counted], ratio[known], minlength=n)
        some = answers > 0
        factor[some] = (answers[some] / asked[some]) ** BALANCE
        factor[some] /= np.average(factor[some], weights=answers[some])
    importance = data.importance.copy()
    importance[rows] = np.exp2(np.rint(_STEPS * np.log2(factor[rows])) / _STEPS)
    return replace(data, importance=importance, population=population)
