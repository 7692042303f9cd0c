"""Training on the open movie: the models, and the outcome in plain words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from psygnal import Signal

from bridgetrack.annotations.annotation import NOUN, Annotation
from bridgetrack.errors import sentence
from bridgetrack.hypotheses.events import Event
from bridgetrack.models.library import SHIPPED, Library
from bridgetrack.models.model import Model, load_model, save_model, shipped_model
from bridgetrack.pipeline.project import Outcome
from bridgetrack.pipeline.tracking import known_solution
from bridgetrack.progress import Steps
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.train import Training, train_steps

JOB, JUDGING = "train", "judge"

PRESENT = ""
"""Key of the model in use; `SHIPPED` is that of the shipped model."""

if TYPE_CHECKING:
    from bridgetrack.session.session import Session


class Trainer:
    """Learns from the answers about the movie; emits `changed` when there is something to show."""

    changed = Signal()

    def __init__(self, movie: Session, library: Library | None = None) -> None:
        self._movie = movie
        self.library = library or Library()  # the folder of models
        # The last training; None if the movie was opened again or another model is in use since.
        self.training: Training | None = None
        self.problem = ""  # why it could not train, empty where it could
        movie.progress.connect(self._on_progress)
        movie.movie_changed.connect(self._on_movie)
        movie.model_changed.connect(self._on_model)

    @property
    def busy(self) -> bool:
        """Whether training is under way."""
        return self._movie.busy(JOB)

    @property
    def outcome(self) -> Outcome | None:
        """Outcome of the last training; None if another model is in use."""
        return self._movie.settings.present.training

    def _on_movie(self) -> None:
        self.problem = ""
        self._on_model()

    def _on_model(self) -> None:
        """The outcome of a training does not apply to another model."""
        if self.training is None or self._movie.model is not self.training.model:
            self._movie.cancel(JUDGING)
            self.training = None
        self.changed.emit()

    def train(self, options: TrainingOptions | None = None) -> None:
        """Train in the background, as `Session.train`; the model changes only when it is done."""
        movie, self.problem = self._movie, ""
        if movie.scene is None or movie.annotations is None:
            self.problem = "Choose a movie with its cells first."
        elif not len(movie.annotations):
            self.problem = "There are no answers to learn from yet; give some first."
        if self.problem:
            self.changed.emit()
            return
        movie.cancel(JUDGING)
        start, tracking, answered = movie.settings.start, movie.tracking, movie.tracker.answered()
        if answered is None:
            return

        def train() -> Steps[Training]:
            ready = yield from answered()
            weights = start.aligned(ready.matrix.features)
            known = known_solution(tracking, ready, weights)
            chosen = None if known is None else known.chosen
            return (yield from train_steps(ready, start, options, chosen=chosen, judge=False))

        def done(made: Training) -> None:
            self._done(made, start)

        movie.run(JOB, train, done, self._failed, what="Training")
        self.changed.emit()

    def _on_progress(self, name: str, step: object) -> None:
        if name == JOB:
            self.changed.emit()

    def _done(self, training: Training, start: Model) -> None:
        """Use the new model, then estimate its accuracy."""
        file = next(filter(None, self._movie.movie.files), None) if self._movie.movie else None
        if file is not None:  # the array that is open has no name
            provenance = {**training.model.provenance, "movies": [file.name]}
            training = replace(training, model=replace(training.model, provenance=provenance))
        self.training = training
        doubtful = tuple(a.id for a in training.unusual)
        outcome = Outcome(_told(training), training.suited, doubtful)
        self._movie.settings.set_model(training.model, start, outcome=outcome)
        self._movie.run(JUDGING, training.judged, self._judged, self._failed)
        self.changed.emit()

    def _judged(self, training: Training) -> None:
        outcome = self.outcome
        if outcome is not None and self.training is not None:
            estimate = training.estimate
            right = [estimate.words] if estimate and estimate.says_something else []
            words = (*map(sentence, [*right, training.words]), *outcome.words)
            self.training = training
            better = None
            if training.errors is not None and training.errors[0] != training.errors[1]:
                better = training.errors[0] < training.errors[1]
            known = replace(outcome, words=words, better=better)
            self._movie.settings.describe_model(training.model, known)
        self.changed.emit()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self.changed.emit()

    # ------------------------------------------------------------------ models

    def models(self) -> dict[str, str]:
        """Titles of the models that can be used, by their keys; that of the one in use first."""
        model, names = self._movie.model, tuple[str, ...]()
        with self._movie.telling():
            names = self.library.names()
        used = {PRESENT: f"the model in use ({model.name})"} if model.trained else {}
        others = {name: name for name in names if name != SHIPPED}
        return used | {SHIPPED: "the shipped model"} | others

    @property
    def begins(self) -> str:
        """The starting model, as a sentence."""
        model, start = self._movie.model, self._movie.settings.start
        if not model.trained:
            return "Works on movies of many kinds without any answer; training adapts it to yours."
        if start is model:
            return "Training goes on from the model in use."
        where = "the shipped model" if start.name == SHIPPED else f"the model {start.name}"
        return f"Training starts again from {where}, and learns from all your answers."

    def use(self, which: str | Path) -> None:
        """Track with another one of `models`, by its key, or with that of a file."""
        scene = self._movie.scene
        with self._movie.telling():
            if isinstance(which, Path):
                model = replace(load_model(which), name=which.stem)
                told = f"the model of {which.name}"
            elif which == SHIPPED:
                features = None if scene is None else scene.matrix.features
                model, told = shipped_model(features), "the shipped model"
            else:
                model, told = self.library.load(which), f"the model {which}"
            self._movie.settings.set_model(model)
            self._movie.message.emit("info", f"Using {told}.")

    def save(self, path: Path) -> None:
        """Write the present model to a file."""
        with self._movie.telling():
            save_model(replace(self._movie.model, name=path.stem), path)
            self._movie.message.emit("info", f"Saved the model to {path}.")

    # ------------------------------------------------------------------ words

    def results(self) -> list[str]:
        """The result of the last training, as sentences."""
        testing = ["Testing how accurate it is…"] * self._movie.busy(JUDGING)
        return [] if self.outcome is None else [*testing, *self.outcome.words]

    @property
    def unsuited(self) -> bool:
        """Whether too many answers contradict events of which the starting model was certain."""
        return self.outcome is not None and not self.outcome.suited

    def doubtful(self) -> list[Annotation]:
        """Unusual answers that are still valid."""
        have = self._movie.annotations
        if self.outcome is None or have is None or self.unsuited:
            return []
        return [have[name] for name in self.outcome.doubtful if name in have]

    def doubt(self) -> str:
        """Where they are, or that the model does not suit the movie; empty if neither applies."""
        if self.unsuited:
            return (
                "Many of your answers contradict events the model was certain of: it does not fit "
                "this movie well. The tracks follow your answers."
            )
        n = len(self.doubtful())
        if not n:
            return ""
        look = "answer looks unusual: it is" if n == 1 else "answers look unusual: they are"
        return (
            f"{n} {look} listed first among your answers in step 2. A click there goes to the cell."
        )


def _told(training: Training) -> tuple[str, ...]:
    """How many events of each kind the new model finds more or less often, as a sentence."""
    parts = [
        f"{NOUN[Event.from_key(key)][1]} {before} → {after}"
        for key, (before, after, *_) in training.changes.items()
        if before != after
    ]
    return (f"In this movie: {', '.join(parts)}.",) if parts else ()
