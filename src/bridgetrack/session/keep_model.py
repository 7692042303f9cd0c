"""Keeping the model in use in the library of models."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from psygnal import Signal

from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import BridgetrackError
from bridgetrack.models.entry import ModelEntry, new_card
from bridgetrack.models.library import check_name, free_name
from bridgetrack.models.preview import preview_png
from bridgetrack.pipeline.movie_record import preview_picture
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.start_choice import StartChoice, look_at
from bridgetrack.session.tracked_movie import TrackedMovie
from bridgetrack.session.training import Trainer

JOB = "keep the model"
"""Name of the background work."""


class ModelKeeper:
    """Keeps models, with what is known of the movie they learned from; emits `changed`.

    Attributes
    ----------
    problem
        What was wrong with the last intent, empty where nothing was.
    """

    changed = Signal()

    def __init__(self, movie: TrackedMovie, trainer: Trainer, starts: StartChoice) -> None:
        self._movie, self._trainer, self._starts = movie, trainer, starts
        self.problem = ""
        for signal in (movie.model_changed, movie.scene_changed, starts.changed):
            signal.connect(self.changed.emit)

    @property
    def busy(self) -> bool:
        """Whether a model is being kept."""
        return self._movie.busy(JOB)

    @property
    def why_not(self) -> str:
        """Why the model in use cannot be kept; empty where it can."""
        model = self._movie.model
        if not model.trained:
            return "The model in use is the shipped one; train first, then keep what was learned."
        if self._movie.tracking is None:
            return "Keeping a model needs its movie with its cells; see the step Cells."
        kept = [e.model for e in self._starts.kept if e.model is not None]
        if any(m.keys == model.keys and np.array_equal(m.weights, model.weights) for m in kept):
            return "The model in use is kept already."
        return ""

    @property
    def suggested_name(self) -> str:
        """A name for the model in use."""
        open_movie = self._movie.movie
        wanted = open_movie.name if open_movie is not None else "model"
        return free_name(wanted, [e.name for e in self._starts.kept])

    def keep(self, name: str, description: str = "") -> bool:
        """Begin to keep the model in use; whether that could begin."""
        movie, library = self._movie, self._starts.library
        tracking, source, model = movie.tracking, movie.movie, movie.model
        self.problem = self.why_not
        if not self.problem:
            try:
                name = check_name(name)
            except BridgetrackError as error:
                self.problem = str(error)
        if self.problem or tracking is None or source is None:
            self.changed.emit()
            return False
        image, known = source.image, self._starts.statistics
        learned, annotations = self._trainer.outcome is not None, movie.annotations
        counts = annotations.counts(Kind.CONFIRM) if learned and annotations is not None else None

        def work() -> Steps[ModelEntry]:
            statistics = None
            if learned:
                statistics = known or (yield from look_at(tracking))
            card = new_card(model, description, statistics, counts)
            yield Progress("Drawing a picture of it", 0.8)
            picture = preview_picture(tracking, image)
            return library.save(name, model, card, preview_png(card, picture))

        movie.run(
            JOB,
            work,
            self._kept,
            self._failed,
            unfinished=f"Keeping the model as {name} ended, as its movie or its cells are not open "
            "any more; open them to keep it.",
        )
        self.changed.emit()
        return True

    def _kept(self, entry: ModelEntry) -> None:
        words = f"Kept as {entry.name}."
        if entry.card is not None and entry.card.statistics is not None:
            self._movie.message.emit("info", words)
        else:
            self._movie.message.emit(
                "warning",
                f"{words} It was not trained on this movie here, so how similar other movies are "
                "cannot be told.",
            )
        self._starts.refresh()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self.changed.emit()

    def import_file(self, path: Path) -> None:
        """Take a model file into the library."""
        self.problem = ""
        try:
            entry = self._starts.library.import_file(path)
        except BridgetrackError as error:
            self.problem = str(error)
            self.changed.emit()
            return
        self._movie.message.emit("info", f"Kept as {entry.name}.")
        self._starts.refresh()
