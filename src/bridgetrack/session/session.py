"""A session on one movie: the model asks, people answer, and the tracks follow.

    session = Session("labels.tif", "movie.tif")
    while (question := session.ask()) is not None:
        print(question.question)
        session.answer(question, "yes")
    session.train()
    session.save("movie.json")

The window works with the same class; there, long work is done in threads.
"""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from bridgetrack.active.suggestion import SessionOptions, Suggestion
from bridgetrack.annotations.annotation import EventRef
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.models.library import Library
from bridgetrack.models.model import Model
from bridgetrack.movie import open_labels, open_movie
from bridgetrack.pipeline.project import load_project
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.progress import run
from bridgetrack.session.background import Runner
from bridgetrack.session.mended_movie import MendedMovie
from bridgetrack.session.movie import MovieAndCells
from bridgetrack.session.project import channel_of, found_of, resume, saving
from bridgetrack.session.questions import Questions
from bridgetrack.session.results import TracksData, layer_data
from bridgetrack.session.track_edits import TrackEdits
from bridgetrack.session.training import StartChoice, Trainer
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training


class Session(MendedMovie):
    """A movie, its answers, questions, model and tracks.

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
    answers
        File in which answers are kept, each from the moment it is given; answers in it are
        resumed. None to keep them in memory until the session is saved.
    model
        Weights to begin with; those of the shipped model where None.
    options
        How questions are chosen.
    runner
        Does long work; at once, in the calling thread, where None.
    library
        Models that were kept; the user's library where None.

    Attributes
    ----------
    questions, trainer
        What is asked, and training.

    Raises
    ------
    BridgetrackError
        Where something cannot be read or does not fit; the message says what to do.
    """

    def __init__(
        self,
        labels: Any = None,
        image: Any = None,
        *,
        channel: int | str = 0,
        answers: str | os.PathLike[str] | None = None,
        model: Model | None = None,
        options: SessionOptions | None = None,
        runner: Runner | None = None,
        library: Library | None = None,
    ) -> None:
        super().__init__(runner)
        self.trainer = Trainer(self)
        self._library = library
        self.questions = Questions(self, self.trainer, options)
        self._drawn: tuple[Tracking, TracksData] | None = None
        if model is not None:
            self.set_model(model)
        if labels is not None:
            self._open(
                _movie_of(labels, image, channel), None if answers is None else Path(answers)
            )

    @classmethod
    def from_project(cls, path: str | os.PathLike[str]) -> Session:
        """Go on with a saved project; answers go on being kept beside it.

        Raises
        ------
        BridgetrackError
            Where it cannot be read, or where a file that it names is missing.
        """
        file, made = Path(path), cls()
        project = load_project(file)
        cells, image = project.open()
        known = None if project.image is None else project.image.path
        movie = _movie_of(cells, image, channel_of(project), project.labels.path, known)
        resume(made, replace(movie, found=found_of(project, file)), file)
        return made

    @cached_property
    def starts(self) -> StartChoice:
        """What training can start from; looks at the library of models from the first use on."""
        return StartChoice(self, self.trainer, self._library)

    @cached_property
    def edits(self) -> TrackEdits:
        """Correcting and verifying whole tracks."""
        return TrackEdits(self)

    def close(self) -> None:
        """Let go of the movie and end the work on it; the answers stay on disk."""
        self.questions.save()
        super().close()

    @property
    def layer_data(self) -> TracksData | None:
        """The present tracks as a Tracks layer takes them; None until there are any."""
        tracking = self.tracking
        if tracking is None:
            return None
        if self._drawn is None or self._drawn[0] is not tracking:
            self._drawn = tracking, layer_data(tracking.tracks)
        return self._drawn[1]

    # ------------------------------------------------------------------ for scripts

    def ask(self) -> Suggestion | None:
        """What it helps most to have answered.

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

    def answer(self, question: Suggestion | None, answer: str | int | EventRef) -> None:
        """Answer a question; the tracks honour it at once.

        Parameters
        ----------
        question
            From `ask`.
        answer
            ``"yes"``: the proposed event holds; ``"no"``: it does not; ``"cannot tell"``;
            ``"skip"``: ask something else first; a number: that of the event of
            ``question.alternatives`` which holds, from 0; or the event that holds.

        Raises
        ------
        InputError
            Where there is no such answer, or nothing was asked.
        OutputError
            Where it cannot be written down; then nothing has changed.
        """
        if question is None:
            raise InputError("there is no question to answer: ask() found none worth asking")
        questions = self.questions
        if answer == "skip":
            questions.pass_on(question)
        elif answer == "no":
            questions.reject(question)
        elif answer == "cannot tell":
            questions.cannot_tell(question)
        elif answer == "yes" or isinstance(answer, EventRef):
            questions.confirm(question, answer if isinstance(answer, EventRef) else None)
        elif isinstance(answer, int) and 0 <= answer < len(question.alternatives):
            questions.confirm(question, question.alternatives[answer])
        else:
            raise InputError(
                f"{answer!r} is no answer to this question: say 'yes', 'no', 'cannot tell' or "
                f"'skip', a number below {len(question.alternatives)} for one of its "
                "alternatives, or the event that holds"
            )

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
        self.trainer.train(options, self.start)
        if self.trainer.problem:
            raise InputError(self.trainer.problem)
        return None if self.trainer.busy else self.trainer.training

    def _need_movie(self) -> None:
        if self.movie is None:
            raise InputError("there is no movie in this session; give its labels to Session")

    def save(
        self,
        path: str | os.PathLike[str],
        formats: tuple[str, ...] = ("csv",),
    ) -> list[str]:
        """Save everything as a project, for `from_project`, the window or `bridgetrack run`.

        Parameters
        ----------
        path
            The project file; what is in no file yet is written beside it.
        formats
            What `bridgetrack run` writes, as in `write_results`.

        Returns
        -------
        list of str
            What was written besides the project.
        """
        return run(saving(self, Path(path), formats))


def _movie_of(
    labels: Any,
    image: Any,
    channel: int | str,
    labels_path: Path | None = None,
    image_path: Path | None = None,
) -> MovieAndCells:
    """Cells and image, opened where they are paths or arrays."""
    files = image_path or _path(image), labels_path or _path(labels)
    path = files[0] or files[1]
    table = labels if isinstance(labels, Detections) else None
    pixels = None if image is None else open_movie(image)
    return MovieAndCells(
        None if table is not None else open_labels(labels),
        pixels,
        "movie" if path is None else path.stem,
        path,
        files,
        table=table,
        channel=0 if pixels is None else pixels.channel_number(channel),
    )


def _path(given: Any) -> Path | None:
    return Path(given) if isinstance(given, str | os.PathLike) else None
