"""Progress and outcome of a training, and the events that it changes in the movies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import numpy as np

from bridgetrack.annotations.annotation import Annotation, describe
from bridgetrack.arrays import Array, Mask
from bridgetrack.errors import InfeasibleError, InputError
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
from bridgetrack.training.pseudo_answers import explained_by_slips
from bridgetrack.training.training_set import TrainingSet

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
    # events chosen with the prior and with the new model, per kind, over all movies
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
    # number of pseudo-answers, and the weight of each relative to an annotation
    n_pseudo: int = 0
    pseudo_weight: float = 0.0
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
    scenes: Sequence[Scene],
    data: TrainingSet | None,
    step: float,
) -> Model:
    """Learned weights as a model, still without the estimate of its accuracy."""
    sources = [s.labels.source if s.labels is not None else "table" for s in scenes]
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
            "movies": [source.replace("\\", "/").rsplit("/", 1)[-1] for source in sources],
            "annotations": 0 if data is None else data.n_annotations,
            "pseudo_answers": 0 if data is None else data.n_pseudo,
            "prior": prior.name,
            "step": step,
            "image": all(bool(s.detections.channels) for s in scenes),
            "scaling": "features are divided by the cell diameter and the robust spread of the "
            "movie they are computed on",
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        },
        tightness=prior.tightness_for(scenes[0].matrix.features),
    )


def remarks(
    scenes: Sequence[Scene], data: TrainingSet
) -> tuple[tuple[Annotation, ...], bool, tuple[Note, ...]]:
    """Unusual annotations, whether the starting model suits the movies, and notes.

    Notes tell of annotations that were not used, of kinds of events without any, and of those that
    contradict the starting model.
    """
    assert data.verdict is not None
    listed = [s.anchored.listed[k] for s in scenes for k in s.constraints.annotation.tolist()]
    unusual = tuple(listed[row] for row in data.unusual)
    against, about = int((data.verdict < 0).sum()), int((data.verdict != 0).sum())
    suited = explained_by_slips(against, about - against)
    unused, notes = [], []
    for scene in scenes:
        for lost in scene.anchored.lost:
            unused.append(f"annotation {lost.id} was not used: {lost.cell}: {lost.reason}")
        for name, why in scene.constraints.unused.items():
            unused.append(f"annotation {name} was not used: {why}")
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
            "confident about: it does not suit this movie, so no pseudo-answers were used"
        )
    told = [Note(NoteKind.UNUSED, words) for words in unused]
    return unusual, suited, (*told, *(Note(NoteKind.REMARK, words) for words in notes))


def common_features(scenes: Sequence[Scene]) -> FeatureSet:
    """The features that all movies have."""
    features = scenes[0].matrix.features
    for number, scene in enumerate(scenes[1:], 2):
        differing = sorted(set(features.keys) ^ set(scene.matrix.features.keys))
        if differing or features.keys != scene.matrix.features.keys:
            raise InputError(
                f"movie {number} does not have the same features as the first "
                f"({', '.join(differing) or 'in another order'}); prepare all with the same ones"
            )
    return features


def choices(scenes: Sequence[Scene], weights: Array) -> list[Mask]:
    """Chosen hypotheses of every movie under its annotations; those that leave none are named."""
    chosen = []
    for scene in scenes:
        try:
            found = solve(scene.problem, scene.matrix.scores(weights), scene.constraints.allowed)
        except InfeasibleError as error:
            raise explain_contradiction(scene) from error
        chosen.append(found.chosen)
    return chosen


def population_of(scenes: Sequence[Scene], chosen: Sequence[Mask]) -> Array:
    """How often each kind of event is chosen, over all movies, shape (len(Event),)."""
    count = np.zeros(len(Event))
    for scene, mine in zip(scenes, chosen, strict=True):
        count += np.bincount(scene.hypotheses.event[mine], minlength=len(Event))
    return count


def exchanged(before: Sequence[Mask], after: Sequence[Mask]) -> tuple[list[Mask], list[Mask]]:
    """Hypotheses of every movie that are newly chosen, and those that no longer are."""
    both = list(zip(before, after, strict=True))
    return [new & ~old for old, new in both], [old & ~new for old, new in both]


def per_kind(one: Array, other: Array) -> dict[str, tuple[int, int]]:
    """Two numbers for every kind of event."""
    return {e.key: (int(one[e]), int(other[e])) for e in Event}
