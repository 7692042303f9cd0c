"""What a feature is, and the sets of features that models use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError, ModelError
from bridgetrack.features.view import View
from bridgetrack.hypotheses.events import Event

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
