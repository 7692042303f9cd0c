"""The open movie with its answers, its model and its tracks, kept in step; no window needed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from psygnal import Signal

from bridgetrack.annotations.annotation import VERIFIED, Annotation, EventRef, Kind, describe
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.imported_tracks import Answer
from bridgetrack.annotations.mask_answers import MaskAnswer
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.hypotheses.events import EVERYTHING, Event, EventKinds, kind_words
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie import check_same_extent
from bridgetrack.pipeline.scene import Scene, annotate, check_kinds, fingerprints
from bridgetrack.pipeline.tracking import Tracking, resolve_steps, track_scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.session.answers import autosave_path
from bridgetrack.session.background import BackgroundWork, InlineRunner, Runner
from bridgetrack.session.masks import MaskStep, MovieMasks
from bridgetrack.session.movie import MovieAndCells, Prints, measured
from bridgetrack.session.names import CellNames


def _in_place_of(replaced: int) -> str:
    """What is told where an answer takes the place of earlier ones."""
    many = f"{replaced} earlier answers" if replaced > 1 else "an earlier answer"
    return f" It replaces {many}." if replaced else ""


@dataclass(frozen=True)
class _InUse:
    """A model, and what it began with, where it learned from the answers of a file."""

    model: Model
    began: Model | None = None
    answers: Path | None = None


@dataclass(frozen=True)
class Step:
    """What is undone and redone at once; of the model and the kinds what was before and after."""

    answers: bool = False
    masks: MaskStep | None = None
    models: tuple[_InUse, _InUse] | None = None
    kinds: tuple[EventKinds, EventKinds] | None = None


def _step_of(answer: MaskAnswer) -> Step:
    return Step(masks=MaskStep((answer.mend,), added=(answer,)))


def _earlier_steps(
    answers: AutosavingStore, masks: MovieMasks | None
) -> tuple[list[Step], list[Step]]:
    """The steps of a movie that is opened again, in order of time as far as it is known."""
    last, timed = "", []
    for change in answers.history.past:
        last = max([last, *(a.created or "" for a in change.added)])
        timed.append((last, Step(answers=True)))
    timed += [] if masks is None else [(a.created, _step_of(a)) for a in masks.answers]
    past = [step for _, step in sorted(timed, key=lambda step: step[0])]
    return past, [Step(answers=True)] * len(answers.history.future)


class TrackedMovie(BackgroundWork):
    """A movie with its answers, model and tracks, and the work on them.

    Every change is announced by a signal; `masks_changed` comes with the frames whose masks were
    changed here.

    Attributes
    ----------
    movie, masks
        The movie with its cells, None while none is open; the segmentation as it is mended, if any.
    answers
        What people said about it, kept on disk.
    scene
        Its cells with what can happen to them; None until they are measured.
    tracking, model
        The tracks under the present model and answers, None until there are any; that model.
    kinds
        What can happen in the movie; see `set_kinds`.
    """

    movie_changed = Signal()
    scene_changed = Signal()
    answers_changed = Signal()
    model_changed = Signal()
    tracking_changed = Signal()
    kinds_changed = Signal()
    masks_changed = Signal(object)

    def __init__(self, runner: Runner | None = None) -> None:
        super().__init__(runner or InlineRunner())
        self.movie: MovieAndCells | None = None
        self.answers: AutosavingStore | None = None
        self.scene: Scene | None = None
        self.tracking: Tracking | None = None
        self.projects: dict[Path, str | None] = {}  # digests of those read and written here
        self.model: Model = shipped_model()
        self.masks: MovieMasks | None = None
        self._past: list[Step] = []
        self._future: list[Step] = []
        self._stepping = False
        self._base: Scene | None = None
        self._prints: Prints = {}
        self._touched: set[int] | None = set()
        self._used = _InUse(self.model)
        self._tracked_answers: AnnotationSet | None = None
        self.kinds = EVERYTHING
        self._named: tuple[Tracking | None, CellNames] = None, CellNames(None)

    # ------------------------------------------------------------------ movie

    def open(self, movie: MovieAndCells, answers_path: Path | None = None) -> bool:
        """Take a movie, resume its answers, and make it ready in the background.

        The answers are kept beside the movie where no path is given. False, and a message, where it
        could not begin.
        """
        path = answers_path or autosave_path(movie.path, movie.name, movie.geometry)
        return self._open(movie, path)

    def _open(self, movie: MovieAndCells, path: Path | None) -> bool:
        self.message.emit("info", "")
        try:
            if movie.image is not None and movie.labels is not None:
                check_same_extent(movie.image, movie.labels)
            answers = AutosavingStore(path, movie.geometry)
            masks = None if movie.labels is None else MovieMasks(movie, path)
            mended, lost = (set[int](), 0) if masks is None else masks.restore()
        except (BridgetrackError, OSError) as error:
            self.tell(error)
            return False
        unfinished = self.unfinished
        self.close()
        self.movie, self.answers, self.masks = movie, answers, masks
        self.kinds = EVERYTHING
        self._past, self._future = _earlier_steps(answers, masks)
        self._take_masks()
        answers.changed.connect(self._on_answers)
        answers.locked = self._locked
        self.movie_changed.emit()
        if mended:
            self.masks_changed.emit(mended)
            frames = f"{len(mended)} frames" if len(mended) > 1 else "one frame"
            self.message.emit("info", f"What you mended in {frames} is there again.")
        if lost:
            self.message.emit(
                "warning",
                f"In {lost} frames the masks are others than those that you mended; they stay.",
            )
        self._tell_unfinished(unfinished)
        for notice in [answers.notice] * bool(answers.notice) + (masks.notices if masks else []):
            if len(self.message):
                self.message.emit("warning", notice)
            else:
                warnings.warn(notice, stacklevel=3)
        self.answers_changed.emit()
        self.measure()
        return True

    def close(self) -> None:
        """Let go of the movie and end the work on it; the answers stay on disk."""
        if self.answers is not None:
            self.answers.changed.disconnect(self._on_answers)
        self.movie = self.answers = self.scene = self.tracking = self._base = self.masks = None
        self._past, self._future = [], []
        self._tracked_answers = None
        super().close()

    def forget(self) -> None:
        """Let go of the movie and say so."""
        if self.movie is not None:
            unfinished = self.unfinished
            self.close()
            self.movie_changed.emit()
            self.answers_changed.emit()
            self.tracking_changed.emit()
            self._tell_unfinished(unfinished)

    def _tell_unfinished(self, words: str) -> None:
        """Tell of work that ended with its movie."""
        if words:
            self.message.emit("warning", words)

    def measure(
        self, movie: MovieAndCells | None = None, touched: Collection[int] | None = None
    ) -> None:
        """Measure the cells anew, after painting those of the frames touched (None: any).

        Tracking follows. `movie` is the same movie with other cells, where they are a table.
        """
        if self.movie is None or self.answers is None:
            return
        movie = self.movie = movie or self.movie
        self._follow_painting()
        annotations = self.answers.annotations
        for name in ("track", "correct"):
            self._runner.cancel(name)
        # What was touched before measuring that is cancelled now counts as well.
        touched = None if touched is None or self._touched is None else {*self._touched, *touched}
        self._touched = touched
        known, kinds = None if self._base is None else (self._base, self._prints), self.kinds

        def work() -> Steps[tuple[Scene, Scene, Prints]]:
            base, prints = yield from measured(movie, known, touched, kinds)
            return base, annotate(base, annotations), prints

        self.run("measure", work, self._measured)

    def follow_masks(self) -> None:
        """Look in the background whether the masks were changed by others; then measure anew."""
        movie, known = self.movie, self._prints
        if movie is None or movie.labels is None or self._base is None:
            return
        labels = movie.labels

        def work() -> Steps[set[int]]:
            prints = yield from fingerprints(labels)
            return {t for t, mark in prints.items() if mark != known.get(t)}

        def found(frames: set[int]) -> None:
            if frames and self.movie is movie:
                self.measure(touched=frames)

        self.run("look", work, found)

    def _follow_painting(self) -> None:
        """Answers about painting that was undone elsewhere go."""
        with self.telling():
            gone, come = ([], []) if self.masks is None else self.masks.follow_painting()
            for answer in come:
                self._did(_step_of(answer))
            undone = [(answer,) for answer in gone]
            self._past = [s for s in self._past if not (s.masks and s.masks.added in undone)]

    def _measured(self, found: tuple[Scene, Scene, Prints]) -> None:
        # Every later scene is made from the same base, so that it does not depend on the order
        # of the answers.
        self._base, scene, self._prints = found
        self._touched = set()
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

    def note(self, kind: Kind, event: EventRef, source: str, seconds: float | None = None) -> None:
        """Write an answer down in place of those that it contradicts, and say it back."""
        answers, names = self.answers, self.names
        if answers is not None:
            with self.telling():
                if kind is Kind.CONFIRM and event.event in self.kinds.absent:
                    name = kind_words(event.event)
                    raise InputError(
                        f"this movie is said to be without {name}; allow them in step 4 first"
                    )
                noted, replaced = answers.answer(kind, event, source, seconds)
                more = _in_place_of(replaced)
                self.message.emit("info", f"Noted: {describe(noted, names)}.{more}")

    def note_all(self, said: Sequence[Answer], source: str, told: str) -> None:
        """Write answers down as one step, in place of those that they contradict, and say so.

        Raises
        ------
        InputError
            Where a verified track is locked against one of them.
        OutputError
            Where they cannot be written down; then nothing has changed.
        """
        if self.answers is not None:
            noted, replaced = self.answers.answer_all(said, source)
            more = _in_place_of(replaced)
            same = "" if noted else " It was so already."
            self.message.emit("info", f"{told}{same}{more}")

    @property
    def can_undo(self) -> bool:
        """Whether something can be taken back."""
        return bool(self._past)

    @property
    def can_redo(self) -> bool:
        """Whether something was taken back that can be repeated."""
        return bool(self._future)

    def undo(self) -> None:
        """Take back the last answer, change of masks, model or choice of what can happen."""
        if not self.can_undo:
            self.message.emit("info", "There is nothing to undo.")
            return
        with self.telling():
            self.message.emit("info", "Undone. Redo (R) brings it back.")
            self._step(self._past[-1], back=True)

    def redo(self) -> None:
        """Repeat what was taken back last."""
        if not self.can_redo:
            self.message.emit("info", "There is nothing to redo.")
            return
        with self.telling():
            self.message.emit("info", "Done again. Undo (Z) takes it back.")
            self._step(self._future[-1], back=False)

    def _did(self, step: Step) -> None:
        """A new step, which can be undone; nothing that was undone can be repeated."""
        self._past.append(step)
        self._future.clear()

    def _step(self, step: Step, back: bool) -> None:
        """Undo or redo a step."""
        came_from, goes_to = (self._past, self._future)[:: 1 if back else -1]
        goes_to.append(came_from.pop())
        self._stepping, done = True, True
        try:
            if step.masks is not None and self.masks is not None:
                done = self.masks.take(step.masks.inverse if back else step.masks)
            if step.answers and self.answers is not None:
                (self.answers.undo if back else self.answers.redo)()
            if step.models is not None:
                self._use(step.models[0 if back else 1])
            if step.kinds is not None:
                self._allow(step.kinds[0 if back else 1])
        except BridgetrackError:
            came_from.append(goes_to.pop())
            raise
        finally:
            self._stepping = False
        if not done:
            self.message.emit("info", "The masks have changed there since and stay as they are.")
        if step.masks is not None:
            self._on_masks(step.masks.frames)

    def _locked(self, answer: Annotation) -> bool:
        """Whether a track that somebody verified as a whole rests on an answer."""
        if answer.source == VERIFIED:
            return True
        names = self.names
        mine = {names.track(cell) for cell in answer.cells if names.verified(cell)}
        if answer.kind is not Kind.CONFIRM or not mine:
            return False
        whole = (a.cells for a in self.annotations or () if a.source == VERIFIED)
        return any(names.track(cell) in mine for cells in whole for cell in cells)

    def _on_answers(self) -> None:
        if not self._stepping:
            self._did(Step(answers=True))
        self.answers_changed.emit()
        self._catch_up()

    def _on_masks(self, frames: set[int]) -> None:
        self._take_masks()
        self.masks_changed.emit(frames)
        self.answers_changed.emit()
        self.measure(touched=frames)

    def _take_masks(self) -> None:
        movie, masks = self.movie, self.masks
        if movie is not None and masks is not None and movie.labels is not masks.labels:
            self.movie = replace(movie, labels=masks.labels)

    def _catch_up(self) -> None:
        """Honour answers that came after the last tracking, once nothing else is under way."""
        tracking, annotations, base = self.tracking, self.annotations, self._base
        if tracking is None or annotations is None or base is None:
            return
        if annotations is self._tracked_answers or self.busy("measure", "track", "correct"):
            return

        def work() -> Steps[Tracking]:
            yield Progress("Honouring your answer", 0.0)
            return (yield from resolve_steps(tracking, annotate(base, annotations)))

        self.run("correct", work, lambda again: self._tracked(again, annotations))

    def finish_correcting(self, then: Callable[[Scene], None], unfinished: str = "") -> None:
        """Call `then` with a scene of all frames that holds all present answers.

        `unfinished` is told where the movie is left before that.
        """
        answered = self.answered()
        if answered is None:
            return
        if self.tracking is not None and self.annotations is self._tracked_answers:
            then(self.tracking.scene)
            return
        self.run("collect", answered, then, unfinished=unfinished)

    def answered(self) -> Callable[[], Steps[Scene]] | None:
        """What makes a scene of all frames that holds all present answers.

        It goes on where another movie is opened. None while the frames are looked at.
        """
        base, annotations = self._base, self.annotations
        if base is None or annotations is None:
            return None

        def work() -> Steps[Scene]:
            yield Progress("Collecting your answers", 0.0)
            return annotate(base, annotations)

        return work

    # ------------------------------------------------------------------ tracking

    def set_kinds(self, kinds: EventKinds, *, undoable: bool = True) -> None:
        """Say what can happen in the movie; it is tracked anew.

        Nothing but a message comes of it where answers name events that are ruled out.
        """
        if kinds != self.kinds:
            with self.telling():
                before = self.kinds
                self._allow(kinds)
                if undoable:
                    self._did(Step(kinds=(before, kinds)))
            if kinds != self.kinds:  # it was refused, which what shows it must follow
                self.kinds_changed.emit()

    def _allow(self, kinds: EventKinds) -> None:
        if self.annotations is not None:
            check_kinds(self.annotations, kinds)
        self.kinds = kinds
        self.measure(touched=set())
        self.kinds_changed.emit()

    def track(self) -> Tracking | None:
        """Track with the present model and answers; None while that is under way."""
        base, annotations, model = self._base, self.annotations, self.model
        if base is None or annotations is None:
            return None
        self._runner.cancel("correct")

        def work() -> Steps[Tracking]:
            yield Progress("Choosing events", 0.0)
            tracking = yield from track_scene(annotate(base, annotations), model)
            # Every click asks for the features again.
            for event in tracking.scene.matrix.keeping():
                yield Progress("Joining tracks", event / len(Event))
            return tracking

        self.run("track", work, lambda tracking: self._tracked(tracking, annotations))
        return None if self.busy("track") else self.tracking

    def _tracked(self, tracking: Tracking, annotations: AnnotationSet) -> None:
        self._tracked_answers = annotations
        self.scene, self.tracking = tracking.scene, tracking
        self.tracking_changed.emit()
        self._catch_up()

    @property
    def names(self) -> CellNames:
        """What cells are called: by their tracks, as soon as there are any."""
        if self._named[0] is not self.tracking:
            self._named = self.tracking, CellNames(self.tracking)
        return self._named[1]

    @property
    def start(self) -> Model:
        """What learning starts from: the model in use, or what that one began with.

        A model that learned from the answers about this movie must not learn from them twice,
        nor keep what it learned from a slip that was mended since.
        """
        used, answers = self._used, self.answers
        if used.began is None or answers is None or answers.path != used.answers:
            return self.model
        return used.began

    def set_model(self, model: Model, start: Model | None = None, *, undoable: bool = True) -> None:
        """Use other weights; the movie is tracked anew.

        `start` is what they were learned from, where they were learned from this movie's answers.
        """
        try:
            if self.scene is not None:
                model.aligned(self.scene.matrix.features)
        except BridgetrackError as error:
            self.tell(error)
            return
        used = _InUse(model)
        if start is not None and self.answers is not None:
            used = _InUse(model, start, self.answers.path)
        if undoable and model is not self.model:
            self._did(Step(models=(replace(self._used, model=self.model), used)))
        self._use(used)

    def _use(self, used: _InUse) -> None:
        self.model, self._used = used.model, used
        self.model_changed.emit()
        self.track()

    def describe_model(self, model: Model) -> None:
        """Take the model in use with more that is known of it; the tracks stay."""
        if self.tracking is not None and self.tracking.model is self.model:
            self.tracking = replace(self.tracking, model=model)
        self.model = model
