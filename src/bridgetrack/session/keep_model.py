"""Keeping the model in use in the library: the controller, without Qt."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from psygnal import Signal

from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import BridgetrackError
from bridgetrack.models.entry import new_record
from bridgetrack.models.library import Entry, check_name, free_name
from bridgetrack.models.preview import preview_png
from bridgetrack.pipeline.movie_record import preview_picture
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.session import Session
from bridgetrack.session.start_choice import Librarian, look_at
from bridgetrack.session.training import Trainer

JOB = "keep the model"
"""Name of the background work."""


class Keeper:
    """Keeps models, with what is known of the movie they learned from; emits `changed`.

    Attributes
    ----------
    problem
        What was wrong with the last intent, empty where nothing was.
    """

    changed = Signal()

    def __init__(self, session: Session, trainer: Trainer, librarian: Librarian) -> None:
        self._session, self._trainer, self._librarian = session, trainer, librarian
        self.problem = ""
        for signal in (session.model_changed, session.scene_changed, librarian.changed):
            signal.connect(self.changed.emit)

    @property
    def busy(self) -> bool:
        """Whether a model is being kept."""
        return self._session.busy(JOB)

    @property
    def why_not(self) -> str:
        """Why the model in use cannot be kept; empty where it can."""
        session = self._session
        model = session.model
        if not model.loss:
            return "The model in use is the shipped one; train first, then keep what was learned."
        if session.tracking is None:
            return "Keeping a model needs its movie with its cells; see the step Cells."
        kept = [e.model for e in self._librarian.kept if e.model is not None]
        if any(m.keys == model.keys and np.array_equal(m.weights, model.weights) for m in kept):
            return "The model in use is kept already."
        return ""

    @property
    def suggested_name(self) -> str:
        """A name for the model in use."""
        source = self._session.source
        wanted = source.name if source is not None else "model"
        return free_name(wanted, [e.name for e in self._librarian.kept])

    def keep(self, name: str, description: str = "") -> bool:
        """Begin to keep the model in use; whether that could begin."""
        session, library = self._session, self._librarian.library
        tracking, source, model = session.tracking, session.source, session.model
        self.problem = self.why_not
        if not self.problem:
            try:
                name = check_name(name)
            except BridgetrackError as error:
                self.problem = str(error)
        if self.problem or tracking is None or source is None:
            self.changed.emit()
            return False
        image, known = source.image, self._librarian.statistics
        learned, annotations = self._trainer.training is not None, session.annotations
        counts = annotations.counts(Kind.CONFIRM) if learned and annotations is not None else None

        def work() -> Steps[Entry]:
            statistics = None
            if learned:
                statistics = known or (yield from look_at(tracking))
            record = new_record(model, description, statistics, counts)
            yield Progress("Drawing a picture of it", 0.8)
            picture = preview_picture(tracking, image)
            return library.save(name, model, record, preview_png(record, picture))

        session.run(JOB, work, self._kept, self._failed)
        self.changed.emit()
        return True

    def _kept(self, entry: Entry) -> None:
        words = f"Kept as {entry.name}."
        if entry.record is not None and entry.record.statistics is not None:
            self._session.message.emit("info", words)
        else:
            self._session.message.emit(
                "warning",
                f"{words} It was not trained on this movie here, so how similar other movies are "
                "cannot be told.",
            )
        self._librarian.refresh()

    def _failed(self, error: Exception) -> None:
        self.problem = str(error)
        self.changed.emit()

    def import_file(self, path: Path) -> None:
        """Take a model file into the library."""
        self.problem = ""
        try:
            entry = self._librarian.library.import_file(path)
        except BridgetrackError as error:
            self.problem = str(error)
            self.changed.emit()
            return
        self._session.message.emit("info", f"Kept as {entry.name}.")
        self._librarian.refresh()
