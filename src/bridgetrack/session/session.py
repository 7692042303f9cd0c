"""What is worked on: a movie with its cells, as masks or as a table of centroids.

The state behind the panels of one viewer, without Qt and without layers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psygnal import Signal

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie import Geometry, Movie, check_same_extent
from bridgetrack.pipeline.scene import Scene, annotate, fingerprints, prepare, remeasure
from bridgetrack.pipeline.tracking import Correction, Tracking, resolve_tracking, track_scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.answers import Answers, autosave_path
from bridgetrack.session.background import NamedWork, Runner

Prints = tuple[int, ...]


@dataclass(frozen=True)
class Source:
    """The movie that is worked on.

    Parameters
    ----------
    labels
        The segmentation; None where there are only centroids.
    image
        Intensities, None where there are none.
    name
        What to call it.
    path
        File or folder that the image (or else the segmentation) came from.
    files
        Files of image and segmentation, where they have any.
    layers
        Layers that image and cells were taken from, for panels.
    table
        The cells, where there is no segmentation.
    """

    labels: Movie | None
    image: Movie | None = None
    name: str = "movie"
    path: Path | None = None
    files: tuple[Path | None, Path | None] = (None, None)
    layers: tuple[Any, Any] = (None, None)
    table: Detections | None = None

    def __post_init__(self) -> None:
        if (self.labels is None) == (self.table is None):
            raise InputError("a movie needs its cells either as masks or as a table")

    @property
    def geometry(self) -> Geometry:
        """Extent and scale."""
        if self.labels is not None:
            return self.labels.geometry
        assert self.table is not None
        return self.table.geometry


def measured(source: Source, known: tuple[Scene, Prints] | None) -> Steps[tuple[Scene, Prints]]:
    """The cells of a movie with what can happen to them, and marks to notice changes by.

    Parameters
    ----------
    source
        The movie.
    known
        What this returned before the cells were touched up: then only frames that changed are
        measured again.
    """
    labels = source.labels
    if labels is None:
        assert source.table is not None
        return (yield from prepare(source.table)), ()
    prints = yield from fingerprints(labels)
    if known is None:
        return (yield from prepare(labels, source.image)), prints
    scene, before = known
    pairs = enumerate(zip(before, prints, strict=True))
    changed = {t for t, (a, b) in pairs if a != b}
    return (yield from remeasure(scene, labels, source.image, changed)), prints


__all__ = ["Session", "Source"]


@dataclass(frozen=True)
class Began:
    """What a model began with, and the file of the answers that it learned from."""

    model: Model
    answers: Path


class Session(NamedWork):
    """Movie, answers, model and tracking of one viewer, and the work on them.

    Every change is announced by a signal; `message` carries (level, words) for people, where
    level is ``"info"``, ``"warning"`` or ``"error"``. `progress` carries the job's name and
    what it yielded, None when it ends.
    """

    source_changed = Signal()
    scene_changed = Signal()
    answers_changed = Signal()
    model_changed = Signal()
    tracking_changed = Signal()

    def __init__(self, runner: Runner) -> None:
        super().__init__(runner)
        self.source: Source | None = None
        self.answers: Answers | None = None
        self.scene: Scene | None = None
        self._base: Scene | None = None
        self._prints: tuple[int, ...] = ()
        self.tracking: Tracking | None = None
        self.model: Model = shipped_model()
        self._began: Began | None = None
        self._earlier: list[tuple[Model, Began | None]] = []
        self._tracked_answers: AnnotationSet | None = None

    # ------------------------------------------------------------------ movie

    def open(self, source: Source, answers_path: Path | None = None) -> bool:
        """Take a movie, resume its answers, and make it ready in the background."""
        self.message.emit("info", "")
        try:
            if source.image is not None and source.labels is not None:
                check_same_extent(source.image, source.labels)
            path = answers_path or autosave_path(source.path, source.name, source.geometry)
            answers = Answers(path, source.geometry)
        except (BridgetrackError, OSError) as error:
            self.message.emit("error", str(error))
            return False
        self.close_movie()
        self.source, self.answers = source, answers
        answers.changed.connect(self._on_answers)
        self.source_changed.emit()
        self.answers_changed.emit()
        self.measure()
        return True

    def close_movie(self) -> None:
        """Let go of the movie and end the work on it; the answers stay on disk."""
        self._runner.close()
        if self.answers is not None:
            self.answers.changed.disconnect(self._on_answers)
        self.source = self.answers = self.scene = self.tracking = self._base = None
        self._tracked_answers = None

    def forget(self) -> None:
        """Let go of the movie and say so."""
        if self.source is not None:
            self.close_movie()
            self.source_changed.emit()
            self.answers_changed.emit()
            self.tracking_changed.emit()

    def measure(self, source: Source | None = None) -> None:
        """Measure the cells anew, after painting those of the frames touched; tracking follows.

        `source` is the same movie with other cells, where they are a table.
        """
        if self.source is None or self.answers is None:
            return
        source = self.source = source or self.source
        annotations = self.answers.annotations
        for name in ("track", "correct"):
            self._runner.cancel(name)
        known = None if self._base is None else (self._base, self._prints)

        def work() -> Steps[tuple[Scene, Scene, tuple[int, ...]]]:
            base, prints = yield from measured(source, known)
            return base, annotate(base, annotations), prints

        self.run("measure", work, self._measured)

    def _measured(self, found: tuple[Scene, Scene, tuple[int, ...]]) -> None:
        # Every later scene is made from the same base, so that it does not depend on the order
        # of the answers.
        self._base, scene, self._prints = found
        self.scene, self.tracking = scene, None
        self.scene_changed.emit()
        lost = scene.anchored.lost
        if lost:
            self.message.emit(
                "warning",
                f"{len(lost)} of your answers name cells that are not there any more, e.g. "
                f"{lost[0].cell}: {lost[0].reason}. They are kept.",
            )
        self.track()

    # ------------------------------------------------------------------ answers

    @property
    def annotations(self) -> AnnotationSet | None:
        """The present answers, None without a movie."""
        return None if self.answers is None else self.answers.annotations

    def _on_answers(self) -> None:
        self.answers_changed.emit()
        self._catch_up()

    def _catch_up(self) -> None:
        """Honour answers that came after the last tracking, once nothing else is under way."""
        tracking, annotations, base = self.tracking, self.annotations, self._base
        busy = any(self._runner.running(n) for n in ("measure", "track", "correct"))
        if tracking is None or annotations is None or base is None or busy:
            return
        if annotations is self._tracked_answers:
            return

        def work() -> Steps[Correction]:
            yield Progress("Honouring your answer", 0.0)
            return resolve_tracking(tracking, annotate(base, annotations))

        self.run("correct", work, lambda c: self._tracked(c.tracking, annotations))

    def finish_correcting(self, then: Callable[[Scene], None]) -> None:
        """Call `then` with a scene that holds all present answers."""
        base, annotations = self._base, self.annotations
        if base is None or annotations is None:
            return
        if self.scene is not None and annotations is self._tracked_answers:
            then(self.scene)
            return

        def work() -> Steps[Scene]:
            yield Progress("Collecting your answers", 0.0)
            return annotate(base, annotations)

        self.run("collect", work, then)

    # ------------------------------------------------------------------ tracking

    def track(self) -> None:
        """Track with the present model and answers in the background."""
        base, annotations, model = self._base, self.annotations, self.model
        if base is None or annotations is None:
            return
        self._runner.cancel("correct")

        def work() -> Steps[Tracking]:
            yield Progress("Choosing events", 0.0)
            return (yield from track_scene(annotate(base, annotations), model))

        self.run("track", work, lambda tracking: self._tracked(tracking, annotations))

    def _tracked(self, tracking: Tracking, annotations: AnnotationSet) -> None:
        self.scene, self.tracking = tracking.scene, tracking
        self._tracked_answers = annotations
        self.tracking_changed.emit()
        self._catch_up()

    @property
    def start(self) -> Model:
        """What learning starts from: the model in use, or what that one began with.

        A model that learned from the answers about this movie must not learn from them twice,
        nor keep what it learned from a slip that was mended since.
        """
        began, answers = self._began, self.answers
        if began is None or answers is None or answers.path != began.answers:
            return self.model
        return began.model

    def set_model(self, model: Model, start: Model | None = None) -> None:
        """Use other weights; the movie is tracked anew.

        `start` is what they were learned from, where they were learned from this movie's answers.
        """
        if self._fits(model):
            began = None
            if start is not None and self.answers is not None:
                began = Began(start, self.answers.path)
            self._earlier += [(self.model, self._began)] if model is not self.model else []
            self._use(model, began)

    @property
    def has_earlier_model(self) -> bool:
        """Whether another model was in use before the present one."""
        return bool(self._earlier)

    def earlier_model(self) -> None:
        """Take the last change of the model back."""
        if self._earlier and self._fits(self._earlier[-1][0]):
            self._use(*self._earlier.pop())

    def _fits(self, model: Model) -> bool:
        if self.scene is not None:
            try:
                model.aligned(self.scene.matrix.features)
            except BridgetrackError as error:
                self.message.emit("error", str(error))
                return False
        return True

    def _use(self, model: Model, began: Began | None) -> None:
        self.model, self._began = model, began
        self.model_changed.emit()
        self.track()

    def close(self) -> None:
        """End all work; the session is not used afterwards."""
        self.close_movie()
