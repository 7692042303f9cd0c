"""What a feature is, the sets of features that models use, and the features of a movie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, ModelError
from bridgetrack.features.view import View, describe_cells
from bridgetrack.hypotheses.events import Event, Events
from bridgetrack.hypotheses.evidence import Evidence

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Feature:
    """One number per hypothesis of one event.

    Parameters
    ----------
    event
        The event it describes.
    name
        Short name, unique within the event.
    formula
        What is computed, in words or symbols.
    unit
        Unit of the value; ``"1"`` for dimensionless ones.
    compute
        Function of a `View` that returns shape (H_event,).
    needs
        ``"mask"`` or ``"image"`` where the value is only known with masks or intensities;
        it is 0 where they are missing.
    """

    event: Event
    name: str
    formula: str
    unit: str
    compute: Callable[[View], Array]
    needs: str = ""

    @property
    def key(self) -> str:
        """Name in model files, e.g. ``"move.distance"``."""
        return f"{self.event.key}.{self.name}"


def feature_of(
    event: Event,
    name: str,
    formula: str,
    compute: Callable[[View], Array],
    unit: str = "1",
    needs: str = "",
) -> Feature:
    """A `Feature`, dimensionless unless told otherwise."""
    return Feature(event, name, formula, unit, compute, needs)


@dataclass(frozen=True)
class FeatureSet:
    """An ordered set of features, grouped into one block of weights per event.

    Parameters
    ----------
    features
        Sorted by event; within an event in the order of the weights.
    """

    features: tuple[Feature, ...]

    def __post_init__(self) -> None:
        events = [f.event for f in self.features]
        if events != sorted(events):
            raise InputError("the features of a set must be sorted by event, in the events' order")
        keys = self.keys
        twice = sorted({k for k in keys if keys.count(k) > 1})
        if twice:
            raise InputError(f"features must have different names; {twice} occur more than once")

    def __len__(self) -> int:
        return len(self.features)

    @property
    def keys(self) -> tuple[str, ...]:
        """Names in model files, in the order of the weights, shape (d,)."""
        return tuple(f.key for f in self.features)

    def of(self, event: Event) -> tuple[Feature, ...]:
        """Features of one event."""
        return tuple(f for f in self.features if f.event == event)

    def block(self, event: Event) -> slice:
        """Where the weights of an event lie in the weight vector."""
        start = sum(f.event < event for f in self.features)
        return slice(start, start + len(self.of(event)))

    def with_feature(self, feature: Feature) -> FeatureSet:
        """A set with one more feature (a user's own), placed last in its event's block.

        Raises
        ------
        InputError
            Where the event already has a feature of this name.
        """
        ordered = sorted([*self.features, feature], key=lambda f: f.event)
        return replace(self, features=tuple(ordered))

    def align(self, keys: tuple[str, ...], weights: Array) -> Array:
        """Bring the weights of a model into the order of this set, shape (d,).

        Raises
        ------
        ModelError
            Where the model's features are not exactly those of this set.
        """
        unknown = sorted(set(keys) - set(self.keys))
        missing = sorted(set(self.keys) - set(keys))
        if unknown or missing:
            raise ModelError(
                "the model was made with other features than this program has"
                + (f"; only in the model: {', '.join(unknown)}" if unknown else "")
                + (f"; only in the program: {', '.join(missing)}" if missing else "")
                + ". Train a new model, or use the version of Bridgetrack that made this one"
            )
        place = {key: k for k, key in enumerate(keys)}
        return np.asarray([weights[place[key]] for key in self.keys], dtype=np.float64)


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
        stacked = sp.block_diag(self.blocks, format="csr")
        stacked.eliminate_zeros()
        order = np.argsort(np.concatenate(self.rows), kind="stable")
        return sp.csr_matrix(stacked[order])


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


def known_of(detections: Detections) -> frozenset[str]:
    """What features may need (`Feature.needs`) and is known of a movie."""
    there = (("mask", detections.has_masks), ("image", bool(detections.channels)))
    return frozenset(name for name, known in there if known)


def compute_features(evidence: Evidence, hypotheses: Events, features: FeatureSet) -> FeatureMatrix:
    """Compute all features of all hypotheses.

    Raises
    ------
    InputError
        Where a feature (a user's own) returns the wrong shape or something not finite.
    """
    cells, available = describe_cells(evidence), known_of(evidence.detections)
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
