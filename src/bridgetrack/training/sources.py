"""What a training may start from: models, and movies that were annotated earlier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from bridgetrack.arrays import Array
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


def lacking(model: Model, features: FeatureSet, image: bool) -> tuple[str, ...]:
    """Features of a movie (with intensities measured or not) that a model never saw."""
    known = set(model.keys)
    blind = image and model.provenance.get("image") is False
    return tuple(
        f.key for f in features.features if f.key not in known or (blind and f.needs == "image")
    )


def as_start(model: Model, features: FeatureSet, image: bool, prior: Model) -> Model:
    """The source's predictor as weights over the features of a movie (004).

    Its own weights stay as they are; features that it never saw start from the prior, and are
    tied as loosely.
    """
    unknown = sorted(set(model.keys) - set(features.keys))
    if unknown:
        raise ModelError(
            f"the source model {model.name!r} has features that this program lacks: "
            f"{', '.join(unknown)}; train it again with this version of Bridgetrack"
        )
    missing = set(lacking(model, features, image))
    own = dict(zip(model.keys, model.weights, strict=True))
    base = dict(zip(features.keys, prior.aligned(features), strict=True))
    weights = [base[key] if key in missing else own[key] for key in features.keys]
    tightness = None if model.tightness is None else _tightness(model, features, prior)
    return replace(
        model,
        keys=features.keys,
        weights=np.asarray(weights, dtype=np.float64),
        units=tuple(f.unit for f in features.features),
        tightness=tightness,
    )


def _tightness(model: Model, features: FeatureSet, prior: Model) -> Array:
    """The source's tightness; that of the prior, or the middle one, where it has none."""
    assert model.tightness is not None
    own = dict(zip(model.keys, model.tightness.tolist(), strict=True))
    theirs = prior.tightness_for(features)
    middle = np.full(len(features), np.median(model.tightness))
    base = zip(features.keys, middle if theirs is None else theirs, strict=True)
    return np.asarray([own.get(key, value) for key, value in base], dtype=np.float64)


def split_sources(sources: Sequence[Source]) -> tuple[list[Model], list[Scene]]:
    """Models and annotated movies among some sources."""
    models = [s for s in sources if isinstance(s, Model)]
    return models, [s for s in sources if isinstance(s, Scene)]


def check_strategy(strategy: str, sources: Sequence[Source], prior: Model | None = None) -> None:
    """Refuse sources that a strategy cannot use."""
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}"
        )
    models, movies = split_sources(sources)
    if strategy == "target" and sources:
        raise InputError("the strategy target uses no source; leave it out, or choose another one")
    if strategy in JOINT and (models or not movies):
        raise InputError(
            f"the strategy {strategy} learns from annotated movies: give projects as sources"
            + (
                f", not the model {models[0].name!r} (it goes with prior or delta)"
                if models
                else ""
            )
        )
    if strategy in ("delta", "prior") and (movies or len(models) != 1):
        raise InputError(
            f"the strategy {strategy} starts from a model: give exactly one model file as source"
            + (", not annotated movies (they go with transfer or union)" if movies else "")
        )
    if strategy == "prior" and prior is not None:
        raise InputError("the strategy prior takes its source as the prior; leave the other out")


def origin_of(strategy: str, sources: Sequence[Source]) -> tuple[str, ...]:
    """Strategy and sources, as `Training.origin` keeps them; empty without sources."""
    if not sources:
        return ()
    return (strategy, *(_described(source) for source in sources))


def _described(source: Source) -> str:
    name = name_of(source)
    return name if isinstance(source, Model) else f"{name} ({len(source.constraints)} annotations)"
