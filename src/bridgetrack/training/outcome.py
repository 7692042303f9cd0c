"""What a training reports while it runs and when it is done.

The model that a training leaves behind, and remarks about its annotations.

What two models choose in the same movies.

How far the learning of weights has come, for people.

What becomes of learned weights: the events they change, how good they are, and the model.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.errors import InfeasibleError, InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.learning.result import Step, TrainingResult, TrainingState
from bridgetrack.models.model import Model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import allowed_by, explain_contradiction
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.estimate import Estimate, estimate_accuracy
from bridgetrack.training.joint import Tie, Trial
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.sure import Granted, doubtful_of, notes_on
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.validation import HeldOut, Validation

Array = NDArray[np.float64]
Result = TypeVar("Result")


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
class Transfer:
    """How a training used earlier movies.

    Parameters
    ----------
    tie
        How strongly they were tied together.
    result
        What joint training reports, the weights of every movie among it.
    n_annotations
        Annotations of each earlier movie.
    trials
        What cross-validation tried, in the order of preference; empty where it was not possible.
    states
        Of the earlier movies, for a later training.
    start
        Weights that the training started from where movies are tied; None: the prior.
    """

    tie: Tie
    result: TrainingResult
    n_annotations: tuple[int, ...]
    trials: tuple[Trial, ...]
    states: tuple[TrainingState | None, ...]
    start: NDArray[np.float64] | None = None


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
    origin
        Strategy and names of the sources, where there were any (`strategies`).
    transfer
        How earlier movies were used, or None.
    doubtful
        Annotations that contradict the starting model by a wide margin; most of them are slips,
        unless there are many.
    suited
        Whether there are no more of them than slips explain; otherwise the starting model does
        not suit the movie.
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
    origin: tuple[str, ...] = ()
    transfer: Transfer | None = None
    doubtful: tuple[Annotation, ...] = ()
    suited: bool = True

    @property
    def state(self) -> TrainingState | None:
        """What a later training can reuse."""
        return self.result.state


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


def common_features(scenes: Sequence[Scene]) -> FeatureSet:
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


def choices(scenes: Sequence[Scene], weights: Array) -> list[NDArray[np.bool_]]:
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


def population_of(scenes: Sequence[Scene], chosen: Sequence[NDArray[np.bool_]]) -> Array:
    """How often each kind of event is chosen, over all movies, shape (len(Event),)."""
    count = np.zeros(len(Event))
    for scene, mine in zip(scenes, chosen, strict=True):
        count += np.bincount(scene.hypotheses.event[mine], minlength=len(Event))
    return count


@dataclass(frozen=True)
class Comparison:
    """What a new model chooses and an old one chose, per kind of event.

    Parameters
    ----------
    population
        How often the new one chooses each kind, shape (len(Event),).
    changes
        Numbers of the old and of the new one.
    exchanged
        Events gained and lost from the one to the other.
    """

    population: Array
    changes: dict[str, tuple[int, int]]
    exchanged: dict[str, tuple[int, int]]


def compared(
    scenes: Sequence[Scene], before: Sequence[NDArray[np.bool_]], after: Sequence[NDArray[np.bool_]]
) -> Comparison:
    """Compare what an old and a new model choose."""
    population = population_of(scenes, after)
    gained = population_of(scenes, [new & ~old for old, new in zip(before, after, strict=True)])
    lost = population_of(scenes, [old & ~new for old, new in zip(before, after, strict=True)])
    changes = _pairs(population_of(scenes, before), population)
    return Comparison(population, changes, _pairs(gained, lost))


def _pairs(one: Array, other: Array) -> dict[str, tuple[int, int]]:
    """Two numbers for every kind of event."""
    return {e.key: (int(one[e]), int(other[e])) for e in Event}


def learning_steps(
    steps: Generator[Step, None, Result],
    precision: float,
    features: FeatureSet,
    weights_of: Callable[[Step], NDArray[np.float64]],
) -> Steps[Result]:
    """Tell of each step how much of the gap is closed, on a log scale, and the best model so far.

    Parameters
    ----------
    steps
        A fit.
    precision
        The gap at which it ends.
    features
        Of the model.
    weights_of
        Those of a step that belong to the movie of interest, shape (d,).
    """
    first: float | None = None

    def told(step: Step) -> TrainingProgress:
        nonlocal first
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / precision + 1e-9)
        return TrainingProgress(
            "Learning",
            float(np.clip(done, 0, 1)),
            step.objective,
            step.gap,
            plain_model(weights_of(step), features),
        )

    return relayed(steps, told)


@dataclass(frozen=True)
class Beginning:
    """What a training began with.

    Parameters
    ----------
    scenes
        The movies to learn for.
    features
        Of all movies.
    prior
        The starting model.
    start
        Its weights over the features, shape (d,).
    before
        What it chooses in every movie.
    options
        Choices.
    """

    scenes: Sequence[Scene]
    features: FeatureSet
    prior: Model
    start: Array
    before: Sequence[NDArray[np.bool_]]
    options: TrainingOptions


@dataclass(frozen=True)
class Learned:
    """What was learned and judged.

    Parameters
    ----------
    result
        What the learner reports.
    strength, chosen_by
        The lambda used, and who chose it.
    kept, reason
        ``"trained"`` or ``"prior"``, and why.
    held_out
        What is kept, on annotations that it was not trained on; None where there are too few.
    validation
        The cross-validation, or None.
    """

    result: TrainingResult
    strength: float
    chosen_by: str
    kept: str
    reason: str
    held_out: HeldOut | None
    validation: Validation | None


def conclude(
    beginning: Beginning,
    data: TrainingSet | None,
    learned: Learned,
    settled: Training | None,
    granted: Granted | None,
) -> Steps[Training]:
    """Compare with the starting model, estimate the accuracy and put the model together.

    Parameters
    ----------
    beginning, learned
        Before and after.
    data
        The annotations; None where there were none.
    settled
        An earlier training whose estimate and validation still stand.
    granted
        What the starting weights are sure of; None where that was not asked.
    """
    scenes, options, prior = beginning.scenes, beginning.options, beginning.prior
    weights = learned.result.w if learned.kept == "trained" else beginning.start
    yield Progress("Comparing with the starting model", 0.0)
    comparison = compared(scenes, beginning.before, choices(scenes, weights))
    estimate = None if settled is None else settled.estimate
    if learned.held_out is not None and data is not None:
        estimate = estimate_accuracy(
            learned.held_out.wrong,
            data.event,
            comparison.population,
            bool(data.unbiased.all()),
            options.seed,
        )
    count = 0 if data is None else data.n_annotations
    model = trained_model(
        weights,
        beginning.features,
        prior,
        options,
        learned.strength,
        learned.result,
        scenes,
        count,
        estimate,
    )
    if learned.kept == "prior":
        model = replace(prior, estimate=model.estimate)
    doubtful = doubtful_of(scenes, granted)
    return Training(
        model,
        learned.kept,
        learned.reason,
        learned.strength,
        learned.chosen_by,
        estimate,
        learned.result,
        learned.validation if settled is None else settled.validation,
        comparison.changes,
        comparison.exchanged,
        count,
        (() if data is None else notes_about(scenes, data)) + notes_on(doubtful, granted),
        doubtful=doubtful,
        suited=granted is None or granted.trusted,
    )
