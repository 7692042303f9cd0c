"""What people say of the masks of the open movie: each answer is kept, and the tracks follow."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from bridgetrack.annotations.annotation import Annotation, CellRef
from bridgetrack.annotations.mask_answers import MaskAnswer, MaskAnswers
from bridgetrack.annotations.mask_targets import with_events
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.progress import Steps
from bridgetrack.regions.acts import act
from bridgetrack.regions.mend import Mend, MendKind, MendSite, Place
from bridgetrack.regions.taught import MovieScore
from bridgetrack.session.mask_work import chosen_again, highest_named
from bridgetrack.session.masks import MovieMasks

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

JOB = "choose"
"""Name of the background work: choosing masks again."""

_UNFINISHED = (
    "Choosing the masks again ended before it was done, as its movie or its cells are not open any "
    "more; the masks are as they were."
)


class Mending:
    """Changes the masks of a session's movie.

    Attributes
    ----------
    learned
        What the movie and the answers about its masks taught last; None where nothing is known.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.learned: MovieScore | None = None
        session.movie_changed.connect(self._on_movie)

    def _on_movie(self) -> None:
        movie = self._session.movie
        self.learned = None if movie is None or movie.found is None else movie.found.learned

    def mend(self, kind: MendKind | str, frame: int, *places: Place) -> Mend:
        """Mend the masks of a frame, see `Session.mend`."""
        return self.accept(act(kind, self.site(frame), *places))

    def site(self, frame: int) -> MendSite:
        """A frame whose masks can be mended.

        Raises
        ------
        InputError
            Where there is no such frame, or there are no masks.
        """
        masks, _, detections = self._mendable()
        return masks.site(frame, detections, self.learned)

    def accept(self, mend: Mend) -> Mend:
        """Make a change of masks that `act` prepared; returns and raises as `Session.mend`."""
        masks, store, detections = self._mendable()
        self.refuse_locked([mend])
        mend = masks.numbered(mend, detections)
        store.edit(masks_add=store.masks.next_for([mend]))
        return mend

    def refuse_locked(self, mends: Iterable[Mend], going: Collection[str] = ()) -> None:
        """Complain where masks would change that a verified track rests on.

        Answers that are `going` at the same time do not count.
        """
        store = self._session.answers
        if store is not None:
            store.refuse_locked(a for a in self._about(mends) if a.id not in going)

    def _is_locked(self, *mends: Mend) -> bool:
        """Whether a verified track is locked against one of these changes of masks."""
        return any(map(self._session.edits.locked, self._about(mends)))

    def _about(self, mends: Iterable[Mend]) -> Iterator[Annotation]:
        """Answers about events of cells whose masks would change."""
        changed = {(m.frame, k) for m in mends for k in np.union1d(m.before, m.after).tolist()}
        frames, scene = {t for t, _ in changed}, self._session.scene
        rows = {} if scene is None else scene.anchored.rows

        def concerned(cell: CellRef) -> bool:
            if cell.frame not in frames:
                return False
            row = rows.get(cell)  # its label is another one where cells were found anew
            label = cell.label if scene is None or row is None else scene.detections.label[row]
            return (cell.frame, int(label)) in changed

        return (a for a in self._session.annotations or () if any(map(concerned, a.cells)))

    def said(self) -> Steps[MaskAnswers]:
        """All that was said of the masks until now, also by answers about events.

        Every frame that was answered is looked at, where it is asked for.

        Raises
        ------
        InputError
            Where there are no masks.
        """
        session, base = self._session, self._session.tracker.base
        masks = session.masks or self._mendable()[0]
        answers, labels, annotations = masks.answers, masks.labels, session.annotations

        def steps() -> Steps[MaskAnswers]:
            if base is None or annotations is None:  # the cells are still being measured
                return answers
            return (yield from with_events(answers, annotations, base.detections, labels))

        return steps()

    # ------------------------------------------------------------------ choosing again

    def choose_again(self) -> None:
        """Choose the masks of all frames anew with the answers about them, as one step.

        They are chosen as they were found; masks brought along stay where neither the image nor
        an answer objects. Frames in which masks change meanwhile stay as they are.

        Raises
        ------
        InputError
            Where there are no masks, or no image, or no cell would be left.
        """
        session, [masks, _, _] = self._session, self._mendable()
        movie, weights, answers, learned = session.movie, session.model, masks.answers, self.learned
        assert movie is not None
        if movie.image is None:
            raise InputError(
                "masks are chosen by the image that they were made from, which is not there; "
                "choose it as well"
            )
        named, said = highest_named(answers, session.annotations or ()), self.said()

        def work() -> Steps[tuple[list[Mend], MovieScore | None]]:
            everything = yield from said
            return (yield from chosen_again(movie, everything, weights, named, learned))

        session.run(JOB, work, lambda made: self._on_chosen(answers, *made), unfinished=_UNFINISHED)

    def _on_chosen(
        self, answers: MaskAnswers, changes: list[Mend], learned: MovieScore | None
    ) -> None:
        masks, store, _ = self._mendable()
        message, self.learned = self._session.message, learned
        before, after = ({a.id: a.frame for a in each} for each in (answers, store.masks))
        since = {{**before, **after}[i] for i in before.keys() ^ after.keys()}
        fit = [m for m in changes if m.frame not in since and masks.fits(m)]
        locked = self._is_locked(*fit)  # by a track that was verified meanwhile
        mends = [m for m in fit if not locked or not self._is_locked(m)]
        if mends:
            with self._session.telling():
                masks.check_numbers(*mends)
                store.edit(masks_add=store.masks.next_for(mends))
                told = f"The masks changed in {len(mends)} frame(s). Undo (Z) takes that back."
                message.emit("info", told)
        elif not changes:
            message.emit("info", "The masks are as they were: nothing better was found.")
        for stay, why in (
            (len(changes) - len(fit), "you changed masks meanwhile"),
            (len(fit) - len(mends), "a verified track is locked against the change"),
        ):
            if stay:
                message.emit("warning", f"In {stay} frame(s) {why}; these stay.")

    # ------------------------------------------------------------------ painting

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
        session = self._session
        if session.masks is not None and session.answers is not None:
            with session.telling():
                painted = session.masks.painted(frame, pixels, before)
                if painted is not None:
                    session.answers.edit(masks_add=session.answers.masks.next_for([painted]))

    def follow_painting(self) -> None:
        """Take back, or repeat, answers whose painting was undone, or done again, elsewhere."""
        masks, store = self._session.masks, self._session.answers
        if masks is None or store is None:
            return
        with self._session.telling():
            undone = False
            while (last := _painting(store.masks.past[-1:])) and masks.is_as(last, before=True):
                undone = True
                if store.history.past and store.history.past[-1].masks_added == (last,):
                    store.undo()
                else:
                    store.edit(masks_remove=[last.id])
            while not undone and store.history.future:
                following = _painting(store.history.future[-1].masks_added)
                if following is None or not masks.is_as(following, before=False):
                    break
                store.redo()

    def _mendable(self) -> tuple[MovieMasks, AutosavingStore, Detections]:
        session, base = self._session, self._session.tracker.base
        if session.movie is None or session.answers is None:
            raise InputError("there is no movie in this session; open one first")
        if session.masks is None:
            raise InputError(
                "the cells are a table of points, which has no masks to mend; move, add or delete "
                "points instead"
            )
        if base is None:
            raise InputError("the cells are still being measured; try again in a moment")
        return session.masks, session.answers, base.detections


def _painting(answers: tuple[MaskAnswer, ...]) -> MaskAnswer | None:
    """The painting that a step is; None where it is something else."""
    painted = len(answers) == 1 and answers[0].kind == MendKind.PAINT
    return answers[0] if painted and not answers[0].says_nothing else None
