"""Sources of a training: models, and movies that were annotated earlier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from bridgetrack.errors import InputError, ModelError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.models.library import find_model
from bridgetrack.models.model import Model
from bridgetrack.pipeline.project import is_project, load_project
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.progress import Steps

Source = Model | Scene
"""A trained model, or an annotated movie."""
Strategy = Literal["target", "source", "union", "transfer", "delta", "prior"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
JOINT = ("source", "union", "transfer")
"""Strategies that learn from annotated movies."""


def open_source(given: Path | str) -> Steps[Source]:
    """Open a model (a file, a name in the library, ``"shipped"``) or a project with its answers.

    Yields
    ------
    Progress

    Raises
    ------
    BridgetrackError
        If it is neither, is damaged, or its movie is missing.
    InputError
        If the project holds no answers.
    """
    path = Path(given)
    if not is_project(path):
        try:
            return find_model(given)
        except ModelError as error:
            raise ModelError(
                f"{error}; a source is a model (a file or a name in the library) or a project "
                "(NAME.bridgetrack)"
            ) from error
    project = load_project(path)
    annotations = project.history.annotations
    if not len(annotations):
        raise InputError(
            f"{path}: the project holds no answers to learn from; answer something in it first, "
            "or give its model with --strategy prior"
        )
    labels, image = project.open()
    return (yield from prepare(labels, image, annotations, None, project.settings.kinds))


def name_of(source: Source) -> str:
    """A short name for provenance."""
    if isinstance(source, Model):
        return source.name
    where = source.labels.source if source.labels is not None else "table"
    return where.replace("\\", "/").rsplit("/", 1)[-1]


def as_start(model: Model, features: FeatureSet, prior: Model) -> Model:
    """The weights of a source over the features of a movie (004).

    Its own weights stay as they are; features that it never saw start from the prior, and are
    tied as loosely.
    """
    tightness = model.tightness
    if tightness is not None:
        theirs = prior.tightness_for(features)
        middle = float(np.median(tightness))
        tightness = features.align(model.keys, tightness, middle if theirs is None else theirs)
    return replace(
        model,
        keys=features.keys,
        weights=features.align(model.keys, model.weights, prior.aligned(features)),
        units=tuple(f.unit for f in features.features),
        tightness=tightness,
    )


def check_strategy(strategy: str, sources: Sequence[Source], prior: Model | None = None) -> None:
    """Refuse sources that a strategy cannot use."""
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}"
        )
    models = sum(isinstance(source, Model) for source in sources)
    if strategy == "target":
        fit, words = not sources, "uses no source; leave it out, or choose another one"
    elif strategy in JOINT:
        fit = bool(sources) and not models
        words = "learns from annotated movies: give projects as sources, no model"
    else:
        fit = len(sources) == models == 1
        words = "starts from exactly one model (projects go with transfer and union)"
    if not fit:
        raise InputError(f"the strategy {strategy} {words}")
    if strategy == "prior" and prior is not None:
        raise InputError("the strategy prior takes its source as the prior; leave the other out")


def described(source: Source) -> str:
    """Words for a source in the provenance."""
    name = name_of(source)
    return name if isinstance(source, Model) else f"{name} ({len(source.constraints)} annotations)"
