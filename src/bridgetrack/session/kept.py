"""What is kept beside the answers of a movie: cells that have no file, settings, the model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from psygnal import Signal
from pydantic import Field

from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.files import write_text
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.models.model import MODEL_FILE, Model, model_to_json
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie import Movie, open_labels, save_labels
from bridgetrack.movie.geometry import Geometry
from bridgetrack.movie.movie import label_frame
from bridgetrack.pipeline.finding import Finding, beside_labels, finding_to_json, how_found
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.schema import FileFormat, OpenEntry, json_text, of_dataclass
from bridgetrack.session.answers import cells_path, settings_path
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.session import Session
from bridgetrack.session.tracked_movie import TrackedMovie
from bridgetrack.session.training import Outcome

JOB = "keep cells"
"""Name of the background work: writing the cells down."""


class KeptCells:
    """Writes the cells of a movie down where they have no file of their own.

    Answers about masks are kept by themselves. Signals: `aging` when the cells changed by other
    ways, so that they are to be kept soon.
    """

    aging = Signal()

    def __init__(self, movie: TrackedMovie) -> None:
        self._movie = movie
        self.problem = ""  # why the cells could not be kept last, empty where they could
        self._stale, self._writing = False, False
        self._first = True
        movie.movie_changed.connect(self._on_movie)
        movie.masks_changed.connect(self._on_masks)
        movie.scene_changed.connect(self._on_scene)

    @property
    def path(self) -> Path | None:
        """Where the cells are kept; None where they need not be."""
        movie, answers = self._movie.movie, self._movie.answers
        if movie is None or movie.labels is None or movie.files[1] is not None:
            return None
        return None if answers is None or answers.path is None else cells_path(answers.path)

    @property
    def stale(self) -> bool:
        """Whether there is something that is not kept yet."""
        return self.path is not None and (self._stale or self._writing)

    def keep(self) -> None:
        """Write the cells down in the background."""
        movie, path = self._movie.movie, self.path
        if movie is None or path is None:
            return
        self._stale, self._writing = False, True
        self._movie.run(JOB, lambda: _keeping(movie, path), lambda _: self._done(), self._failed)

    def keep_now(self) -> None:
        """Write the cells down before returning, where that is still to be done."""
        movie, path = self._movie.movie, self.path
        if movie is None or path is None or not self.stale:
            return
        self._movie.cancel(JOB)
        try:
            run(_keeping(movie, path))
        except (BridgetrackError, OSError) as error:
            self.problem = str(error)
        else:
            self._done()

    def _done(self) -> None:
        self._writing, self.problem = False, ""

    def _failed(self, error: Exception) -> None:
        self._writing, self._stale, self.problem = False, True, str(error)

    def _on_movie(self) -> None:
        movie = self._movie.movie
        self._stale, self._writing, self.problem = False, False, ""
        self._first = True
        if movie is not None and not movie.kept:
            self.keep()

    def _on_masks(self, frames: set[int]) -> None:
        if len(frames) > 1:
            self.keep()

    def _on_scene(self) -> None:
        first, self._first = self._first, False
        if not first and self.path is not None:
            self._stale = True
            self.aging.emit()


def _keeping(movie: MovieAndCells, path: Path) -> Steps[None]:
    labels = movie.labels
    assert labels is not None
    yield Progress("Keeping the cells", 0.0)
    highest = 0
    for t in range(labels.n_frames):
        highest = max(highest, int(label_frame(labels, t).max(initial=0)))
        yield Progress("Keeping the cells", 0.3 * t / labels.n_frames)
    save_labels(labels, path, dtype="uint16" if highest < 2**16 else "uint32")
    record = beside_labels(path, "run")
    if movie.found is None:
        record.unlink(missing_ok=True)
    else:
        text = json_text(finding_to_json(movie.found), "how cells were found", ascii_only=False)
        write_text(record, text, "how cells were found")


@dataclass(frozen=True)
class Kept:
    """Cells that were kept, and how they were found, where that is known."""

    labels: Movie
    found: Finding | None


def kept_cells(answers: Path, geometry: Geometry) -> Kept | None:
    """The cells kept beside the answers about a movie; None where there are none that fit."""
    path = cells_path(answers)
    if not path.exists():
        return None
    try:
        labels = open_labels(path, scale=geometry.scale, unit=geometry.unit)
    except InputError:
        return None
    there = labels.geometry
    if (there.n_frames, there.shape) != (geometry.n_frames, geometry.shape):
        return None
    return Kept(labels, how_found(path))


@dataclass(frozen=True)
class Scale:
    """Length of a pixel along each axis of space, its unit, and minutes of a frame if known."""

    pixel: tuple[Annotated[float, Field(gt=0)], ...]
    unit: str
    minutes: Annotated[float, Field(gt=0)] | None = None

    @classmethod
    def of(cls, geometry: Geometry) -> Scale:
        """The scale of a movie."""
        return cls(tuple(geometry.scale), geometry.unit, geometry.frame_interval)

    def like(self, other: Scale) -> bool:
        """Whether both say the same, but for rounding."""
        here, there = ((*s.pixel, s.minutes or 0.0) for s in (self, other))
        alike = len(here) == len(there) and all(map(math.isclose, here, there))
        return alike and self.unit == other.unit


@dataclass(frozen=True)
class Settings:
    """What was set and learned about a movie.

    Parameters
    ----------
    model, start
        The model in use, None for the shipped one; what it began with, where it learned from the
        answers about this movie.
    without
        Kinds of events that do not occur, in the words of `EventKinds`.
    read, given
        The scale that the movie came with, and the one that was set in its place.
    outcome
        What came of the last training; None where the model in use was not trained on it.
    formats
        What is ticked for exports.
    """

    model: Model | None = None
    start: Model | None = None
    without: tuple[str, ...] = ()
    read: Scale | None = None
    given: Scale | None = None
    outcome: Outcome | None = None
    formats: tuple[str, ...] = ("csv",)

    def __post_init__(self) -> None:
        EventKinds.without(self.without)

    def same(self, other: Settings) -> bool:
        """Whether the other has the same models, and says the same otherwise."""
        alike = self.model is other.model and self.start is other.start
        return alike and replace(self, model=None, start=None) == replace(
            other, model=None, start=None
        )


_ScaleField = Annotated[Scale, of_dataclass(Scale)]


class _Content(OpenEntry):
    model: Annotated[Model, MODEL_FILE.nested] | None = None
    start: Annotated[Model, MODEL_FILE.nested] | None = None
    without: list[str] = Field(default_factory=list)
    read: _ScaleField | None = None
    given: _ScaleField | None = None
    training: Annotated[Outcome, of_dataclass(Outcome)] | None = None
    formats: list[str] = Field(default_factory=lambda: ["csv"])

    def settings(self) -> Settings:
        scale, formats = (self.read, self.given), tuple(self.formats)
        without = tuple(self.without)
        return Settings(self.model, self.start, without, *scale, self.training, formats)


SETTINGS_FILE = FileFormat(
    "bridgetrack-settings", 1, "a file of settings", _Content, _Content.settings
)
"""Files of what was set and learned about a movie."""


def load_settings(path: Path) -> Settings:
    """What a file holds; nothing where there is none.

    Raises
    ------
    InputError
        Where it is damaged.
    """
    return SETTINGS_FILE.read(path) if path.exists() else Settings()


def save_settings(settings: Settings, path: Path) -> None:
    """Write a file in one step; raises `OutputError` where that fails."""
    content = {
        **SETTINGS_FILE.head,
        "model": settings.model and model_to_json(settings.model),
        "start": settings.start and model_to_json(settings.start),
        "without": settings.without,
        "read": settings.read and asdict(settings.read),
        "given": settings.given and asdict(settings.given),
        "training": settings.outcome and asdict(settings.outcome),
        "formats": settings.formats,
    }
    write_text(path, json_text(content, "the settings", ascii_only=False), "the settings")


class KeptSettings:
    """Writes down what is set and learned about the open movie, each change at once.

    What was kept is taken by `restore`, which is called once the movie is open; until then nothing
    is written. Signals: `restored` afterwards.
    """

    restored = Signal()

    def __init__(self, session: Session) -> None:
        movie = self._movie = session
        self._answers: AutosavingStore | None = None  # of the movie that was restored
        self._path: Path | None = None
        self._of: Path | None = None  # the file that was known last
        self._kept = Settings()
        movie.movie_changed.connect(self._on_movie)
        movie.model_changed.connect(self._keep)
        movie.kinds_changed.connect(self._keep)
        movie.trainer.changed.connect(self._keep)

    def _on_movie(self) -> None:
        self._path = None

    def restore(self) -> tuple[str, ...]:
        """Use what was kept about the movie that was opened; says what that was."""
        movie, answers = self._movie, self._movie.answers
        if answers is None or answers.path is None:
            return ()
        path = settings_path(answers.path)
        try:
            kept = self._kept if path == self._of else load_settings(path)
        except BridgetrackError as error:
            movie.tell(error)  # the file stays, for somebody may mend it
            return ()
        if kept.without:
            movie.set_kinds(EventKinds.without(kept.without), undoable=False)
        if kept.model is not None and kept.model is not movie.model:
            movie.set_model(kept.model, kept.start, undoable=False)
            if movie.model is not kept.model:
                return ()  # told why; it stays in its file
        if kept.outcome is not None:
            movie.trainer.resume(kept.outcome)
        self._path, self._of, self._kept, self._answers = path, path, kept, answers
        self._keep()
        self.restored.emit()
        told = {
            "the model in use": kept.model,
            "what came of the training": kept.outcome,
            "what can happen": kept.without,
        }
        return tuple(words for words, there in told.items() if there)

    @property
    def formats(self) -> tuple[str, ...]:
        """What is ticked for exports."""
        return self._kept.formats

    def set_formats(self, formats: tuple[str, ...]) -> None:
        """Note what is ticked for exports of the open movie."""
        self._write(replace(self._present, formats=formats))

    def set_scale(self, given: Scale) -> None:
        """Note the scale that is set for the open movie, before it is opened anew with it."""
        movie = self._movie.movie
        if movie is not None and self._path is not None:
            geometry = movie.geometry if movie.image is None else movie.image.geometry
            read = self._kept.read or Scale.of(geometry)
            self._write(replace(self._present, read=read, given=given))

    @property
    def _present(self) -> Settings:
        """What is set and learned now, with the scale that was kept."""
        movie, shipped = self._movie, shipped_model()
        model, start = movie.model, movie.start
        supplied = model.keys == shipped.keys and np.array_equal(model.weights, shipped.weights)
        return replace(
            self._kept,
            model=None if supplied else model,
            start=None if supplied or start is model else start,
            without=movie.kinds.words,
            outcome=movie.trainer.outcome,
        )

    def _keep(self) -> None:
        if self._path is not None and self._answers is self._movie.answers:
            self._write(self._present)

    def _write(self, settings: Settings) -> None:
        path, before = self._path, self._kept
        if path is None or settings.same(before):
            return
        with self._movie.telling():
            save_settings(settings, path)
            self._kept = settings
