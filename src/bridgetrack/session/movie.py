"""A movie with its cells, as masks or as a table, and its settings and learned values."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from psygnal import Signal

from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import EventKinds
from bridgetrack.models.model import Model, model_to_json, shipped_model
from bridgetrack.movie import Geometry, Movie
from bridgetrack.pipeline.finding import Finding
from bridgetrack.pipeline.inputs import open_cells
from bridgetrack.pipeline.project import Outcome, Scale, Settings, settings_of
from bridgetrack.pipeline.scene import check_kinds

if TYPE_CHECKING:
    from bridgetrack.session.session import Session


@dataclass(frozen=True)
class MovieAndCells:
    """A movie with its cells, as masks or as a table of centroids."""

    labels: Movie | None  # the cells as masks
    image: Movie | None = None  # intensities
    name: str = "movie"  # its name
    path: Path | None = None  # file or folder that the image, or else the segmentation, came from
    files: tuple[Path | None, Path | None] = (None, None)  # those of both
    layers: tuple[Any, Any] = (None, None)  # of both, for panels
    table: Detections | None = None  # the cells where they are no masks
    # the array (time, [z,] y, x) that `labels` show, for masks that are mended to be written into
    # it; None to leave it alone
    pixels: Any = None
    found: Finding | None = None  # how the masks were found, where they were found here
    kept: bool = False  # whether they are those kept when the movie was open before
    channel: int = 0  # number of the channel of the image that shows the cells

    def __post_init__(self) -> None:
        if (self.labels is None) == (self.table is None):
            raise InputError("a movie needs its cells either as masks or as a table")

    @property
    def cells(self) -> Movie | Detections:
        """The cells, whatever they are."""
        cells = self.table if self.labels is None else self.labels
        assert cells is not None
        return cells

    @property
    def geometry(self) -> Geometry:
        """Extent and scale."""
        return self.cells.geometry

    @property
    def scale(self) -> Scale:
        """The scale of the image, or else of the cells."""
        return Scale.of(self.geometry if self.image is None else self.image.geometry)


class KeptSettings:
    """Settings and learned values of the movie of a session; each change is on disk at once.

    Signals: `restored` when the settings of a movie that is opened are in use.
    """

    restored = Signal()

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: list[tuple[dict[str, Any], Model]] = []  # to find a model again as it was
        self.present = Settings()  # of the open movie

    def scale_for(self, movie: MovieAndCells) -> Scale | None:
        """The scale that was set for a movie, where this is the movie as it was then."""
        now, read, given = movie.scale, self.present.read, self.present.given
        if read is None or given is None or not now.like(read) or now.like(given):
            return None
        return given

    def set_scale(self, given: Scale) -> None:
        """Note the scale that is set for the open movie, before it is opened anew with it."""
        movie = self._session.movie
        if movie is not None:
            read = self.present.read or movie.scale
            self.write(read=asdict(read), given=asdict(given))

    @cached_property
    def shipped(self) -> Model:
        """The model in use where none is set."""
        return shipped_model()

    def entries(
        self, model: Model, start: Model | None = None, outcome: Outcome | None = None
    ) -> dict[str, Any]:
        """A model in use, its starting model, and the outcome of its training, as JSON values.

        The shipped model is not saved.
        """
        shipped = self.shipped
        if model.name == shipped.name and np.array_equal(model.weights, shipped.weights):
            self.shipped = model
            return {"model": None, "start": None, "training": None}
        began = None if start is None or start is model else self._entry(start)
        told = None if outcome is None else asdict(outcome)
        return {"model": self._entry(model), "start": began, "training": told}

    def _entry(self, model: Model) -> dict[str, Any]:
        made = model_to_json(model)
        self._known.insert(0, (made, model))
        return made

    def write(self, *, undoable: bool = False, **entries: Any) -> None:
        """Change settings of the open movie, by their JSON values; errors are shown."""
        store = self._session.answers
        if store is None:
            return
        new = {key: value for key, value in entries.items() if value != store.settings.get(key)}
        with self._session.telling():
            if new or undoable:
                store.set(new, undoable=undoable)

    def read(self) -> Settings:
        """Use the settings in the store."""
        store, found = self._session.answers, Settings()
        if store is not None:
            with self._session.telling():
                found = settings_of(store.settings, str(store.path))
            model, start = (
                self._same(store.settings.get(key), made)
                for key, made in (("model", found.model), ("start", found.start))
            )
            found = found.model_copy(update={"model": model, "start": start})
        self.present = found
        return found

    def _same(self, entry: Any, made: Model | None) -> Model | None:
        """A model of the settings, the very one where it was in use here before."""
        return next((model for known, model in self._known if known == entry), made)

    def restore(self) -> Settings:
        """Use the settings of the opened movie; a model that is in use already is saved with
        them."""
        kept = self.read()
        if kept.model is None:
            self.write(**self.entries(self._session.model))
            kept = self.read()
        return kept

    @property
    def start(self) -> Model:
        """The starting model of a training: the model in use, or the one that it started from.

        A model that learned from the answers about this movie must not learn from them twice, nor
        keep what it learned from a mistake that was corrected.
        """
        return self.present.start or self._session.model

    def set_model(
        self, model: Model, start: Model | None = None, *, outcome: Outcome | None = None
    ) -> None:
        """Use other weights; the movie is tracked again.

        `start` is their starting model if they were learned from this movie's answers; `outcome` is
        that of the training.
        """
        session = self._session
        with session.telling():
            if session.scene is not None:
                model.aligned(session.scene.matrix.features)
            if session.answers is None:
                session.model = model
                session.model_changed.emit()
            elif model is not session.model:
                self.write(undoable=True, **self.entries(model, start, outcome))

    def describe_model(self, model: Model, outcome: Outcome) -> None:
        """Replace the model in use by the same one with more information; the tracks stay."""
        session, tracking = self._session, self._session.tracking
        if tracking is not None and tracking.model is session.model:
            session.tracking = replace(tracking, model=model)
        session.model = model
        self.write(**self.entries(model, self.start, outcome))

    def set_kinds(self, kinds: EventKinds) -> None:
        """Set the kinds of events that occur in the movie; it is tracked again.

        There is only a message if answers name events that are excluded.
        """
        session = self._session
        if kinds == session.kinds:
            return
        with session.telling():
            if session.annotations is not None:
                check_kinds(session.annotations, kinds)
            if session.answers is None:
                session.kinds = kinds
            self.write(undoable=True, without=list(kinds.words))
        if kinds != session.kinds:  # it was refused, which what shows it must follow
            session.kinds_changed.emit()

    def follow(self, changed: set[str]) -> None:
        """Use settings that were changed or undone; the tracks follow."""
        session, kept = self._session, self.read()
        if "without" in changed and kept.kinds != session.kinds:
            session.kinds = kept.kinds
            session.tracker.measure(touched=set())
            session.kinds_changed.emit()
        if "model" in changed:
            model = kept.model or self.shipped
            if model is not session.model:
                session.model = model
                session.model_changed.emit()
                session.tracker.track()


def movie_of(
    labels: Any,
    image: Any,
    channel: int | str,
    labels_path: Path | None = None,
    image_path: Path | None = None,
) -> MovieAndCells:
    """Cells and image, opened where they are paths or arrays."""
    files = image_path or _path(image), labels_path or _path(labels)
    path = files[0] or files[1]
    cells, pixels = open_cells(labels, image)
    table = cells if isinstance(cells, Detections) else None
    return MovieAndCells(
        None if isinstance(cells, Detections) else cells,
        pixels,
        "movie" if path is None else path.stem,
        path,
        files,
        table=table,
        channel=0 if pixels is None else pixels.channel_number(channel),
    )


def _path(given: Any) -> Path | None:
    return Path(given) if isinstance(given, str | os.PathLike) else None
