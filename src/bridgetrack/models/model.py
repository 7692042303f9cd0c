"""A model: weights with the names of their features, and where they came from.

Whether a model can be used with the features of this program.

Model files: readable JSON, checked when read, written atomically.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import ModelError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet
from bridgetrack.files import program_version, unreadable, write_text
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


FORMAT = "bridgetrack-model"
VERSION = 1

_TEXT = ("name", "loss", "regularizer")
_OBJECTS = ("history", "provenance", "estimate")


def to_json(model: Model) -> str:
    """A model as the text of its file.

    Raises
    ------
    ModelError
        Where its history, provenance or estimate is not made of finite JSON values.
    """
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": model.name,
        "loss": model.loss,
        "regularizer": model.regularizer,
        "lambda": model.strength,
        "events": [event.key for event in model.events],
        "features": _entries(model),
        "history": model.history,
        "provenance": {"program": program_version(), **model.provenance},
        "estimate": model.estimate,
    }
    try:
        return json.dumps(content, indent=1, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise ModelError(
            f"the history, provenance or estimate of model {model.name!r} holds what JSON cannot "
            f"say ({error})"
        ) from error


def _entries(model: Model) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = [
        {"name": key, "weight": float(weight), "unit": unit}
        for key, weight, unit in zip(model.keys, model.weights, model.units, strict=True)
    ]
    if model.tightness is not None:
        for entry, tightness in zip(entries, model.tightness, strict=True):
            entry["tightness"] = float(tightness)
    return entries


def save_model(model: Model, path: Path | str) -> Path:
    """Write a model file.

    Raises
    ------
    OutputError
        Where the file cannot be written; an older file stays as it was.
    """
    return write_text(Path(path), to_json(model), "the model")


def load_model(path: Path | str) -> Model:
    """Read a model file.

    Raises
    ------
    ModelError
        Where the file is missing, damaged, of another kind or of a later version.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ModelError(f"{path}: the model cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{path}: this is not a model file (it is not text)") from error
    return from_json(text, str(path))


def from_json(text: str, where: str) -> Model:
    """A model from the text of its file; `where` names it in messages.

    Raises
    ------
    ModelError
        Where the text is not a valid model.
    """
    try:
        content = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{where}: {unreadable(text, 'a model file', error)}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError(f'{where}: this is not a model file (no "format": "{FORMAT}")')
    version = content.get("version")
    if version != VERSION:
        raise ModelError(
            f"{where}: the model has file version {version}, this program (bridgetrack "
            f"{program_version()}) reads {VERSION}; update Bridgetrack or train the model again"
        )
    keys, weights, units = _features(content.get("features"), where)
    strength = content.get("lambda")
    if strength is not None and not _number(strength):
        raise ModelError(f'{where}: "lambda" must be a number or null')
    return Model(
        keys,
        np.asarray(weights, dtype=np.float64),
        units,
        strength=None if strength is None else float(strength),
        **{key: _typed(content, key, str, where) for key in _TEXT},
        **{key: _typed(content, key, dict, where) for key in _OBJECTS},
        tightness=_tightness(content["features"], where),
    )


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")


def _typed(content: dict[str, Any], key: str, kind: type, where: str) -> Any:
    value = content.get(key, kind())
    if not isinstance(value, kind):
        raise ModelError(f'{where}: "{key}" must be {"text" if kind is str else "an object"}')
    return value


def _number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= sys.float_info.max


def _features(entries: Any, where: str) -> tuple[tuple[str, ...], list[float], tuple[str, ...]]:
    if not isinstance(entries, list) or not entries:
        raise ModelError(f'{where}: "features" must be a list with at least one entry')
    keys, weights, units = [], [], []
    for k, entry in enumerate(entries):
        good = isinstance(entry, dict) and isinstance(entry.get("name"), str)
        if not good or not _number(entry.get("weight")):
            raise ModelError(f"{where}: feature number {k + 1} needs a name and a finite weight")
        keys.append(entry["name"])
        weights.append(float(entry["weight"]))
        units.append(str(entry.get("unit", "1")))
    if len(set(keys)) < len(keys):
        raise ModelError(f"{where}: a feature is listed twice")
    return tuple(keys), weights, tuple(units)


def _tightness(entries: list[dict[str, Any]], where: str) -> Array | None:
    """The tightness of all features, or None where none has any."""
    given = [entry.get("tightness") for entry in entries]
    if all(value is None for value in given):
        return None
    for k, value in enumerate(given):
        if value is None or not _number(value) or value <= 0:
            raise ModelError(
                f"{where}: feature number {k + 1} needs a positive tightness, as others have one"
            )
    return np.asarray(given, dtype=np.float64)
