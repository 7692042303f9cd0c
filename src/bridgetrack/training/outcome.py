"""Progress and outcome of a training, and the events that it changes in the movie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from bridgetrack.annotations.annotation import Annotation, describe
from bridgetrack.arrays import Array, Mask
from bridgetrack.errors import InfeasibleError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.solve import solve
from bridgetrack.learning import TrainingResult
from bridgetrack.models.model import Model
from bridgetrack.notes import Note, NoteKind, plural
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import explain_contradiction
from bridgetrack.progress import Progress, Steps
from bridgetrack.training.estimate import ErrorEstimate
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.sources import name_of
from bridgetrack.training.training_set import TrainingSet
from bridgetrack.training.unusual import (
    CONFIDENT,
    UNUSUAL,
    explained_by_slips,
    margins_of_answers,
)

_LISTED = 3
"""Unusual answers that a note lists."""


@dataclass(frozen=True)
class TrainingProgress(Progress):
    """Progress of a training."""

    # best objective so far and its duality gap
    objective: float = np.nan
    gap: float = np.nan
    # the best model so far, which can be saved if training is cancelled. None while nothing was
    # learned
    model: Model | None = None


@dataclass(frozen=True)
class Training:
    """A finished training."""

    model: Model  # the trained model
    lambda_: float  # the λ used
    # how strongly the weights of several movies were tied; infinite: the same weights
    rho: float | None
    step: float  # share of the step from the starting to the fitted weights that was taken
    result: TrainingResult  # what the learner reports
    # events chosen with the prior and with the new model, per kind
    changes: dict[str, tuple[int, int]]
    # events gained and lost from the one to the other, per kind
    exchanged: dict[str, tuple[int, int]]
    n_annotations: int  # annotations used
    # notes: annotations that were not used, kinds of events without annotations
    notes: tuple[Note, ...]
    # strategy and names of the sources, if there were any (`train.train_steps`)
    origin: tuple[str, ...] = ()
    # annotations that contradict the starting model by a wide margin; most of them are mistakes,
    # unless there are many
    unusual: tuple[Annotation, ...] = ()
    # whether mistakes can explain their number; otherwise the starting model does not suit the
    # movie
    suited: bool = True
    # errors of the trained and the starting model on held-out answers, as a sentence; empty until
    # it is judged
    words: str = ""
    # accuracy on held-out annotations; None if there are too few, or until it is judged
    estimate: ErrorEstimate | None = None
    # makes the same training with ``words`` and ``estimate``
    judge: Callable[[Training], Steps[Training]] | None = field(default=None, repr=False)

    def judged(self) -> Steps[Training]:
        """The same with the cross-validated accuracy of the model."""
        if self.judge is None:
            return self
        return replace((yield from self.judge(self)), judge=None)


def plain_model(weights: Array, features: FeatureSet) -> Model:
    """Weights as a model without further information."""
    units = tuple(f.unit for f in features.features)
    return Model(features.keys, np.asarray(weights, dtype=np.float64), units)


def trained_model(
    plain: Model,
    prior: Model,
    options: TrainingOptions,
    lambda_: float,
    result: TrainingResult,
    scene: Scene,
    data: TrainingSet | None,
    step: float,
) -> Model:
    """Learned weights as a model, still without the estimate of its accuracy."""
    return replace(
        plain,
        name="trained",
        loss=options.loss,
        regularizer=options.regularizer,
        strength=lambda_,
        history={
            "objective": [float(s.objective) for s in result.steps],
            "gap": [float(s.gap) if np.isfinite(s.gap) else None for s in result.steps],
            "bounds": [s.n_bounds for s in result.steps],
        },
        provenance={
            "movies": [name_of(scene)],
            "annotations": 0 if data is None else data.n_annotations,
            "prior": prior.name,
            "step": step,
            "image": bool(scene.detections.channels),
            "scaling": "features are divided by the cell diameter and the robust spread of the "
            "movie they are computed on",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        tightness=prior.tightness_for(scene.matrix.features),
    )


def remarks(
    scene: Scene, data: TrainingSet, start: Array
) -> tuple[tuple[Annotation, ...], bool, tuple[Note, ...]]:
    """Unusual annotations, whether the starting model suits the movie, and notes.

    Notes tell of annotations that were not used, of kinds of events without any, and of those that
    contradict the starting model, whose weights (d,) are `start`.
    """
    used, notes, margin = scene.constraints.annotation, [], margins_of_answers(data, start)
    unusual = tuple(scene.anchored.listed[k] for k in used[margin <= -UNUSUAL])
    against, about = int((margin <= -CONFIDENT).sum()), int((np.abs(margin) >= CONFIDENT).sum())
    suited = explained_by_slips(against, about - against)
    why = {lost.id: f"{lost.cell}: {lost.reason}" for lost in scene.anchored.lost}
    unused = [
        Note(NoteKind.UNUSED, f"annotation {name} was not used: {words}")
        for name, words in (*why.items(), *scene.constraints.unused.items())
    ]
    if not data.single.any():
        notes.append("all annotations are rejections; confirm some events, too")
    for event in (Event.MOVE, Event.DIVIDE, Event.APPEAR, Event.DISAPPEAR):
        if not (data.event == event).any():
            notes.append(f"no {event.key} was annotated; its weights stay near the starting model")
    if unusual:
        names = ", ".join(f"{a.id} ({describe(a)})" for a in unusual[:_LISTED])
        more = f" and {len(unusual) - _LISTED} more" if len(unusual) > _LISTED else ""
        notes.append(
            f"{plural(len(unusual), 'unusual answer')}, for which the starting model would clearly "
            f"choose another event; please check: {names}{more}"
        )
    if not suited:
        notes.append(
            f"{against} of {about} answers contradict events that the starting model is very "
            "confident about: it does not suit this movie"
        )
    return unusual, suited, (*unused, *(Note(NoteKind.REMARK, words) for words in notes))


def choice(scene: Scene, weights: Array) -> Mask:
    """Hypotheses that are chosen under the annotations; those that leave no choice are named."""
    try:
        found = solve(scene.problem, scene.matrix.scores(weights), scene.constraints.allowed)
    except InfeasibleError as error:
        raise explain_contradiction(scene) from error
    return found.chosen


def population_of(scene: Scene, chosen: Mask) -> Array:
    """How often each kind of event is among some hypotheses, shape (len(Event),)."""
    count = np.bincount(scene.hypotheses.event[chosen], minlength=len(Event))
    return count.astype(np.float64)


def per_kind(scene: Scene, one: Mask, other: Mask) -> dict[str, tuple[int, int]]:
    """How many hypotheses of each kind of event are in two selections."""
    counts = (population_of(scene, mask).astype(int).tolist() for mask in (one, other))
    return {event.key: pair for event, pair in zip(Event, zip(*counts, strict=True), strict=True)}
