"""The part of a movie that its annotations speak of, collected quickly.

Collecting annotated components anew after every few answers must not take longer in a longer movie
or with more answers, so the components of the whole movie are found once, and what training needs
of each is cut out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.problem import components
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.training_set import Cut, TrainingSet, digest, join_sets, labelled

Index = NDArray[np.int64]

LARGEST = 1500
"""Slots above which a component is cut into frame pairs for training."""

_Key = tuple[tuple[int, ...], tuple[int, ...]]
"""Components of a sample, and annotated hypotheses that tie them together."""


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
    parts = [
        AnnotatedComponents(scene, largest).training_set(scene, number)
        for number, scene in enumerate(scenes)
        if len(scene.constraints)
    ]
    if not parts:
        raise InputError(
            "there is nothing to learn from: no annotation says which event holds; annotate some "
            "cells first (ten moves and every division you see are a good start)"
        )
    return join_sets(parts)


@dataclass(frozen=True)
class _Pieces:
    """Annotated components one after another."""

    keys: tuple[_Key, ...]
    cut: Cut
    names: tuple[bytes, ...]


class AnnotatedComponents:
    """Annotated components of one movie, each cut out when an annotation first names it.

    Parameters
    ----------
    scene
        The movie; its annotations do not matter.
    largest
        See `build_training_set`.

    Attributes
    ----------
    label
        Component of every slot of the problem, shape (S,).
    tying
        Hypotheses left out because they tie frame pairs of too large components, shape (H,).
    """

    def __init__(self, scene: Scene, largest: int = LARGEST) -> None:
        self._hypotheses = scene.hypotheses
        incidence = scene.problem.incidence
        _, label, _ = components(incidence)
        first = incidence.indices[incidence.indptr[:-1]]
        huge = np.bincount(label)[label[first]] > largest
        self.tying = huge & np.isin(scene.hypotheses.event, (Event.SKIP, Event.FALSE))
        if self.tying.any():
            _, label, _ = components(sp.csr_matrix(incidence[np.flatnonzero(~self.tying)]))
        self.label = label
        self._n = int(self.label.max(initial=-1)) + 1
        home = np.where(self.tying, -1, self.label[first])
        self._columns, self._slots = _by_value(home, self._n), _by_value(self.label, self._n)
        self._known: _Pieces | None = None

    def fit(self, scene: Scene) -> bool:
        """Whether a scene is the same movie with other annotations."""
        return scene.hypotheses is self._hypotheses

    def training_set(self, scene: Scene, number: int = 0) -> TrainingSet:
        """The annotated components of the movie with its annotations, of which there are some."""
        keys, annotation_sample = self._samples(scene)
        pieces = self._known
        if pieces is None or pieces.keys != keys:
            pieces = self._known = self._assembled(scene, keys)
        return labelled(scene, pieces.cut, annotation_sample, number, pieces.names)

    def _samples(self, scene: Scene) -> tuple[tuple[_Key, ...], Index]:
        """What every sample consists of, in the order of their slots, and annotations' samples."""
        tying = np.unique(scene.constraints.indices)
        tying = tying[self.tying[tying]]
        incidence = sp.csr_matrix(scene.problem.incidence[tying])
        group = _joined(self.label[incidence.indices], incidence.indptr, self._n)
        of_tying = group[self.label[incidence.indices[incidence.indptr[:-1]]]]
        slot = np.searchsorted(scene.slots, scene.constraints.slot)
        wanted, sample = np.unique(group[self.label[slot]], return_inverse=True)
        members = _by_value(group, self._n)
        keys = [
            (tuple(_take(members, [g]).tolist()), tuple(tying[of_tying == g].tolist()))
            for g in wanted.tolist()
        ]
        return tuple(keys), sample.astype(np.int64)

    def _assembled(self, scene: Scene, keys: tuple[_Key, ...]) -> _Pieces:
        """The pieces of these keys; only what was not known before is cut out of the movie."""
        known = self._known
        if known is None:
            return self._cut_out(scene, keys)
        have = set(known.keys)
        new = [key for key in keys if key not in have]
        every = _beside(known, self._cut_out(scene, new)) if new else known
        return _picked(every, keys)

    def _cut_out(self, scene: Scene, keys: Sequence[_Key]) -> _Pieces:
        columns = [
            np.sort(np.concatenate([_take(self._columns, labels), np.array(more, dtype=np.int64)]))
            for labels, more in keys
        ]
        slots = [_take(self._slots, labels) for labels, _ in keys]
        numbers = np.arange(len(keys))
        all_columns, all_slots = np.concatenate(columns), np.concatenate(slots)
        cut = Cut(
            all_columns,
            all_slots,
            np.repeat(numbers, [len(c) for c in columns]),
            np.repeat(numbers, [len(s) for s in slots]),
            _rows(scene.matrix, all_columns).sparse(),
            sp.csr_matrix(scene.problem.incidence[all_columns][:, all_slots]),
        )
        return _Pieces(tuple(keys), cut, _names(cut, len(keys)))


