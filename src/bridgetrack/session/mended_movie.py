"""What people say of the masks of the open movie: each answer is kept, and the tracks follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from bridgetrack.annotations.annotation import Annotation, CellRef
from bridgetrack.annotations.mask_answers import MaskAnswers
from bridgetrack.annotations.mask_targets import with_events
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.progress import Steps
from bridgetrack.regions.acts import act
from bridgetrack.regions.mend import Mend, MendKind, MendSite, Place
from bridgetrack.regions.taught import MovieScore
from bridgetrack.session.background import Runner
from bridgetrack.session.mask_work import chosen_again, highest_named
from bridgetrack.session.masks import MaskStep, MovieMasks
from bridgetrack.session.tracked_movie import Step, TrackedMovie


class MendedMovie(TrackedMovie):
    """A movie whose masks can be mended.

    Attributes
    ----------
    learned
        What the movie and the answers about its masks taught last; None where nothing is known.
    """

    def __init__(self, runner: Runner | None = None) -> None:
        super().__init__(runner)
        self.learned: MovieScore | None = None
        self.movie_changed.connect(self._on_other_movie)

    def _on_other_movie(self) -> None:
        found = None if self.movie is None else self.movie.found
        self.learned = None if found is None else found.learned

    def mend(self, kind: MendKind | str, frame: int, *places: Place) -> Mend:
        """Mend the masks of a frame; the tracks follow, and the answer is kept.

        Parameters
        ----------
        kind
            ``"cut"``: the cell at a place is two; of two places in a cell each is in one of
            them, and a line between two others cuts what it crosses. ``"join"``: the cells at
            two places are one. ``"grow"``: here is a cell. ``"remove"``: this is no cell.
            ``"outline"``: this cell has another outline, the next at each call. ``"check"``: all
            cells between two corners, or in the whole frame, are right, and none is missing.
        frame
            Number of the frame.
        *places
            Where, in pixels: ``(y, x)`` or ``(z, y, x)``.

        Returns
        -------
        Mend
            What was changed.

        Raises
        ------
        InputError
            Where that cannot be done, or a verified track is locked against it; the message says
            why and what to do.
        OutputError
            Where the answer cannot be saved; then nothing has changed.
        """
        return self.accept(act(kind, self.site(frame), *places))

    @property
    def checked(self) -> int:
        """Cells in areas that were found right, see `MendKind.CHECK`."""
        return 0 if self.masks is None else self.masks.answers.checked

    def site(self, frame: int) -> MendSite:
        """A frame whose masks can be mended.

        Raises
        ------
        InputError
            Where there is no such frame, or there are no masks.
        """
        masks, detections = self._mendable()
        return masks.site(frame, detections, self.learned)

    def accept(self, mend: Mend) -> Mend:
        """Make a change of masks that `act` prepared; returns and raises as `mend`."""
        masks, detections = self._mendable()
        self._refuse_locked([mend])
        step = masks.mending(mend, detections)
        masks.take(step)
        self._did(Step(masks=step))
        [made] = step.mends
        if len(made.pixels):
            self._on_masks({made.frame})
        else:  # the masks are right as they are
            self.answers_changed.emit()
        return made

    def _refuse_locked(self, mends: Iterable[Mend], going: Collection[str] = ()) -> None:
        """Complain where masks would change that a verified track rests on."""
        if self.answers is not None:
            self.answers.refuse_locked(a for a in self._about(mends) if a.id not in going)

    def _is_locked(self, *mends: Mend) -> bool:
        """Whether a verified track is locked against one of these changes of masks."""
        return self.answers is not None and any(map(self.answers.locked, self._about(mends)))

    def _about(self, mends: Iterable[Mend]) -> Iterator[Annotation]:
        """Answers about events of cells whose masks would change."""
        changed = {(m.frame, k) for m in mends for k in np.union1d(m.before, m.after).tolist()}
        frames, scene = {t for t, _ in changed}, self.scene
        rows = {} if scene is None else scene.anchored.rows

        def concerned(cell: CellRef) -> bool:
            if cell.frame not in frames:
                return False
            row = rows.get(cell)  # its label is another one where cells were found anew
            label = cell.label if scene is None or row is None else scene.detections.label[row]
            return (cell.frame, int(label)) in changed

        return (a for a in self.annotations or () if any(map(concerned, a.cells)))

    def remove(self, annotations: Collection[str], masks: Collection[str]) -> int:
        """Take answers about events and about masks back, by their ids, as one step.

        Returns
        -------
        int
            How many there were.

        Raises
        ------
        InputError
            Where a verified track is locked against what that changes in the masks.
        OutputError
            Where that cannot be saved.
        """
        if self.answers is None:
            return 0
        events = [a.id for a in self.answers.annotations if a.id in set(annotations)]
        said = [] if self.masks is None else [a.id for a in self.masks.answers if a.id in masks]
        step = MaskStep()
        if self.masks is not None and (events or said):
            step = self.masks.removing(said, rest=len(events) < len(self.answers.annotations))
        if self.masks is not None and step != MaskStep():
            self._refuse_locked(step.mends, going=events)
            self._remove(events, self.masks, step)
        elif events:
            self.answers.remove(*events)
        return len(events) + len(said)

    def _remove(self, events: list[str], masks: MovieMasks, step: MaskStep) -> None:
        """Take answers about events and a step of masks back, as one step."""
        assert self.answers is not None
        done = masks.take(step)
        if events:
            self._stepping = True
            try:
                self.answers.remove(*events)
            finally:
                self._stepping = False
        self._taken(Step(bool(events), step), done)

    def _taken(self, step: Step, done: bool) -> None:
        """A step was made that changed masks."""
        assert step.masks is not None
        self._did(step)
        self._on_masks(step.masks.frames)
        if not done:
            self.message.emit("info", "The masks have changed there since and stay as they are.")

    @property
    def resumed(self) -> int:
        """How many answers, of either kind, were there when the movie was opened."""
        if self.answers is None:
            return 0
        return self.answers.resumed + (0 if self.masks is None else self.masks.resumed)

    def said_of_masks(self) -> Steps[MaskAnswers]:
        """All that was said of the masks until now, also by answers about events.

        Every frame that was answered is looked at, where it is asked for.

        Raises
        ------
        InputError
            Where there are no masks.
        """
        masks, base, annotations = self.masks or self._mendable()[0], self._base, self.annotations
        answers, labels = masks.answers, masks.labels

        def steps() -> Steps[MaskAnswers]:
            if base is None or annotations is None:  # the cells are still being measured
                return answers
            return (yield from with_events(answers, annotations, base.detections, labels))

        return steps()

    def choose_again(self) -> None:
        """Choose the masks of all frames anew with the answers about them, as one step.

        They are chosen as they were found; masks brought along stay where neither the image nor
        an answer objects. Frames in which masks change meanwhile stay as they are.

        Raises
        ------
        InputError
            Where there are no masks, or no image, or no cell would be left.
        """
        masks, _ = self._mendable()
        movie, weights, answers = self.movie, self.model, masks.answers
        assert movie is not None
        if movie.image is None:
            raise InputError(
                "masks are chosen by the image that they were made from, which is not there; "
                "choose it as well"
            )
        named, learned = highest_named(answers, self.annotations or ()), self.learned
        said = self.said_of_masks()

        def work() -> Steps[tuple[list[Mend], MovieScore | None]]:
            everything = yield from said
            return (yield from chosen_again(movie, everything, weights, named, learned))

        self.run(
            "choose",
            work,
            lambda chosen: self._on_chosen(answers, *chosen),
            unfinished="Choosing the masks again ended before it was done, as its movie or its "
            "cells are not open any more; the masks are as they were.",
        )

    def _on_chosen(
        self, answers: MaskAnswers, changes: list[Mend], learned: MovieScore | None
    ) -> None:
        masks, _ = self._mendable()
        self.learned = learned
        said = {a.id: a.frame for a in (*answers, *masks.answers)}
        old, new = ({a.id for a in each} for each in (answers, masks.answers))
        since = {said[i] for i in old ^ new}
        fit = [m for m in changes if m.frame not in since and masks.fits(m)]
        locked = self._is_locked(*fit)  # by a track that was verified meanwhile
        mends = tuple(m for m in fit if not locked or not self._is_locked(m))
        if mends:
            with self.telling():
                step = masks.choosing(mends)
                self._taken(Step(masks=step), masks.take(step))
                self.message.emit(
                    "info", f"The masks changed in {len(mends)} frame(s). Undo (Z) takes that back."
                )
        elif not changes:
            self.message.emit("info", "The masks are as they were: nothing better was found.")
        for stay, why in (
            (len(changes) - len(fit), "you changed masks meanwhile"),
            (len(fit) - len(mends), "a verified track is locked against the change"),
        ):
            if stay:
                self.message.emit("warning", f"In {stay} frame(s) {why}; these stay.")

    def note_painting(self, frame: int, pixels: Any, before: Any) -> None:
        """Keep what somebody painted in a frame as an answer: these cells are right.

        Parameters
        ----------
        frame
            Number of the frame.
        pixels
            Places in the flat frame that were painted, ascending.
        before
            Their labels before.
        """
        if self.masks is not None:
            with self.telling():
                step = self.masks.painted(frame, pixels, before)
                if step is not None:
                    self._did(Step(masks=step))
                    self.answers_changed.emit()

    def _mendable(self) -> tuple[MovieMasks, Detections]:
        if self.movie is None:
            raise InputError("there is no movie in this session; open one first")
        if self.masks is None:
            raise InputError(
                "the cells are a table of points, which has no masks to mend; move, add or delete "
                "points instead"
            )
        if self._base is None:
            raise InputError("the cells are still being measured; try again in a moment")
        return self.masks, self._base.detections
