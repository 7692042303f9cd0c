"""The interactive max-margin update: one short fit, warm-started, with a fixed lambda.

000 uses a perceptron pass after each label because max-margin training was too slow to wait for.
Here the bounds and outputs found before are recycled, only annotated components are looked at, and
lambda is not chosen anew, which takes a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.active.annotated_part import Pieces
from bridgetrack.learning import L2, TrainingOptions, train
from bridgetrack.learning.result import TrainingResult, TrainingState
from bridgetrack.models.model import Model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.balance import balanced
from bridgetrack.training.options import TrainingOptions as Choices
from bridgetrack.training.options import default_strength
from bridgetrack.training.sure import Granted, hold_sure
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LearnOptions:
    """How the model is updated while answers are given: as training does with its defaults.

    Parameters
    ----------
    strength
        The factor lambda of the regulariser around the starting weights; None: that of training,
        `bridgetrack.training.options.default_strength`.
    balance
        How far kinds of events are weighted by how often they occur, see
        `bridgetrack.training.balance.balanced`.
    tied
        Whether each weight is held as tightly as the starting model says (learned from other
        movies), or all alike.
    hold_sure
        Whether events that the starting model is sure of are held near annotated ones, see
        `bridgetrack.training.sure.hold_sure`.
    precision
        Duality gap that is enough, in task loss per annotation.
    most_calls
        Inferences over all annotated components at most.
    """

    strength: float | None = None
    balance: float = Choices.balance
    tied: bool = True
    hold_sure: bool = Choices.hold_sure
    precision: float = 5e-3
    most_calls: int = 60

    def strength_for(self, annotations: int) -> float:
        """The factor lambda for a number of annotations."""
        return default_strength(annotations) if self.strength is None else self.strength


@dataclass(frozen=True)
class Start:
    """Where learning starts, and what it stays close to.

    Parameters
    ----------
    weights
        Shape (d,).
    tightness
        How tightly each weight is held, shape (d,); all alike where None.
    """

    weights: Array
    tightness: Array | None = None

    @classmethod
    def of(cls, scene: Scene, model: Model) -> Start:
        """A model as the start for a movie.

        Raises
        ------
        ModelError
            Where the model was made with other features.
        """
        features = scene.matrix.features
        return cls(model.aligned(features), model.tied(features))

    def regularizer(self, strength: float, tied: bool) -> L2:
        """The L2 regulariser around it."""
        return L2(strength, prior=self.weights, metric=self.tightness if tied else None)


@dataclass(frozen=True)
class Learned:
    """Weights after an update.

    Parameters
    ----------
    weights
        Shape (d,).
    state
        What the next update can reuse.
    model
        The annotated components as they were learned from; None where no annotation constrains
        anything.
    granted
        The events that the starting weights are sure of; None where none were to be held.
    """

    weights: Array
    state: TrainingState | None
    model: TrackingModel | None
    granted: Granted | None = None


def learn(
    scene: Scene,
    start: Start,
    population: Array,
    options: LearnOptions,
    last: Learned | None = None,
    pieces: Pieces | None = None,
) -> Steps[Learned]:
    """Fit the annotations of a scene, staying close to the starting weights.

    Parameters
    ----------
    scene
        With its annotations.
    start
        The starting weights.
    population
        How often each kind of event occurs in the movie, shape (len(Event),).
    options
        Choices.
    last
        What an earlier update learned: its bounds and programs are used again.
    pieces
        Components of the movie, where they are known: then the time does not grow with the movie.
    """
    yield Progress("Learning", 0.0)
    state, earlier = (None, None) if last is None else (last.state, last.model)
    if not len(scene.constraints):
        return Learned(start.weights, state, None)
    found = build_training_set([scene]) if pieces is None else pieces.training_set(scene)
    data = balanced(found, population, options.balance)
    granted: Granted | None = None
    if options.hold_sure:
        granted = hold_sure(data, start.weights, None if last is None else last.granted)
        data = granted.data
    model = TrackingModel(data, earlier=earlier)
    rows = np.arange(len(data.samples))
    result: TrainingResult = yield from fit_part(model, rows, start, options, state)
    return Learned(result.w, result.state, model, granted)


def fit_part(
    model: TrackingModel,
    rows: NDArray[np.int64],
    start: Start,
    options: LearnOptions,
    state: TrainingState | None,
) -> Steps[TrainingResult]:
    """Fit some of the samples of a training set."""
    data = model.data
    count = int(np.isin(data.annotation_sample, rows).sum())
    steps = train(
        model,
        [data.samples[i] for i in rows.tolist()],
        start.regularizer(options.strength_for(count), options.tied),
        n_annotations=float(count),
        options=TrainingOptions(precision=options.precision, max_oracle_calls=options.most_calls),
        state=state,
    )
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            result: TrainingResult = stop.value
            return result
        yield Progress("Learning", min(step.n_oracle_calls / options.most_calls, 1.0))