def _names(cut: Cut, n: int) -> tuple[bytes, ...]:
    columns = np.searchsorted(cut.column_sample, np.arange(n + 1))
    slots = np.searchsorted(cut.slot_sample, np.arange(n + 1))
    return tuple(
        digest(cut.phi[a:b], cut.incidence[a:b, c:d])
        for a, b, c, d in zip(columns[:-1], columns[1:], slots[:-1], slots[1:], strict=True)
    )


def _beside(one: _Pieces, other: _Pieces) -> _Pieces:
    """Pieces of one and then those of another."""
    a, b, n = one.cut, other.cut, len(one.keys)
    cut = Cut(
        np.concatenate([a.columns, b.columns]),
        np.concatenate([a.slots, b.slots]),
        np.concatenate([a.column_sample, b.column_sample + n]),
        np.concatenate([a.slot_sample, b.slot_sample + n]),
        sp.csr_matrix(sp.vstack([a.phi, b.phi])),
        sp.csr_matrix(sp.block_diag([a.incidence, b.incidence])),
    )
    return _Pieces((*one.keys, *other.keys), cut, (*one.names, *other.names))


def _picked(pieces: _Pieces, keys: tuple[_Key, ...]) -> _Pieces:
    """Some of the pieces, in another order."""
    place = {key: k for k, key in enumerate(pieces.keys)}
    rows = [place[key] for key in keys]
    cut, n = pieces.cut, len(pieces.keys)
    columns, slots = _by_value(cut.column_sample, n), _by_value(cut.slot_sample, n)
    column = np.concatenate([_take(columns, [k]) for k in rows])
    slot = np.concatenate([_take(slots, [k]) for k in rows])
    numbers = np.arange(len(rows))
    chosen = Cut(
        cut.columns[column],
        cut.slots[slot],
        np.repeat(numbers, np.bincount(cut.column_sample, minlength=n)[rows]),
        np.repeat(numbers, np.bincount(cut.slot_sample, minlength=n)[rows]),
        sp.csr_matrix(cut.phi[column]),
        sp.csr_matrix(cut.incidence[column][:, slot]),
    )
    return _Pieces(keys, chosen, tuple(pieces.names[k] for k in rows))


def _joined(labels: Index, indptr: Index, n: int) -> Index:
    """Group of each of n components, where hypotheses tie some together, shape (n,).

    Groups are numbered in the order of their first component.
    """
    first = np.repeat(labels[indptr[:-1]], np.diff(indptr))
    edges = sp.coo_matrix((np.ones(len(labels)), (first, labels)), shape=(n, n))
    _, group = connected_components(edges, directed=False)
    return np.asarray(group, dtype=np.int64)


def _by_value(values: Index, n: int) -> tuple[Index, Index]:
    """Places of each value 0..n-1, one after another, and where each begins, shape (n + 1,)."""
    order = np.argsort(values, kind="stable")
    return order, np.searchsorted(values[order], np.arange(n + 1))


def _take(sorted_places: tuple[Index, Index], wanted: Sequence[int]) -> Index:
    order, begin = sorted_places
    found = [order[begin[k] : begin[k + 1]] for k in wanted]
    return np.sort(np.concatenate(found)).astype(np.int64)


def _rows(matrix: FeatureMatrix, columns: Index) -> FeatureMatrix:
    """Some rows of a feature matrix, renumbered."""
    place = np.full(matrix.n_hypotheses, -1, dtype=np.int64)
    place[columns] = np.arange(len(columns))
    rows, blocks = [], []
    for mine, block in zip(matrix.rows, matrix.blocks, strict=True):
        keep = place[mine] >= 0
        rows.append(place[mine[keep]])
        blocks.append(block[keep])
    return FeatureMatrix(matrix.features, tuple(rows), tuple(blocks), len(columns))
