"""Learning with the help of earlier movies or models: the strategies of 000, Table 1.4, as one.

=========  =========================  ========================================================
strategy   sources                    what is trained
=========  =========================  ========================================================
target     none                       the target's annotations (*partial* or *all target*)
source     annotated movies           the sources' annotations (*all source*)
union      annotated movies           all annotations as one movie
transfer   annotated movies           every movie its own weights, tied together (eq. 1.9)
delta      a model                    a delta function on the source's predictor (004)
prior      a model                    the target's annotations, close to the model's weights
=========  =========================  ========================================================

*Target* is the movie of interest. Whatever is learned is compared with the starting weights on
annotations of the target it was not trained on, and dropped where it is worse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, get_args

from bridgetrack.errors import InputError
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.progress import Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.compare import common_features
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training
from bridgetrack.training.sources import Source, as_start, lacking, name_of, split_sources
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.train import train_steps
from bridgetrack.training.training_set import build_training_set
from bridgetrack.training.transfer import joint_steps
from bridgetrack.training.validation import judge

Strategy = Literal["target", "source", "union", "transfer", "delta", "prior"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
JOINT = ("source", "union", "transfer")


def strategy_steps(
    strategy: Strategy,
    scenes: Scene | Sequence[Scene],
    sources: Sequence[Source] = (),
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    previous: Training | None = None,
    tie: float | None = None,
) -> Steps[Training]:
    """Train on one or more annotated movies with the help of sources.

    Parameters
    ----------
    strategy
        One of `STRATEGIES`.
    scenes
        The target: prepared movies with annotations. For ``source``, ``union`` and ``transfer``
        there may be none yet.
    sources
        Models (``delta``, ``prior``: exactly one) or annotated movies (``source``, ``union``,
        ``transfer``: at least one), see `sources.open_source`.
    prior
        Weights that everything stays close to; the shipped ones where None. For ``prior`` and
        ``delta`` the source takes its place, save in features that the source never saw.
    options
        Choices; the defaults need no thought. ``strength`` is lambda.
    previous
        An earlier training: with the same strategy and sources, what is still valid of it is
        used again.
    tie
        rho, for ``transfer``; None: chosen by cross-validation.

    Yields
    ------
    Progress, TrainingProgress

    Returns
    -------
    Training
        Its model's provenance names the strategy and the sources.

    Raises
    ------
    InputError
        Where strategy and sources do not go together, or there is nothing to learn from.
    ModelError
        Where a model was made with other features.
    ContradictionError
        Where annotations exclude each other.
    """
    check_strategy(strategy, sources, prior, tie)
    models, movies = split_sources(sources)
    if previous is not None and previous.origin != origin_of(strategy, sources):
        previous = None
    if strategy in ("source", "union", "transfer"):
        targets = [scenes] if isinstance(scenes, Scene) else list(scenes)
        training = yield from joint_steps(strategy, targets, movies, prior, options, previous, tie)
        return _with_origin(training, strategy, sources)
    if strategy == "target":
        return (yield from train_steps(scenes, prior, options, previous))
    targets = [scenes] if isinstance(scenes, Scene) else list(scenes)
    shipped = prior or shipped_model()
    start, notes = _start_of(strategy, models[0], targets, shipped)
    if previous is None:
        notes += _doubts(start, shipped, targets)
    training = yield from train_steps(targets, start, options, previous)
    return _with_origin(replace(training, notes=training.notes + notes), strategy, sources)


def _start_of(
    strategy: Strategy, source: Model, targets: Sequence[Scene], shipped: Model
) -> tuple[Model, tuple[str, ...]]:
    """The source over the features of the movies, and remarks."""
    if strategy == "prior" or not targets:
        return source, ()
    features = common_features(targets)
    image = any(bool(scene.detections.channels) for scene in targets)
    new = lacking(source, features, image)
    if not new:
        return as_start(source, features, image, shipped), ()
    note = (
        f"{len(new)} features are new to the source {source.name!r} and start from the weights of "
        f"{shipped.name!r}: {', '.join(new)}"
    )
    return as_start(source, features, image, shipped), (note,)


def _doubts(source: Model, shipped: Model, targets: Sequence[Scene]) -> tuple[str, ...]:
    """A remark where the source knows less of the movies than the shipped model."""
    if not any(len(scene.constraints) for scene in targets):
        return ()
    features = common_features(targets)
    model = TrackingModel(build_training_set(targets))
    theirs = judge(model, source.aligned(features))
    ours = judge(model, shipped.aligned(features))
    if theirs.error <= ours.error + 1e-9:
        return ()
    return (
        f"the source {source.name!r} contradicts {100 * theirs.error:.1f} % of the annotations, "
        f"the model {shipped.name!r} only {100 * ours.error:.1f} %: training without this source "
        "may be better",
    )


def check_strategy(
    strategy: str, sources: Sequence[Source], prior: Model | None = None, tie: float | None = None
) -> None:
    """Refuse sources that a strategy cannot use.

    Raises
    ------
    InputError
        The message says what to give instead.
    """
    if strategy not in STRATEGIES:
        raise InputError(
            f"there is no strategy {strategy!r}; choose one of {', '.join(STRATEGIES)}"
        )
    models, movies = split_sources(sources)
    if strategy == "target" and sources:
        raise InputError("the strategy target uses no source; leave it out, or choose another one")
    if strategy in JOINT and (models or not movies):
        raise InputError(
            f"the strategy {strategy} learns from annotated movies: give project files as sources"
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
    if tie is not None and strategy != "transfer":
        raise InputError(f"rho ties the movies of transfer; the strategy {strategy} has none")
    if tie is not None and not tie > 0:
        raise InputError(f"rho must be positive, not {tie}")


def origin_of(strategy: str, sources: Sequence[Source]) -> tuple[str, ...]:
    """Strategy and sources, as `Training.origin` keeps them; empty without sources."""
    if not sources:
        return ()
    return (strategy, *(_described(source) for source in sources))


def _described(source: Source) -> str:
    name = name_of(source)
    return name if isinstance(source, Model) else f"{name} ({len(source.constraints)} annotations)"


def _with_origin(training: Training, strategy: str, sources: Sequence[Source]) -> Training:
    """Say in the training, and in its model where it was learned, where it comes from."""
    origin = origin_of(strategy, sources)
    if training.kept != "trained":
        return replace(training, origin=origin)
    more: dict[str, object] = {"strategy": strategy, "sources": list(origin[1:])}
    if training.transfer is not None:
        rho = training.transfer.tie.tie / max(training.n_annotations, 1)
        more["rho"] = rho if math.isfinite(rho) else None
    model = replace(training.model, provenance={**training.model.provenance, **more})
    return replace(training, model=model, origin=origin)
