"""Train a model on annotated movies: choose λ, fit, compare with the prior, say how good it is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError, InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.learning import train as learn
from bridgetrack.learning.result import Progress as Step
from bridgetrack.learning.result import TrainingResult, TrainingState
from bridgetrack.models.model import Model
from bridgetrack.models.untrained import untrained_model
from bridgetrack.pipeline.contradiction import explain_contradiction
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by
from bridgetrack.training.estimate import Estimate, estimate_accuracy
from bridgetrack.training.options import DEFAULT_STRENGTH, GRID, TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced, build_training_set
from bridgetrack.training.validation import (
    HeldOut,
    Validation,
    cross_validate,
    folds_of,
    judge,
    regularizer_of,
)

Array = NDArray[np.float64]


@dataclass(frozen=True)
class TrainingProgress(Progress):
    """Where training stands.

    Parameters
    ----------
    objective, gap
        Best objective so far and its duality gap.
    model
        The best model so far: what to keep where training is cancelled; None while λ is chosen.
    """

    objective: float = np.nan
    gap: float = np.nan
    model: Model | None = None


@dataclass(frozen=True)
class Training:
    """A finished training.

    Parameters
    ----------
    model
        What was kept: the trained weights or the prior's.
    kept
        ``"trained"`` or ``"prior"``.
    reason
        Why, as a sentence.
    strength
        The λ used.
    chosen_by
        ``"cross-validation"``, ``"default"``, ``"user"`` or ``"previous training"``.
    estimate
        Accuracy on held-out annotations; None where there are too few.
    result
        What the learner reports.
    validation
        The cross-validation (where its verdict was taken over, that of the previous training),
        or None.
    changes
        Events chosen with the prior and with the new model, per kind, over all movies.
    exchanged
        Events gained and lost from the one to the other, per kind.
    n_annotations
        Annotations used.
    notes
        Remarks in plain words: unused or lost annotations, kinds never annotated.
    """

    model: Model
    kept: str
    reason: str
    strength: float
    chosen_by: str
    estimate: Estimate | None
    result: TrainingResult
    validation: Validation | None
    changes: dict[str, tuple[int, int]]
    exchanged: dict[str, tuple[int, int]]
    n_annotations: int
    notes: tuple[str, ...]

    @property
    def state(self) -> TrainingState | None:
        """What a later training can reuse."""
        return self.result.state


def train_steps(
    scenes: Scene | Sequence[Scene],
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    previous: Training | None = None,
) -> Steps[Training]:
    """Train on one or more annotated movies.

    Parameters
    ----------
    scenes
        Prepared movies with annotations (`pipeline.scene`).
    prior
        Weights to start from and to stay close to; the untrained ones where None.
    options
        Choices; the defaults need no thought.
    previous
        An earlier training on (mostly) the same annotations: what is still valid of it is used
        again. Where it kept a trained model after cross-validation, so are λ, that verdict and
        the estimate; otherwise all three are found anew.

    Yields
    ------
    Progress, TrainingProgress

    Returns
    -------
    Training

    Raises
    ------
    InputError
        Where no annotation says anything, or the movies differ in their features.
    ModelError
        Where the prior was made with other features; the message names them.
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    scenes = [scenes] if isinstance(scenes, Scene) else list(scenes)
    options = options or TrainingOptions()
    prior = prior or untrained_model()
    if not scenes:
        raise InputError("there is no movie to learn from")
    yield Progress("Collecting annotations", 0.0)
    features = _common_features(scenes)
    start = prior.aligned(features)
    found = build_training_set(scenes)
    before = _choices(scenes, start)
    data = balanced(found, _population(scenes, before), options.balance)
    model = TrackingModel(data)
    settled = previous if _settled(previous, options) else None
    strength, chosen_by, validation = yield from _choose(model, start, options, settled)
    result = yield from _fit(model, start, options, strength, features, previous)
    kept, reason = _keep(model, start, result.w, strength, validation, settled)
    weights = result.w if kept == "trained" else start
    held = _held_out(validation, strength, kept)
    yield Progress("Comparing with the starting model", 0.0)
    after = _choices(scenes, weights)
    population = _population(scenes, after)
    changes = _pairs(_population(scenes, before), population)
    gained = _population(scenes, [new & ~old for old, new in zip(before, after, strict=True)])
    lost = _population(scenes, [old & ~new for old, new in zip(before, after, strict=True)])
    estimate = None if settled is None else settled.estimate
    if held is not None:
        estimate = estimate_accuracy(
            held.wrong, data.event, population, bool(data.unbiased.all()), options.seed
        )
    trained = _model(
        weights, features, prior, options, strength, result, scenes, data.n_annotations, estimate
    )
    if kept == "prior":
        trained = replace(prior, estimate=trained.estimate)
    return Training(
        trained,
        kept,
        reason,
        strength,
        chosen_by,
        estimate,
        result,
        validation if settled is None else settled.validation,
        changes,
        _pairs(gained, lost),
        data.n_annotations,
        _notes(scenes, data),
    )


def _common_features(scenes: Sequence[Scene]) -> FeatureSet:
    """The features that all movies have.

    Raises
    ------
    InputError
        Where they differ.
    """
    features = scenes[0].matrix.features
    for number, scene in enumerate(scenes[1:], 2):
        differing = sorted(set(features.keys) ^ set(scene.matrix.features.keys))
        if differing or features.keys != scene.matrix.features.keys:
            raise InputError(
                f"movie {number} has other features than the first "
                f"({', '.join(differing) or 'in another order'}); prepare all with the same ones"
            )
    return features


