"""Features of all hypotheses, one dense block per event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.features.cells import describe_cells
from bridgetrack.features.feature import Feature, FeatureSet
from bridgetrack.features.view import View
from bridgetrack.hypotheses.events import Event
from bridgetrack.hypotheses.evidence import Evidence
from bridgetrack.hypotheses.hypotheses import Hypotheses

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FeatureMatrix:
    """The matrix Φ of all hypotheses (000, eq. 1.1), block by block.

    Parameters
    ----------
    features
        The columns.
    rows
        Hypotheses of every event, one index array per `Event`.
    blocks
        Their features, shapes (H_event, d_event).
    n_hypotheses
        Total number of rows H.
    """

    features: FeatureSet
    rows: tuple[NDArray[np.int64], ...]
    blocks: tuple[Array, ...]
    n_hypotheses: int

    def scores(self, weights: Array) -> Array:
        """Φ w, shape (H,)."""
        out = np.zeros(self.n_hypotheses)
        for event in Event:
            out[self.rows[event]] = self.blocks[event] @ weights[self.features.block(event)]
        return out

    def joint(self, chosen: Array) -> Array:
        """Φ' y: the joint feature of a (possibly fractional) choice of shape (H,)."""
        out = np.zeros(len(self.features))
        for event in Event:
            part = chosen[self.rows[event]]
            out[self.features.block(event)] = self.blocks[event].T @ part
        return out

    def row(self, hypothesis: int) -> Array:
        """Features of one hypothesis, zero outside its event's block, shape (d,)."""
        out = np.zeros(len(self.features))
        for event in Event:
            place = np.flatnonzero(self.rows[event] == hypothesis)
            if len(place):
                out[self.features.block(event)] = self.blocks[event][place[0]]
        return out

    def sparse(self) -> sp.csr_matrix:
        """Φ as one sparse matrix, shape (H, d)."""
        parts, rows = [], []
        for event in Event:
            block = self.features.block(event)
            width = len(self.features)
            part = sp.csr_matrix(self.blocks[event])
            part = sp.csr_matrix(
                (part.data, part.indices + block.start, part.indptr), shape=(part.shape[0], width)
            )
            parts.append(part)
            rows.append(self.rows[event])
        order = np.argsort(np.concatenate(rows), kind="stable")
        return sp.csr_matrix(sp.vstack(parts).tocsr()[order])


def _value(feature: Feature, view: View, available: frozenset[str]) -> Array:
    count = len(view.source)
    if feature.needs and feature.needs not in available:
        return np.zeros(count)
    value = np.asarray(feature.compute(view), dtype=np.float64)
    if value.shape != (count,):
        raise InputError(
            f"feature {feature.key} returned shape {value.shape} for {count} hypotheses; it must "
            "return one number each"
        )
    if not np.isfinite(value).all():
        bad = int(np.flatnonzero(~np.isfinite(value))[0])
        raise InputError(
            f"feature {feature.key} is not a number for the event at cell row "
            f"{max(int(view.source[bad]), int(view.target[bad]))}; check its formula"
        )
    return value


def compute_features(
    evidence: Evidence, hypotheses: Hypotheses, features: FeatureSet
) -> FeatureMatrix:
    """Compute all features of all hypotheses.

    Raises
    ------
    InputError
        Where a feature (a user's own) returns the wrong shape or something not finite.
    """
    cells = describe_cells(evidence)
    available = frozenset(
        name
        for name, there in (
            ("mask", evidence.detections.has_masks),
            ("image", bool(evidence.detections.channels)),
        )
        if there
    )
    rows, blocks = [], []
    for event in Event:
        mine = hypotheses.of(event)
        view = View(
            evidence,
            cells,
            hypotheses.sources[mine, 0],
            hypotheses.sources[mine, 1],
            hypotheses.targets[mine, 0],
            hypotheses.targets[mine, 1],
        )
        columns = [_value(f, view, available) for f in features.of(event)]
        rows.append(mine)
        blocks.append(np.stack(columns, axis=1) if columns else np.zeros((len(mine), 0)))
    return FeatureMatrix(features, tuple(rows), tuple(blocks), len(hypotheses))
