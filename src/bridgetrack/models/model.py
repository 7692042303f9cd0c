"""A model: weights with the names of their features, and where they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import ModelError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Model:
    """Weights of the linear score of events.

    Parameters
    ----------
    keys
        Feature names such as ``"move.distance"``, shape (d,).
    weights
        One weight each, shape (d,).
    units
        Unit of every feature, shape (d,).
    name
        A short name for lists.
    loss, regularizer
        What it was trained with; empty for weights set by hand.
    strength
        The factor λ of the regulariser; None for weights set by hand.
    history
        Objective and gap of the training, as plain lists.
    provenance
        Where it came from: movie, number of annotations, versions, notes; JSON values only.
    estimate
        The accuracy estimated at training; JSON values only.
    tightness
        How tightly later training ties each weight to this one, where training starts from
        this model: the diagonal of the regulariser's metric, positive, shape (d,); None: all
        alike. What varied between movies is tied loosely.
    """

    keys: tuple[str, ...]
    weights: Array
    units: tuple[str, ...]
    name: str = "unnamed"
    loss: str = ""
    regularizer: str = ""
    strength: float | None = None
    history: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)
    estimate: dict[str, Any] = field(default_factory=dict)
    tightness: Array | None = None

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.weights) == len(self.units):
            raise ModelError(
                f"the model has {len(self.keys)} features, {len(self.weights)} weights and "
                f"{len(self.units)} units; these must be as many"
            )
        if not np.isfinite(self.weights).all():
            bad = self.keys[int(np.flatnonzero(~np.isfinite(self.weights))[0])]
            raise ModelError(f"the model's weight of {bad} is not a finite number")
        if self.tightness is not None:
            self._check_tightness(self.tightness)

    def _check_tightness(self, tightness: Array) -> None:
        if np.shape(tightness) != np.shape(self.weights):
            raise ModelError(
                f"the model has {len(self.weights)} weights and {np.size(tightness)} values of "
                "tightness; these must be as many"
            )
        wrong = ~(np.isfinite(tightness) & (tightness > 0))
        if wrong.any():
            bad = self.keys[int(np.flatnonzero(wrong)[0])]
            raise ModelError(f"the model's tightness of {bad} is not a positive number")

    @property
    def events(self) -> tuple[Event, ...]:
        """Events that the model has weights for."""
        known = {key.split(".")[0] for key in self.keys}
        return tuple(event for event in Event if event.key in known)

    def aligned(self, features: FeatureSet) -> Array:
        """Weights in the order of a set of features, shape (d,).

        Raises
        ------
        ModelError
            Where the model was made with other features; the message names them.
        """
        return features.align(self.keys, self.weights)

    def tied(self, features: FeatureSet) -> Array | None:
        """`tightness` in the order of a set of features, shape (d,), or None.

        Raises
        ------
        ModelError
            Where the model was made with other features; the message names them.
        """
        return None if self.tightness is None else features.align(self.keys, self.tightness)
