"""Measures and tracks the cells of a session, after every change; only the latest run counts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.results import write_results
from bridgetrack.models.model import shipped_model
from bridgetrack.pipeline.report import methods_text
from bridgetrack.pipeline.scene import Scene, annotate, fingerprints, prepare, remeasure
from bridgetrack.pipeline.tracking import Tracking, resolve_steps, track_scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.movie import MovieAndCells

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

Prints = dict[int, int]
"""A number for each frame that changes when its pixels do."""


class Tracker:
    """Keeps the scene and the tracks of a session as its cells, answers and model are."""

    def __init__(self, session: Session) -> None:
        self._session = session
        # The cells with their possible events, without answers; None until they are measured.
        self.base: Scene | None = None
        self.failed = False  # whether the cells could not be measured
        self._prints: Prints = {}
        self._touched: set[int] | None = set()
        self._tracked_answers: AnnotationSet | None = None

    def forget(self) -> None:
        """Forget a movie."""
        self.base, self._tracked_answers, self._prints = None, None, {}
        self.failed = False

    def measure(
        self, movie: MovieAndCells | None = None, touched: Collection[int] | None = None
    ) -> None:
        """Measure the cells anew, after painting those of the frames touched (None: any).

        Tracking follows. `movie` is the same movie with other cells, where they are a table.
        """
        session = self._session
        if session.movie is None or session.answers is None:
            return
        movie = session.movie = movie or session.movie
        if session.masks is not None:
            session.masks.follow_painting()
        annotations, kinds = session.answers.annotations, session.kinds
        for name in ("track", "correct"):
            session.cancel(name)
        # Frames touched before a measurement that is cancelled now count as well.
        touched = None if touched is None or self._touched is None else {*self._touched, *touched}
        self._touched = touched
        before, known, labels = self.base, self._prints, movie.labels

        def work() -> Steps[tuple[Scene, Scene, Prints]]:
            prints: Prints = {}
            if labels is None:
                base = yield from prepare(movie.cells, kinds=kinds)
            elif before is None:
                prints = yield from fingerprints(labels)
                base = yield from prepare(labels, movie.image, kinds=kinds)
            else:
                prints = yield from fingerprints(labels, touched)
                changed = {t for t, mark in prints.items() if mark != known.get(t)}
                scene, features = replace(before, kinds=kinds), default_features()
                base = yield from remeasure(scene, labels, movie.image, changed, features)
            return base, annotate(base, annotations), {**known, **prints}

        self.failed = False
        session.run("measure", work, self._measured, self._failed)

    def follow_masks(self) -> None:
        """Check in the background whether other programs changed the masks; then measure again."""
        session, known = self._session, self._prints
        movie = session.movie
        if movie is None or movie.labels is None or self.base is None:
            return
        labels = movie.labels

        def work() -> Steps[set[int]]:
            prints = yield from fingerprints(labels)
            return {t for t, mark in prints.items() if mark != known.get(t)}

        def found(frames: set[int]) -> None:
            if frames and session.movie is movie:
                self.measure(touched=frames)

        session.run("look", work, found)

    def _failed(self, _: Exception) -> None:
        self.failed = True

    def _measured(self, found: tuple[Scene, Scene, Prints]) -> None:
        # Every later scene is made from the same base, so that it does not depend on the order
        # of the answers.
        session, self._touched = self._session, set()
        self.base, scene, self._prints = found
        session.scene, session.tracking = scene, None
        session.scene_changed.emit()
        lost = scene.anchored.lost
        if lost:
            session.message.emit(
                "warning",
                f"{len(lost)} of your answers are about cells that are no longer there, e.g. "
                f"{lost[0].cell}: {lost[0].reason}. They remain saved.",
            )
        try:
            session.model.aligned(scene.matrix.features)
        except BridgetrackError as error:  # of another version; it stays in its file
            session.tell(error)
            session.model = shipped_model()
            session.model_changed.emit()
        self.track()

    def track(self) -> None:
        """Track with the present model and answers."""
        session, base = self._session, self.base
        annotations, model = session.annotations, session.model
        if base is None or annotations is None:
            return
        session.cancel("correct")

        def work() -> Steps[Tracking]:
            yield Progress("Choosing events", 0.0)
            tracking = yield from track_scene(annotate(base, annotations), model)
            # Every click asks for the features again.
            for event in tracking.scene.matrix.keeping():
                yield Progress("Joining tracks", event / len(Event))
            return tracking

        session.run("track", work, lambda tracking: self._tracked(tracking, annotations))

    def catch_up(self) -> None:
        """Honour answers that came after the last tracking, once nothing else is under way."""
        session, base = self._session, self.base
        tracking, annotations = session.tracking, session.annotations
        if tracking is None or annotations is None or base is None:
            return
        if annotations is self._tracked_answers or session.busy("measure", "track", "correct"):
            return

        def work() -> Steps[Tracking]:
            yield Progress("Applying your answer", 0.0)
            return (yield from resolve_steps(tracking, annotate(base, annotations)))

        session.run("correct", work, lambda again: self._tracked(again, annotations))

    def _tracked(self, tracking: Tracking, annotations: AnnotationSet) -> None:
        session = self._session
        self._tracked_answers = annotations
        session.scene, session.tracking = tracking.scene, tracking
        session.tracking_changed.emit()
        self.catch_up()

    def answered(self) -> Callable[[], Steps[Scene]] | None:
        """Work that makes a scene of all frames with all present answers.

        It continues if another movie is opened. None while the frames are being checked.
        """
        base, annotations, tracking = self.base, self._session.annotations, self._session.tracking
        if base is None or annotations is None:
            return None
        known = tracking if annotations is self._tracked_answers else None

        def work() -> Steps[Scene]:
            yield Progress("Collecting your answers", 0.0)
            return annotate(base, annotations) if known is None else known.scene

        return work

    def exported(self, folder: Path, formats: Sequence[str]) -> Steps[tuple[str, ...]]:
        """Write the tracks and how they were made; see `Session.export`.

        The state of the session at the time of the call is written, also where another movie is
        opened meanwhile.
        """
        session, answered = self._session, self.answered()
        model, movie, checked = session.model, session.movie, session.questions.check.finished
        if movie is None or answered is None:
            raise InputError("there are no tracks to export; choose a movie with its cells first")
        image, masks = (None if file is None else file.name for file in movie.files)
        corrections = 0 if session.masks is None else len(session.masks.answers)

        def steps() -> Steps[tuple[str, ...]]:
            scene = yield from answered()
            # Solved in full, so that repeating the project gives the same files.
            final = yield from track_scene(scene, model)
            yield Progress("Writing", 0.0)
            methods = methods_text(
                final, image=image, masks=masks, found=movie.found, checked=checked,
                corrections=corrections,
            )  # fmt: skip
            return write_results(final.tracks, scene.labels, folder, formats, methods=methods)

        return steps()