def _settled(previous: Training | None, options: TrainingOptions) -> bool:
    """Whether λ and what to keep need not be found anew."""
    return (
        previous is not None
        and previous.validation is not None
        and previous.kept == "trained"
        and options.strength is None
    )


def _choose(
    model: TrackingModel, prior: Array, options: TrainingOptions, settled: Training | None
) -> Generator[Progress, None, tuple[float, str, Validation | None]]:
    """λ, how it was chosen, and the cross-validation."""
    if settled is not None:
        return settled.strength, "previous training", None
    fold = folds_of(model.data, options.folds)
    if fold is None:
        if options.strength is not None:
            return options.strength, "user", None
        return DEFAULT_STRENGTH, "default", None
    strengths = GRID if options.strength is None else (options.strength,)
    steps = cross_validate(model, prior, options, fold, strengths)
    while True:
        try:
            share, _ = next(steps)
        except StopIteration as stop:
            validation: Validation = stop.value
            break
        yield Progress("Choosing how far to trust the annotations", share)
    chosen = validation.strengths[validation.best]
    return chosen, "cross-validation" if options.strength is None else "user", validation


def _fit(
    model: TrackingModel,
    prior: Array,
    options: TrainingOptions,
    strength: float,
    features: FeatureSet,
    previous: Training | None,
) -> Generator[Progress, None, TrainingResult]:
    """Fit all annotations."""
    steps = learn(
        model,
        model.data.samples,
        regularizer_of(options, strength, prior),
        n_annotations=float(model.data.n_annotations),
        loss=options.loss,
        treatment=options.treatment,
        options=options.optimiser,
        state=None if previous is None else previous.state,
    )
    first = None
    while True:
        try:
            step: Step = next(steps)
        except StopIteration as stop:
            result: TrainingResult = stop.value
            return result
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / options.optimiser.precision + 1e-9)
        yield TrainingProgress(
            "Learning",
            float(np.clip(done, 0, 1)),
            step.objective,
            step.gap,
            _plain(step.weights, features),
        )


def _plain(weights: Array, features: FeatureSet) -> Model:
    units = tuple(f.unit for f in features.features)
    return Model(features.keys, np.asarray(weights, dtype=np.float64), units)


def _keep(
    model: TrackingModel,
    prior: Array,
    w: Array,
    strength: float,
    validation: Validation | None,
    settled: Training | None,
) -> tuple[str, str]:
    """Keep the better of the prior and the learned weights on labels they have not seen."""
    if validation is None:
        before, after = judge(model, prior), judge(model, w)
        if settled is not None and after.risk < before.risk:
            return "trained", (
                "the trained model was updated; that it is better than the starting model was "
                f"checked by an earlier training, on {_checked(settled)} annotations"
            )
        if after.risk < before.risk:
            return "trained", (
                "there were too few annotations to check the model on ones it had not seen; it "
                "explains the given ones better than the starting model"
            )
        return "prior", "the annotations agree with the starting model, which is kept"
    learned = validation.held_out[validation.strengths.index(strength)]
    before = validation.prior
    seen = f"{_percent(learned)} against {_percent(before)} of held-out annotations wrong"
    better = learned.error < before.error - 1e-9 or (
        learned.error <= before.error + 1e-9 and learned.risk < before.risk
    )
    if better and learned.error < before.error - 1e-9:
        return "trained", f"the trained model is better than the starting model ({seen})"
    if better:
        return "trained", (
            "the trained model is right on as many held-out annotations as the starting model "
            f"({seen}), by larger margins"
        )
    return "prior", f"the trained model was not better than the starting model ({seen})"


def _checked(settled: Training) -> int:
    """Annotations of the cross-validation that a training rests on."""
    return 0 if settled.validation is None else len(settled.validation.prior.wrong)


def _percent(held: HeldOut) -> str:
    return f"{100 * held.error:.1f} %"


def _held_out(validation: Validation | None, strength: float, kept: str) -> HeldOut | None:
    if validation is None:
        return None
    if kept == "prior":
        return validation.prior
    return validation.held_out[validation.strengths.index(strength)]


def _choices(scenes: Sequence[Scene], weights: Array) -> list[NDArray[np.bool_]]:
    """Chosen hypotheses of every movie under its annotations.

    Raises
    ------
    ContradictionError
        Where annotations leave no choice; the message names them.
    """
    chosen = []
    for scene in scenes:
        try:
            found = solve(scene.problem, scene.matrix.scores(weights), allowed_by(scene))
        except InfeasibleError as error:
            raise explain_contradiction(scene) from error
        chosen.append(found.chosen)
    return chosen


def _population(scenes: Sequence[Scene], chosen: Sequence[NDArray[np.bool_]]) -> Array:
    """How often each kind of event is chosen, over all movies, shape (len(Event),)."""
    count = np.zeros(len(Event))
    for scene, mine in zip(scenes, chosen, strict=True):
        count += np.bincount(scene.hypotheses.event[mine], minlength=len(Event))
    return count


def _pairs(one: Array, other: Array) -> dict[str, tuple[int, int]]:
    """Two numbers for every kind of event."""
    return {e.key: (int(one[e]), int(other[e])) for e in Event}


def _model(
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
    plain = _plain(weights, features)
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
    )


def _notes(scenes: Sequence[Scene], data: TrainingSet) -> tuple[str, ...]:
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
