"""The model that a training leaves behind, and remarks about its annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.learning.result import TrainingResult
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import Estimate
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]


def plain_model(weights: Array, features: FeatureSet) -> Model:
    units = tuple(f.unit for f in features.features)
    return Model(features.keys, np.asarray(weights, dtype=np.float64), units)


def trained_model(
    weights: Array,
    features: FeatureSet,
    prior: Model,
    options: TrainingOptions,
    strength: float,
    result: TrainingResult,
    scenes: Sequence[Scene],
    n_annotations: int,
    estimate: Estimate | None,
) -> Model:
    plain = plain_model(weights, features)
    history = result.history
    sources = [s.labels.source if s.labels is not None else "table" for s in scenes]
    return replace(
        plain,
        name="trained",
        loss=options.loss,
        regularizer=options.regularizer,
        strength=strength,
        history={
            "objective": [float(v) for v in history.objective],
            "gap": [float(v) if np.isfinite(v) else None for v in history.gap],
            "bounds": [int(v) for v in history.n_bounds],
        },
        provenance={
            "movies": [source.replace("\\", "/").rsplit("/", 1)[-1] for source in sources],
            "annotations": n_annotations,
            "prior": prior.name,
            "image": all(bool(s.detections.channels) for s in scenes),
            "scaling": "features are divided by the cell diameter and the robust spread of the "
            "movie they are computed on",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        estimate={} if estimate is None else estimate.to_json(),
        tightness=prior.tied(features),
    )


def notes_about(scenes: Sequence[Scene], data: TrainingSet) -> tuple[str, ...]:
    notes = []
    for scene in scenes:
        for lost in scene.anchored.lost:
            notes.append(f"annotation {lost.id} was not used: {lost.cell}: {lost.reason}")
        for unused in scene.constraints.unused:
            notes.append(f"annotation {unused.id} was not used: {unused.reason}")
    if not data.single.any():
        notes.append("all annotations say what did not happen; confirm some events too")
    for event in (Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR):
        if not ((data.event == event) & data.single).any():
            notes.append(f"no {event.key} was annotated; its weights stay near the starting model")
    return tuple(notes)
