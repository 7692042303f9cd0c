"""A session on one movie: the model asks, people answer, and the tracks follow.

    session = Session("labels.tif", "movie.tif")
    while (question := session.ask()) is not None:
        print(question.question)
        session.answer(question, "yes")
    session.train()
    session.export("result", ["csv"])
    session.save("copy.bridgetrack")

The window works with the same class; there, long work is done in threads.

A session is made of parts: the store with all answers, settings and steps to undo (`answers`), the
work (`BackgroundWork`), the masks (`MovieMasks`), the tracks (`Tracker`), the edits of
people (`Edits`), questions (`Questions`) and training (`Trainer`). Every change goes into the
store, which writes it down; `_follow` makes what comes of it, also of undo and redo.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from psygnal import Signal

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Annotation, EventRef, describe
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.history import AnswerChange
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.errors import BridgetrackError, InputError, plural
from bridgetrack.hypotheses.events import EVERYTHING
from bridgetrack.models.library import Library
from bridgetrack.models.model import Model, shipped_model
from bridgetrack.movie import check_same_extent
from bridgetrack.pipeline.project import load_project
from bridgetrack.pipeline.scene import Scene
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import Progress, run
from bridgetrack.regions.mend import MaskAnswer, MendKind, Place
from bridgetrack.session.background import BackgroundWork
from bridgetrack.session.cells import CellNames, step_words
from bridgetrack.session.edits import Edits
from bridgetrack.session.masks import MovieMasks
from bridgetrack.session.movie import KeptSettings, MovieAndCells, movie_of
from bridgetrack.session.project import ProjectFolder, open_store, saving, usual_folder
from bridgetrack.session.questions import Questions
from bridgetrack.session.tracker import Tracker
from bridgetrack.session.training import Trainer
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.train import Training


class Session:
    """A movie, its answers, questions, model and tracks.

    Every change is announced by a signal; `masks_changed` comes with the frames whose masks were
    changed here.

    Parameters
    ----------
    labels
        Cells: a label movie as an array, a path or a `Movie`, or a table of detections. None to
        `open` a movie later.
    image
        Intensities, as an array, a path or a `Movie`; optional.
    channel
        Number or name of the channel of the image that shows the cells, by which masks are mended,
        chosen and explained; the first where none is named. Tracks go by all.
    project
        Folder in which everything is kept from the moment it is given: answers, settings, the
        model in use, and cells that are in no file; what is in it is resumed. None to keep all in
        memory until the session is saved.
    model
        Weights to begin with; where None those of the project, or else of the shipped model.
    work
        Does long work; at once, in the calling thread, where None.
    library
        Models that were kept; the user's library where None.

    Attributes
    ----------
    movie, masks
        The movie with its cells, None while none is open; the segmentation as it is mended, if any.
    answers
        All answers and settings, kept on disk, with what can be undone.
    work, message, progress
        Named work, what it tells people, and how far it is.
    scene, tracking
        Its cells with what can happen to them, and the tracks under the present model and answers;
        None until there are any.
    model, kinds
        The model in use, and what can happen in the movie.
    settings, project, tracker, questions, trainer, edits
        What is set for the movie, its folder, cells and tracks as they are made, what is asked,
        training, and what people say of events and tracks.

    Raises
    ------
    BridgetrackError
        Where something cannot be read or does not fit; the message says what to do.
    """

    movie_changed = Signal()
    scene_changed = Signal()
    answers_changed = Signal()
    model_changed = Signal()
    tracking_changed = Signal()
    kinds_changed = Signal()
    masks_changed = Signal(object)

    def __init__(
        self,
        labels: Any = None,
        image: Any = None,
        *,
        channel: int | str = 0,
        project: str | os.PathLike[str] | None = None,
        model: Model | None = None,
        work: BackgroundWork | None = None,
        library: Library | None = None,
    ) -> None:
        self.work = work or BackgroundWork()
        self.movie: MovieAndCells | None = None
        self.answers: AutosavingStore | None = None
        self.masks: MovieMasks | None = None
        self.scene: Scene | None = None
        self.tracking: Tracking | None = None
        self.model, self.kinds = model or shipped_model(), EVERYTHING
        self.work.words_of = self.words_of
        # Methods of the work that panels and parts call on the session.
        self.message, self.progress = self.work.message, self.work.progress
        self.run, self.cancel, self.busy = self.work.run, self.work.cancel, self.work.busy
        self.tell, self.telling = self.work.tell, self.work.telling
        self.settings, self.edits = KeptSettings(self), Edits(self)
        self.project = ProjectFolder(self)
        self.tracker = Tracker(self)
        self.trainer = Trainer(self, library)
        self.questions = Questions(self, self.trainer)
        self._named: tuple[Tracking | None, CellNames] = None, CellNames(None)
        self._said: dict[Annotation, str] = {}
        if labels is not None:
            folder = None if project is None else Path(project)
            self._open(movie_of(labels, image, channel), folder, model)

    @classmethod
    def from_project(cls, path: str | os.PathLike[str]) -> Session:
        """Continue a project; all changes are saved in its folder.

        Parameters
        ----------
        path
            The folder, also without its ending; or a project file of an earlier version, whose
            folder is beside it.

        Raises
        ------
        BridgetrackError
            Where it cannot be read, or where a file that it names is missing.
        """
        found, made = load_project(path), cls()
        cells, pixels = found.open()
        image = None if found.image is None else found.image.path
        movie = movie_of(cells, pixels, found.channel, found.labels.path, image)
        made.open(replace(movie, found=found.found), Path(path))
        return made

    # ------------------------------------------------------------------ opening

    def open(self, movie: MovieAndCells, project: Path | None = None) -> bool:
        """Open a movie, resume its project, and prepare it in the background.

        The project is beside the movie where none is given. False, and a message, where it could
        not begin.
        """
        return self._open(movie, project or usual_folder(movie.path, movie.name, movie.geometry))

    def _open(self, movie: MovieAndCells, project: Path | None, model: Model | None = None) -> bool:
        try:
            if movie.image is not None and movie.labels is not None:
                check_same_extent(movie.image, movie.labels)
            answers = AutosavingStore(None, movie.geometry)
            if project is not None:
                answers = open_store(project, movie.geometry)
            masks = None if movie.labels is None else MovieMasks(self, movie, answers)
            mended, lost = (set[int](), 0) if masks is None else masks.restore()
        except (BridgetrackError, OSError) as error:
            self.tell(error)
            return False
        known, ended = self.project.path, self.close()
        self.movie, self.answers, self.masks = movie, answers, masks
        if self.project.path != known:
            self._tell_restored(movie, answers)
        self._take_masks()
        if model is not None:
            self.settings.write(**self.settings.entries(model))
        kept, before = self.settings.restore(), (self.model, self.kinds)
        self.model, self.kinds = kept.model or self.model, kept.kinds
        answers.changed.connect(self._follow)
        answers.locked, answers.name = self.edits.locked, self.questions.name
        self.movie_changed.emit()
        if mended:
            self.masks_changed.emit(mended)
        notices = [ended, answers.notice]
        if lost:
            notices.append(
                f"In {plural(lost, 'frame')} the masks have changed since you corrected them; your "
                "corrections there were not applied."
            )
        for notice in filter(None, notices):
            if len(self.message):
                self.message.emit("warning", notice)
            else:
                warnings.warn(notice, stacklevel=3)
        self.answers_changed.emit()
        if before[0] is not self.model:
            self.model_changed.emit()
        if before[1] != self.kinds:
            self.kinds_changed.emit()
        self.settings.restored.emit()
        self.tracker.measure()
        return True

    def _tell_restored(self, movie: MovieAndCells, answers: AutosavingStore) -> None:
        back = [plural(answers.resumed, "answer")] if answers.resumed else []
        back += ["the cells that you found or painted"] if movie.kept else []
        if back and self.project.path is not None:
            told = f"Restored from {self.project.path.name}: {', '.join(back)}."
            self.message.emit("info", told)

    def close(self) -> str:
        """Close the movie and end the work on it; answers and cells stay on disk.

        Returns
        -------
        str
            Message about work that ends with the movie and about anything lost; may be empty.
        """
        ends, told = " and ".join(self.work.unfinished), []
        if ends:
            told.append(f"{ends} ended before it was done: its movie or its cells were closed.")
        self.project.keep_now()
        if self.project.problem:
            told.append(f"The project that was open could not be saved: {self.project.problem}.")
        if self.answers is not None:
            self.answers.changed.disconnect(self._follow)
        self.movie = self.answers = self.scene = self.tracking = self.masks = None
        self._said.clear()
        self.tracker.forget()
        self.settings.read()
        self.work.close()
        return " ".join(told)

    def forget(self) -> str:
        """Close the movie and show this; returns the message of `close`."""
        if self.movie is None:
            return ""
        ended = self.close()
        self.movie_changed.emit()
        self.answers_changed.emit()
        self.tracking_changed.emit()
        if ended:
            self.message.emit("warning", ended)
        return ended

    # ------------------------------------------------------------------ what comes of a change

    def _follow(self, change: AnswerChange) -> None:
        """Masks, model and tracks follow a change that was written down."""
        frames = set[int]()
        if self.masks is not None and (change.masks_added or change.masks_removed):
            frames, done = self.masks.follow(change)
            if not done:
                self.message.emit(
                    "warning", "The masks have changed there since and stay as they are."
                )
        if change.settings:
            self.settings.follow(set(change.settings))
        if frames:
            self._take_masks()
            self.masks_changed.emit(frames)
        if change.added or change.removed or change.masks_added or change.masks_removed:
            self.answers_changed.emit()
        if frames:
            self.tracker.measure(touched=frames)
        else:
            self.tracker.catch_up()
        self.project.follow(change)

    def _take_masks(self) -> None:
        movie, masks = self.movie, self.masks
        if movie is not None and masks is not None and movie.labels is not masks.labels:
            self.movie = replace(movie, labels=masks.labels)

    @property
    def can_undo(self) -> bool:
        """Whether something can be undone."""
        return self.answers is not None and bool(self.answers.history.past)

    @property
    def can_redo(self) -> bool:
        """Whether something was undone that can be repeated."""
        return self.answers is not None and bool(self.answers.history.future)

    def undo(self) -> None:
        """Undo the last answer, change of masks, model or choice of events that occur."""
        if self.answers is None or not self.can_undo:
            self.message.emit("hint", "There is nothing to undo.")
            return
        words = step_words(self.answers.history.past[-1], self.words_of)
        self.message.emit("info", f"Undone: {words}. Redo (R) brings it back.")
        with self.telling():
            self.answers.undo()

    def redo(self) -> None:
        """Repeat the step that was undone last."""
        if self.answers is None or not self.can_redo:
            self.message.emit("hint", "There is nothing to redo.")
            return
        words = step_words(self.answers.history.future[-1], self.words_of)
        self.message.emit("info", f"Redone: {words}. Z undoes it.")
        with self.telling():
            self.answers.redo()

    # ------------------------------------------------------------------ what is known

    @property
    def annotations(self) -> AnnotationSet | None:
        """The present answers about events, None without a movie."""
        return None if self.answers is None else self.answers.annotations

    @property
    def names(self) -> CellNames:
        """Names of cells: those of their tracks, as soon as there are any."""
        if self._named[0] is not self.tracking:
            self._named = self.tracking, CellNames(self.tracking)
        return self._named[1]

    def words_of(self, answer: Annotation) -> str:
        """An answer as a line, in the words at that time: names of cells may change."""
        if answer not in self._said:
            self._said[answer] = describe(answer, self.questions.name)
        return self._said[answer]

    # ------------------------------------------------------------------ for scripts

    def ask(self) -> Suggestion | None:
        """The question whose answer helps most.

        The same question comes back until it is answered.

        Returns
        -------
        Suggestion or None
            ``question`` and ``reason`` say what is asked and why; ``event`` is what the model
            believes, ``alternatives`` what else could be. None where nothing is left to ask.

        Raises
        ------
        InputError
            Where no movie is open.
        """
        self._need_movie()
        self.questions.prepare()
        self.questions.show()
        if self.questions.current is None:
            # Learning may have filled an empty queue.
            self.questions.show()
        return self.questions.current

    def answer(self, question: Suggestion | None, answer: str | bool | int | EventRef) -> None:
        """Answer a question; the tracks honour it at once.

        Parameters
        ----------
        question
            From `ask`.
        answer
            ``"yes"`` or True: the proposed event holds; ``"no"`` or False: it does not;
            ``"cannot tell"``; ``"skip"``: ask something else first; a number: that of the event
            of ``question.alternatives`` which holds, from 0; or the event that holds.

        Raises
        ------
        InputError
            If there is no such answer, or nothing was asked.
        OutputError
            Where it cannot be written down; then nothing has changed.
        """
        if question is None:
            raise InputError("there is no question to answer: ask() found none worth asking")
        self.questions.say(question, answer)

    def train(self, options: TrainingOptions | None = None) -> Training | None:
        """Learn from all answers and use the new model; None while that is under way.

        Training starts from the model in use, or, where that learned from answers about this
        movie already, from what it began with.

        Raises
        ------
        InputError
            Where there is nothing to learn from.
        """
        self._need_movie()
        self.trainer.train(options)
        if self.trainer.problem:
            raise InputError(self.trainer.problem)
        return None if self.trainer.busy else self.trainer.training

    def _need_movie(self) -> None:
        if self.movie is None:
            raise InputError("there is no movie in this session; give its labels to Session")

    def save(self, path: str | os.PathLike[str], formats: tuple[str, ...] | None = None) -> Path:
        """Save a copy of the project, for `from_project`, the window or `bridgetrack run`.

        Parameters
        ----------
        path
            Its folder, ``NAME.bridgetrack``; movie and cells that are in no file are written into
            it.
        formats
            What `bridgetrack run` writes, as in `write_results`; those chosen where None.

        Returns
        -------
        Path
            The folder.

        Raises
        ------
        InputError
            Where no movie is open.
        OutputError
            Where something cannot be written, or where there is something else, or a project in
            which a person went on since it was saved.
        """
        return run(saving(self, Path(path), formats))

    def export(
        self,
        folder: str | os.PathLike[str],
        formats: Sequence[str] | None = None,
        *,
        progress: Callable[[Progress], object] | None = None,
    ) -> tuple[str, ...]:
        """Write the tracks, with all answers given so far, and ``methods.txt``.

        Parameters
        ----------
        folder
            Where to; see `write_results`.
        formats
            As in `write_results`; those chosen where None.
        progress
            Called with each step.

        Returns
        -------
        tuple of str
            What a format could not hold; and whether an earlier result was replaced.

        Raises
        ------
        InputError
            Where there are no tracks.
        OutputError
            Where a format is unknown, or the folder cannot be written or holds what must not be
            replaced; nothing has changed then.
        """
        chosen = self.settings.present.formats if formats is None else formats
        return run(self.tracker.exported(Path(folder), chosen), progress)

    # ------------------------------------------------------------------ masks and edits

    def mend(self, kind: MendKind | str, frame: int, *places: Place) -> MaskAnswer:
        """Mend the masks of a frame; the tracks follow, and the answer is kept.

        Parameters
        ----------
        kind
            ``"cut"``: the cell at a place is two; a line between two places cuts the cell that
            it crosses. ``"join"``: the cells at two places are one. ``"grow"``: here is a cell.
            ``"remove"``: this is no cell. ``"outline"``: this cell has another outline, the next
            at each call. ``"check"``: all cells between two corners, or in the whole frame, are
            right, and none is missing.
        frame
            Number of the frame.
        *places
            Where, in pixels: ``(y, x)`` or ``(z, y, x)``.

        Returns
        -------
        MaskAnswer
            What was said, with what it changed as runs of pixels.

        Raises
        ------
        InputError
            Where that cannot be done, or a verified track is locked against it; the message says
            why and what to do.
        OutputError
            Where the answer cannot be saved; then nothing has changed.
        """
        return self._mendable().mend(kind, frame, *places)

    def choose_again(self) -> None:
        """Choose the masks of all frames again with the answers about them, as one step.

        They are chosen as they were found; masks brought along stay where neither the image nor
        an answer objects. Frames in which masks change meanwhile stay as they are.

        Raises
        ------
        InputError
            Where there are no masks, or no image, or no cell would be left.
        """
        self._mendable().choose_again()

    def _mendable(self) -> MovieMasks:
        self._need_movie()
        if self.masks is None:
            raise InputError(
                "the cells are a table of points, which has no masks to correct; move, add or "
                "delete points instead"
            )
        return self.masks
