"""A model: weights with the names of their features, and where they came from; the shipped one."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from bridgetrack.arrays import Array
from bridgetrack.errors import ModelError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet
from bridgetrack.files import as_path, program_version, write_text
from bridgetrack.hypotheses.events import Event
from bridgetrack.schema import FileFormat, JsonObject, OpenEntry, json_text


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
    loss, regularizer, strength
        What it was trained with, and the factor λ of the regulariser; None for weights set by
        hand.
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
    loss: str | None = None
    regularizer: str | None = None
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
    def trained(self) -> bool:
        """Whether the weights were learned, and not set by hand."""
        return self.loss is not None

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

    def tightness_for(self, features: FeatureSet) -> Array | None:
        """`tightness` in the order of a set of features, shape (d,), or None.

        Raises
        ------
        ModelError
            Where the model was made with other features; the message names them.
        """
        if self.tightness is None:
            return None
        return features.align(self.keys, self.tightness, float(np.median(self.tightness)))


def check_usable(model: Model, where: Path | str) -> Model:
    """The same model, if it has weights for all features of this program and for no others.

    Parameters
    ----------
    model
        As it was read.
    where
        Its file or name, for the message.

    Raises
    ------
    ModelError
        Otherwise; the message names `where` and the features.
    """
    try:
        model.aligned(default_features())
    except ModelError as error:
        raise ModelError(f"{where}: {error}") from error
    return model


class _Feature(OpenEntry):
    name: str
    weight: float
    unit: str = "1"
    tightness: float | None = Field(default=None, gt=0)


class _Content(OpenEntry):
    name: str = ""
    loss: str = ""
    regularizer: str = ""
    strength: float | None = Field(default=None, alias="lambda")
    features: list[_Feature] = Field(min_length=1)
    history: JsonObject = Field(default_factory=dict)
    provenance: JsonObject = Field(default_factory=dict)
    estimate: JsonObject = Field(default_factory=dict)

    def model(self) -> Model:
        keys = tuple(f.name for f in self.features)
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice is not None:
            raise ModelError(f"features: {twice!r} is listed twice")
        return Model(
            keys,
            np.asarray([f.weight for f in self.features], dtype=np.float64),
            tuple(f.unit for f in self.features),
            name=self.name,
            loss=self.loss or None,
            regularizer=self.regularizer or None,
            strength=self.strength,
            history=self.history,
            provenance=self.provenance,
            estimate=self.estimate,
            tightness=self._tightness(),
        )

    def _tightness(self) -> Array | None:
        known = [f.tightness for f in self.features if f.tightness is not None]
        if not known:
            return None
        lacking = next((f.name for f in self.features if f.tightness is None), None)
        if lacking is not None:
            raise ModelError(f"features: {lacking!r} needs a tightness, as others have one")
        return np.asarray(known, dtype=np.float64)


MODEL_FILE = FileFormat(
    "bridgetrack-model", 1, "a model file", _Content, _Content.model, ModelError
)
"""Model files; `model_to_json` makes their content."""


def model_to_json(model: Model) -> dict[str, Any]:
    """A model as the JSON values of its file."""
    features: list[dict[str, Any]] = [
        {"name": key, "weight": float(weight), "unit": unit}
        for key, weight, unit in zip(model.keys, model.weights, model.units, strict=True)
    ]
    if model.tightness is not None:
        for entry, tightness in zip(features, model.tightness, strict=True):
            entry["tightness"] = float(tightness)
    return {
        **MODEL_FILE.head,
        "name": model.name,
        "loss": model.loss or "",
        "regularizer": model.regularizer or "",
        "lambda": model.strength,
        "events": [event.key for event in model.events],
        "features": features,
        "history": model.history,
        "provenance": {"program": program_version(), **model.provenance},
        "estimate": model.estimate,
    }


def model_text(model: Model) -> str:
    """The text of a model's file."""
    return json_text(model_to_json(model), f"the model {model.name!r}", ModelError)


def save_model(model: Model, path: Path | str) -> Path:
    """Write a model file; raises as `model_text`.

    Raises
    ------
    OutputError
        Where the file cannot be written; an older file stays as it was.
    """
    return write_text(as_path(path), model_text(model), "the model")


def load_model(path: Path | str) -> Model:
    """Read a model file.

    Raises
    ------
    ModelError
        Where the file is missing, damaged, of another kind or of a later version.
    """
    return MODEL_FILE.read(path)


# ---------------------------------------------------------------------- shipped


def shipped_model(features: FeatureSet | None = None) -> Model:
    """The starting model: hand-set weights (``pretrained.json``), and how tightly each is tied.

    The weights say what any biologist would: cells move little, keep their size, shape and
    brightness; daughters lie on either side of their mother, are alike and add up to it; cells come
    and go at the frame's edge. That of mutual nearest neighbours is 0: where one cell ends and
    another begins, these are nearest to each other at any distance, and where cells touch their
    overlap says more. One unit of score is one unit of the task loss.

    How much each weight varies between movies was learned from movies of many kinds
    (``benchmarks/prior.py``), so that training from a few clicks changes first what differs between
    movies.

    Parameters
    ----------
    features
        The features; the built-in ones where None. Those that the shipped model does not know
        have their `Feature.start` or weight 0, and the middle tightness.
    """
    features = features or default_features()
    file = resources.files("bridgetrack.models").joinpath("pretrained.json")
    model = MODEL_FILE.parse(file.read_text(encoding="utf-8"), "the shipped model")
    if features.keys == model.keys or model.tightness is None:
        return model
    weights = dict(zip(model.keys, model.weights.tolist(), strict=True))
    tightness = dict(zip(model.keys, model.tightness.tolist(), strict=True))
    middle = float(np.median(model.tightness))
    return replace(
        model,
        keys=features.keys,
        weights=np.asarray([weights.get(f.key, f.start or 0.0) for f in features.features]),
        units=tuple(f.unit for f in features.features),
        tightness=np.asarray([tightness.get(key, middle) for key in features.keys]),
    )


def untrained_model(features: FeatureSet | None = None) -> Model:
    """The hand-set weights, all tied alike; `features` as for `shipped_model`."""
    shipped = shipped_model(features)
    return Model(
        shipped.keys,
        shipped.weights,
        shipped.units,
        name="untrained",
        provenance={"origin": "set by hand"},
    )
