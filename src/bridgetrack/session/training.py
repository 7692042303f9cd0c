"""Training on the open movie, and what came of it in plain words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from psygnal import Signal

from bridgetrack.annotations.annotation import NOUN, Annotation, EventRef, Kind
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import Model, load_model, save_model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.notes import plural
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import known_solution
from bridgetrack.progress import Steps
from bridgetrack.session.tracked_movie import TrackedMovie, unlooked
from bridgetrack.training.estimate import ErrorEstimate
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training, TrainingProgress
from bridgetrack.training.train import train_steps

JOB = "train"

WANTED: Mapping[Event, int] = {
    Event.MOVE: 10,
    Event.DIVIDE: 5,
    Event.APPEAR: 3,
    Event.DISAPPEAR: 3,
}
"""Answers per event from which on it is no longer called thin."""

_HOW = {
    Event.MOVE: "press Enter on cells that the model links rightly, C to link others",
    Event.DIVIDE: "press Y on a mother, then click her daughters",
    Event.APPEAR: "press A on a cell that was not there before",
    Event.DISAPPEAR: "press L on a cell in its last frame",
}


@dataclass(frozen=True)
class Outcome:
    """What came of a training, as it is told to people.

    Parameters
    ----------
    words
        What it brought, as sentences.
    suited
        Whether the starting model suits the movie, see `Training`.
    doubtful
        Ids of answers that contradict the starting model clearly, and that nobody called right
        since.
    """

    words: tuple[str, ...]
    suited: bool = True
    doubtful: tuple[str, ...] = ()


class Trainer:
    """Learns from the answers about the movie; emits `changed` when there is something to show.

    `curve` holds (objective, gap) of the training under way or of the last one; `training` is what
    that one made, and `outcome` what is told of it, also after the movie was opened again.
    """

    changed = Signal()

    def __init__(self, movie: TrackedMovie) -> None:
        self._movie = movie
        self.curve: list[tuple[float, float]] = []
        self.training: Training | None = None
        self.outcome: Outcome | None = None
        self._of: Model | None = None  # what the outcome is told of
        self._doubted: tuple[Annotation, ...] = ()
        self.problem = ""
        self._right: set[tuple[Kind, tuple[EventRef, ...]]] = set()
        movie.progress.connect(self._on_progress)
        movie.movie_changed.connect(self._reset)
        movie.model_changed.connect(self._follow_model)

    @property
    def busy(self) -> bool:
        """Whether training is under way."""
        return self._movie.busy(JOB)

    def _reset(self) -> None:
        self.curve, self.problem = [], ""
        self._forget()
        self.changed.emit()

    def _forget(self) -> None:
        self.training, self.outcome, self._of, self._doubted = None, None, None, ()

    def _follow_model(self) -> None:
        """What came of a training says nothing of another model."""
        if self.outcome is not None and self._movie.model is not self._of:
            self._forget()
            self.changed.emit()

    def resume(self, outcome: Outcome) -> None:
        """Tell again what came of a training when the movie was open before."""
        have = self._movie.annotations
        if have is not None:
            self._doubted = tuple(have[name] for name in outcome.doubtful if name in have)
            self.outcome, self._of = outcome, self._movie.model
            self.changed.emit()

    def train(
        self,
        options: TrainingOptions | None = None,
        prior: Model | None = None,
        steps: Callable[[Scene], Steps[Training]] | None = None,
    ) -> None:
        """Train in the background; the model changes only when it is done.

        `steps` trains in another way, which may do without answers.
        """
        movie = self._movie
        self.problem = ""
        if movie.scene is None or movie.annotations is None:
            self.problem = "Choose a movie with its cells first."
        elif movie.partial is not None:
            self.problem = f"{unlooked(movie.partial)} Train when all are known."
        elif steps is None and not len(movie.annotations):
            self.problem = "There are no answers to learn from yet; give some first."
        if self.problem:
            self.changed.emit()
            return
        self.curve = []
        start = None if steps is not None else prior or shipped_model()
        tracking = movie.tracking

        def usual(ready: Scene) -> Steps[Training]:
            weights = (start or shipped_model()).aligned(ready.matrix.features)
            known = known_solution(tracking, ready, weights)
            chosen = None if known is None else [known.chosen]
            return train_steps(ready, start, options, chosen=chosen)

        train = steps or usual
        movie.finish_correcting(
            lambda ready: movie.run(
                JOB,
                lambda: train(ready),
                lambda made: self._done(made, start),
                self._failed,
                unfinished=_UNFINISHED,
            ),
            _UNFINISHED,
        )
        self.changed.emit()

    def _on_progress(self, name: str, step: object) -> None:
        if name == JOB:
            if isinstance(step, TrainingProgress) and np.isfinite(step.gap):
                self.curve.append((step.objective, step.gap))
            self.changed.emit()

    def _done(self, training: Training, start: Model | None) -> None:
        self.training, self._of, self._doubted = training, training.model, training.unusual
        words = [sentence(_how_right(training.estimate)), sentence(training.words)]
        changes = changes_in_words(training.changes)
        doubtful = tuple(a.id for a in training.unusual if _said(a) not in self._right)
        self.outcome = Outcome(
            (*words, changes) if changes else tuple(words),
            training.suited,
            doubtful,
        )
        self._movie.set_model(training.model, start)
        self.changed.emit()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self.changed.emit()

    # ------------------------------------------------------------------ models

    def load(self, path: Path) -> None:
        """Use the model of a file."""
        with self._movie.telling():
            self.use(load_model(path))
            self._movie.message.emit("info", f"Using the model of {path.name}.")

    def save(self, path: Path) -> None:
        """Write the present model to a file."""
        with self._movie.telling():
            save_model(replace(self._movie.model, name=path.stem), path)
            self._movie.message.emit("info", f"Saved the model to {path}.")

    def use(self, model: Model) -> None:
        """Track with another model."""
        self._forget()
        self._movie.set_model(model)
        self.changed.emit()

    def start_over(self) -> None:
        """Go back to the model that learned nothing."""
        self.use(shipped_model())

    def go_back(self) -> None:
        """Use the model from before the last change."""
        self._forget()
        self._movie.earlier_model()
        self.changed.emit()

    # ------------------------------------------------------------------ words

    def results(self) -> list[str]:
        """What the last training brought, as sentences."""
        return [] if self.outcome is None else list(self.outcome.words)

    @property
    def unsuited(self) -> bool:
        """Whether too many answers contradict what the starting model was sure of."""
        return self.outcome is not None and not self.outcome.suited

    def doubtful(self) -> list[Annotation]:
        """Unusual answers that still stand."""
        have = self._movie.annotations
        if self.outcome is None or have is None or self.unsuited:
            return []
        given = [a for a in self._doubted if a.id in self.outcome.doubtful]
        return [a for a in given if a.id in have and _said(have[a.id]) == _said(a)]

    def doubt(self) -> str:
        """What they are, as a sentence; or why there are none."""
        if self.unsuited:
            return (
                "Many answers contradict what the model was sure of before. It does not suit this "
                "movie well; what you say counts."
            )
        if len(self.doubtful()) == 1:
            return "This answer looks unusual. Check it? A click goes there."
        return "These answers look unusual. Check them? A click goes there."

    def all_right(self) -> None:
        """The doubtful answers were looked at: they hold."""
        listed = self.doubtful()
        self._right |= {_said(a) for a in listed}
        if self.outcome is not None:
            left = set(self.outcome.doubtful) - {a.id for a in listed}
            self.outcome = replace(self.outcome, doubtful=tuple(sorted(left)))
        self.changed.emit()

    def advice(self) -> list[str]:
        """Which events are thinly annotated, and what to do."""
        annotations = self._movie.annotations
        if annotations is None:
            return []
        counts = annotations.counts(Kind.CONFIRM)
        words = []
        for event, wanted in WANTED.items():
            if counts[event] < wanted:
                noun = NOUN[event][1]
                words.append(f"{noun.capitalize()}: {counts[event]} so far; {_HOW[event]}.")
        return words


_UNFINISHED = (
    "Training ended before it was done, as its movie or its cells are not open any more; the "
    "answers stay, and the model in use."
)

WIDEST = 0.4
"""Width of the interval up to which an estimate is told and drawn; wider ones alarm for nothing."""


def _how_right(estimate: ErrorEstimate | None) -> str:
    """What the answers set aside say, in words that few of them bear."""
    if estimate is None:
        return "there are too few answers to say how good it is"
    if estimate.high - estimate.low <= WIDEST:
        return estimate.words
    right = round(sum(share for *_, share in estimate.per_event))
    return (
        f"with the model in use, {right} of {plural(estimate.n_annotations, 'answer')} that were "
        "set aside came out right: too few to say how right the whole movie is"
    )


def sentence(words: str) -> str:
    """With a capital and a full stop; nothing stays nothing."""
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def changes_in_words(changes: Mapping[str, tuple[int, int]]) -> str:
    """How many events of each kind the new model finds more or less often."""
    parts = []
    for key, (before, after) in changes.items():
        if before != after:
            parts.append(f"{NOUN[Event.from_key(key)][1]} {before} → {after}")
    return f"In this movie: {', '.join(parts)}." if parts else ""


def _said(annotation: Annotation) -> tuple[Kind, tuple[EventRef, ...]]:
    """What an annotation says, whatever its id."""
    return annotation.kind, annotation.events
