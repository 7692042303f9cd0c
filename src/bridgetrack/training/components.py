"""The part of a movie that its annotations speak of, collected quickly.

Collecting annotated components anew after every few answers must not take longer in a longer movie
or with more answers, so the components of the whole movie are found once, and what training needs
of each is cut out once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.training_set import (
    LARGEST,
    Cut,
    TrainingSet,
    annotated_slots,
    digest,
    labelled,
    named,
)

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
    home
        Component of every hypothesis, -1 for those left out, shape (H,).
    tying
        Hypotheses left out because they tie frame pairs of too large components, shape (H,).
    """

    hypotheses: Events
    label: Index
    home: Index
    tying: Mask

    @classmethod
    def of(cls, scene: Scene) -> Components:
        """Find the components, as `training.cut` does for a movie without answers."""
        incidence = scene.problem.incidence
        _, label = connected_components(incidence.T @ incidence, directed=False)
        first = incidence.indices[incidence.indptr[:-1]]
        huge = np.bincount(label)[label[first]] > LARGEST
        tying = huge & np.isin(scene.hypotheses.event, (Event.SKIP, Event.FALSE))
        if tying.any():
            part = sp.csr_matrix(incidence[np.flatnonzero(~tying)])
            _, label = connected_components(part.T @ part, directed=False)
        home = np.where(tying, -1, label[first])
        return cls(scene.hypotheses, label.astype(np.int64), home.astype(np.int64), tying)

    @cached_property
    def _columns(self) -> tuple[Index, Index]:
        return _by_value(self.home, len(self))

    @cached_property
    def _slots(self) -> tuple[Index, Index]:
        return _by_value(self.label, len(self))

    def __len__(self) -> int:
        return int(self.label.max(initial=-1)) + 1

    def members(self, labels: Sequence[int]) -> tuple[Index, Index]:
        """Hypotheses and slots of some components, both rising."""
        return _take(self._columns, labels), _take(self._slots, labels)


@dataclass(frozen=True)
class Piece:
    """What training needs of one sample.

    Parameters
    ----------
    columns, slots
        Hypotheses and slots of the movie, shapes (h,) and (s,).
    phi, incidence
        Shapes (h, d) and (h, s).
    name
        Of their content.
    """

    columns: Index
    slots: Index
    phi: sp.csr_matrix
    incidence: sp.csr_matrix
    name: bytes


_Key = tuple[tuple[int, ...], tuple[int, ...]]
"""Components of a sample, and annotated hypotheses that tie them together."""


@dataclass(frozen=True)
class _Stack:
    """Pieces one after another."""

    keys: tuple[_Key, ...]
    cut: Cut
    phi: sp.csr_matrix
    incidence: sp.csr_matrix
    names: tuple[bytes, ...]


class Pieces:
    """Annotated components of one movie, each cut out when an annotation first names it.

    Parameters
    ----------
    scene
        The movie; its annotations do not matter.
    """

    def __init__(self, scene: Scene) -> None:
        self.components = Components.of(scene)
        self._known: dict[_Key, Piece] = {}
        self._stack: _Stack | None = None

    def fit(self, scene: Scene) -> bool:
        """Whether a scene is the same movie with other annotations."""
        return scene.hypotheses is self.components.hypotheses

    def training_set(self, scene: Scene) -> TrainingSet:
        """The training set that `build_training_set` makes of the movie with its annotations."""
        keys, annotation_sample = self._samples(scene)
        stack = self._stack
        if stack is None or stack.keys != keys:
            pieces = [self._known.get(key) or self._piece(scene, key) for key in keys]
            stack = self._stack = _stacked(keys, pieces)
            self._known = dict(zip(keys, _sharing(pieces, stack.phi), strict=True))
        cut = Cut(
            stack.cut.columns,
            stack.cut.slots,
            stack.cut.column_sample,
            stack.cut.slot_sample,
            annotation_sample,
        )
        return named(labelled(scene, cut, stack.phi, stack.incidence), stack.names)

    def _samples(self, scene: Scene) -> tuple[tuple[_Key, ...], Index]:
        """What every sample consists of, in the order of their slots, and annotations' samples."""
        components = self.components
        tying = np.unique(scene.constraints.indices)
        tying = tying[components.tying[tying]]
        incidence = sp.csr_matrix(scene.problem.incidence[tying])
        group = _joined(components.label[incidence.indices], incidence.indptr, len(components))
        of_tying = group[components.label[incidence.indices[incidence.indptr[:-1]]]]
        annotated = group[components.label[annotated_slots(scene)]]
        wanted, sample = np.unique(annotated, return_inverse=True)
        keys = [
            (tuple(np.flatnonzero(group == g).tolist()), tuple(tying[of_tying == g].tolist()))
            for g in wanted.tolist()
        ]
        return tuple(keys), sample.astype(np.int64)

    def _piece(self, scene: Scene, key: _Key) -> Piece:
        labels, extra = key
        columns, slots = self.components.members(labels)
        columns = np.sort(np.concatenate([columns, np.asarray(extra, dtype=np.int64)]))
        phi = _rows(scene.matrix, columns).sparse()
        incidence = sp.csr_matrix(scene.problem.incidence[columns][:, slots])
        return Piece(columns, slots, phi, incidence, digest(phi, incidence))


def _joined(labels: Index, indptr: Index, n: int) -> Index:
    """Group of each of n components, where hypotheses tie some together, shape (n,).

    Groups are numbered in the order of their first component.
    """
    first = np.repeat(labels[indptr[:-1]], np.diff(indptr))
    edges = sp.coo_matrix((np.ones(len(labels)), (first, labels)), shape=(n, n))
    _, group = connected_components(edges, directed=False)
    return np.asarray(group, dtype=np.int64)


def _stacked(keys: tuple[_Key, ...], pieces: Sequence[Piece]) -> _Stack:
    """Pieces one after another, as a training set wants them; annotations are missing."""
    numbers = np.arange(len(pieces))
    cut = Cut(
        np.concatenate([p.columns for p in pieces]),
        np.concatenate([p.slots for p in pieces]),
        np.repeat(numbers, [len(p.columns) for p in pieces]),
        np.repeat(numbers, [len(p.slots) for p in pieces]),
        np.zeros(0, dtype=np.int64),
    )
    phi = sp.csr_matrix(sp.vstack([p.phi for p in pieces]))
    incidence = sp.csr_matrix(sp.block_diag([p.incidence for p in pieces], format="csr"))
    return _Stack(keys, cut, phi, incidence, tuple(p.name for p in pieces))


def _sharing(pieces: Sequence[Piece], phi: sp.csr_matrix) -> list[Piece]:
    """The same pieces, whose features are views into those of the stack."""
    out, begin = [], 0
    for piece in pieces:
        end = begin + len(piece.columns)
        inside = slice(int(phi.indptr[begin]), int(phi.indptr[end]))
        starts = phi.indptr[begin : end + 1] - phi.indptr[begin]
        part = (phi.data[inside], phi.indices[inside], starts)
        out.append(replace(piece, phi=sp.csr_matrix(part, shape=piece.phi.shape)))
        begin = end
    return out


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
