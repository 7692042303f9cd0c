"""The masks of the open movie: corrected by clicks, each change kept as an answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation, CellRef
from bridgetrack.annotations.annotation_set import natural_key
from bridgetrack.annotations.history import AnswerChange
from bridgetrack.annotations.mask_answers import MaskAnswers, with_events
from bridgetrack.annotations.store import AutosavingStore
from bridgetrack.arrays import Index
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError, plural
from bridgetrack.movie.movie import EditedFrames, label_frame
from bridgetrack.pipeline.finding import CellSearch, Finding, chosen_again
from bridgetrack.pipeline.mask_changes import changes_again, highest_named
from bridgetrack.progress import Steps
from bridgetrack.regions.acts import MendSite, act
from bridgetrack.regions.mend import MaskAnswer, MendKind, Place, cell_pixels
from bridgetrack.regions.score import MovieScore, starting_score
from bridgetrack.segmentation.builtin import complete_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.session.cells import shown_diameter
from bridgetrack.session.movie import MovieAndCells

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

JOB = "choose"
"""Name of the background work: choosing masks again."""


class MovieMasks:
    """The label movie of a session with the answers about its masks.

    Changes are written into the array that its labels show, where there is one, else kept in
    memory beside them. Raises an `InputError` if something cannot be done and an `OutputError` if
    it cannot be saved; then nothing has changed. The store holds all changes.
    """

    def __init__(self, session: Session, movie: MovieAndCells, store: AutosavingStore) -> None:
        assert movie.labels is not None
        self._session, self._movie, self._store = session, movie, store
        self.labels = movie.labels  # the segmentation with all changes
        # The score learned last from the movie and the answers about its masks, or None.
        self.learned = None if movie.found is None else movie.found.learned
        self._edited: EditedFrames | None = None
        self._settings: SegmentationSettings | None = None

    @property
    def answers(self) -> MaskAnswers:
        """The answers about the masks."""
        return self._store.masks

    @property
    def has_image(self) -> bool:
        """Whether there is an image, from which other masks can be chosen."""
        return self._movie.image is not None

    def restore(self) -> tuple[set[int], int]:
        """Repeat the changes made before the movie was opened.

        Returns the frames changed, and in how many others the masks are neither those before nor
        those after the answers; these stay unchanged.
        """
        changes, lost = changes_again(self.labels, self.answers)
        for t, (pixels, after) in changes.items():
            self._write(t, pixels, after)
        return set(changes), lost

    def label_at(self, t: int, place: Place) -> int:
        """The label at a place of a frame, 0 for background and beyond the frame."""
        frame = self._frame(t) if 0 <= t < self.labels.n_frames else np.zeros((0,) * len(place))
        at = tuple(round(p) for p in place)
        inside = all(0 <= a < n for a, n in zip(at, frame.shape, strict=True))
        return int(frame[at]) if inside else 0

    # ------------------------------------------------------------------ mending

    def site(self, t: int) -> MendSite:
        """A frame whose masks can be corrected, with the score learned from the movie, if any."""
        if not 0 <= t < self.labels.n_frames:
            raise InputError(
                f"there is no frame {t}; the movie has 0 to {self.labels.n_frames - 1}"
            )
        labels, movie, detections = self._frame(t), self._movie, self._detections
        image = None if movie.image is None else movie.image.channel_frame(t, movie.channel)
        if self._settings is None:
            self._settings = self._complete(image, detections)
        free, scale = self._free(labels), self.labels.geometry.scale
        score = self.learned or MovieScore(starting_score())
        name = self._session.questions.name
        return MendSite(
            t, labels, self._settings, free, image, scale,
            lambda label: name(CellRef(t, label, ())), score,
        )  # fmt: skip

    def _complete(self, image: NDArray[Any] | None, detections: Detections) -> SegmentationSettings:
        """The settings of the search; missing ones are estimated from the cells and a frame."""
        width = shown_diameter(detections)
        found = (self._movie.found and self._movie.found.settings) or SegmentationSettings()
        # cells at the edge are left out where cells are found, not where somebody points at one
        known = replace(found, diameter=found.diameter or max(width, 2.0), clear_border=False)
        return known if image is None or np.ptp(image) == 0 else complete_settings([image], known)

    @property
    def _detections(self) -> Detections:
        base = self._session.tracker.base
        if base is None:
            raise InputError("the cells are still being measured; try again in a moment")
        return base.detections

    def _free(self, labels: NDArray[Any]) -> int:
        """A number that no cell ever had."""
        known = (int(self._detections.label.max(initial=0)), int(labels.max(initial=0)))
        return 1 + max(*known, self.answers.last_label)

    def new_label(self, t: int) -> int:
        """A number for a new cell of a frame, which no cell ever had."""
        label = self._free(self._frame(t))
        self._refuse_above(label)
        return label

    def mend(self, kind: MendKind | str, t: int, *places: Place) -> MaskAnswer:
        """Mend the masks of a frame, see `Session.mend`."""
        said = act(kind, self.site(t), *places)
        self.refuse_locked([said])
        self._keep([said])
        return said

    def _keep(self, said: list[MaskAnswer]) -> None:
        """Save changes, unless the number of a cell cannot be stored."""
        self._refuse_above(max(label for each in said for label in (0, *each.labels)))
        self._store.edit(AnswerChange(masks_added=self.answers.next_for(said)))

    def _refuse_above(self, highest: int) -> None:
        """Refuse a number that the type of the labels cannot hold."""
        dtype = self.labels.array.dtype
        limit = np.iinfo(dtype).max if dtype.kind in "iu" else 2**24
        if highest > limit:
            raise InputError(
                f"the label image is {dtype} and has no free number left for a new cell; save it "
                "with more bits (for example as uint32) and open it again"
            )

    def refuse_locked(
        self, changes: Iterable[MaskAnswer], going: Collection[Annotation] = ()
    ) -> None:
        """Raise an error if masks would change that a verified track rests on.

        Answers that are `going` at the same time do not count.
        """
        self._store.refuse_locked(a for a in self._about(changes) if a not in going)

    def _is_locked(self, *changes: MaskAnswer) -> bool:
        """Whether a verified track is locked against one of these changes of masks."""
        return any(map(self._session.edits.locked, self._about(changes)))

    def _about(self, changes: Iterable[MaskAnswer]) -> Iterator[Annotation]:
        """Answers about events of cells whose masks would change."""
        changed = {(a.frame, label) for a in changes for label in a.labels}
        frames, scene = {t for t, _ in changed}, self._session.scene
        rows = {} if scene is None else scene.anchored.rows

        def concerned(cell: CellRef) -> bool:
            if cell.frame not in frames:
                return False
            row = rows.get(cell)  # its label is another one where cells were found anew
            label = cell.label if scene is None or row is None else scene.detections.label[row]
            return (cell.frame, int(label)) in changed

        return (a for a in self._store.annotations if any(map(concerned, a.cells)))

    def follow(self, change: AnswerChange) -> tuple[set[int], bool]:
        """Apply the changes of a step to masks that are as they were before it.

        Changes of pixels that later answers changed are left out, so that undoing changes no more
        than the step did. Returns the frames that changed, and whether all changes could be made.
        """
        steps = [*(a.inverse for a in reversed(change.masks_removed)), *change.masks_added]
        ids, frames, done = {a.id for a in steps}, set(), True
        others = [a for a in self.answers.past if a.id not in ids]
        for step in steps:
            pixels, before, after = step.changed
            there = self._frame(step.frame).reshape(-1)[pixels]
            if np.array_equal(there, after):
                continue  # it was painted, or says that all is right
            since = (a for a in others if natural_key(a.id) > natural_key(step.id))
            here = (a.changed[0] for a in since if a.frame == step.frame)
            if np.array_equal(there, before) and not any(np.isin(pixels, p).any() for p in here):
                self._write(step.frame, pixels, after)
                frames.add(step.frame)
            else:
                done = False
        return frames, done

    # ------------------------------------------------------------------ choosing again

    def said(self) -> Steps[MaskAnswers]:
        """All answers about the masks so far, also those that follow from events.

        Frames with answers about events are read when the steps are run.
        """
        base, answers, labels = self._session.tracker.base, self.answers, self.labels
        annotations = self._store.annotations

        def steps() -> Steps[MaskAnswers]:
            if base is None:  # the cells are still being measured
                return answers
            return (yield from with_events(answers, annotations, base.detections, labels))

        return steps()

    def choose_again(self) -> None:
        """Choose the masks of all frames anew, see `Session.choose_again`."""
        session, answers = self._session, self.answers
        if not self.has_image:
            raise InputError("choosing masks needs the image; select it as Movie in step 1")
        if session.tracker.base is None:
            raise InputError("the cells are still being measured; try again in a moment")
        movie, labels, found = self._movie, self.labels, self._movie.found
        assert movie.image is not None
        named, said = highest_named(answers, self._store.annotations), self.said()
        # Masks that were not chosen here are repaired.
        how = found if found is not None and found.chooses else Finding(given=labels)
        how = replace(how, learned=self.learned)
        search = CellSearch(movie.image, how, weights=session.model, channel=movie.channel)

        def work() -> Steps[list[MaskAnswer]]:
            search.answers = yield from said
            return (yield from chosen_again(search, labels, named))

        def done(changes: list[MaskAnswer]) -> None:
            self._on_chosen(answers, changes, search.finding.learned)

        session.run(JOB, work, done, what="Choosing the masks again")

    def _on_chosen(
        self, answers: MaskAnswers, changes: list[MaskAnswer], learned: MovieScore | None
    ) -> None:
        message, self.learned = self._session.message, learned
        before, after = ({a.id: a.frame for a in each} for each in (answers, self.answers))
        since = {{**before, **after}[i] for i in before.keys() ^ after.keys()}
        fit = [a for a in changes if a.frame not in since and self._fits(a)]
        locked = self._is_locked(*fit)  # by a track that was verified meanwhile
        taken = [a for a in fit if not locked or not self._is_locked(a)]
        if taken:
            with self._session.telling():
                self._keep(taken)
                told = f"The masks changed in {plural(len(taken), 'frame')}. Z undoes this."
                message.emit("info", told)
        elif not changes:
            message.emit("info", "No better masks were found; nothing has changed.")
        if stay := len(changes) - len(taken):
            why = "you changed masks meanwhile, or a verified track is locked"
            told = f"In {plural(stay, 'frame')} {why}: nothing is changed there."
            message.emit("warning", told)

    # ------------------------------------------------------------------ painting

    def note_painting(self, t: int, pixels: Index, before: Index) -> None:
        """Keep painting in a frame as an answer: these cells are right.

        The painted `pixels` are ascending places in the flat frame, with the labels `before`.
        """
        flat = self._frame(t).reshape(-1)
        changed = flat[pixels] != before
        pixels, before = pixels[changed], before[changed].astype(np.int64)
        if not len(pixels):
            return
        after = flat[pixels].astype(np.int64)
        right = cell_pixels(flat, np.setdiff1d([before, after], 0))
        gone = np.setdiff1d(before, [0, *(flat[places[0]] for places in right)])
        wiped = (pixels[before == k] for k in gone.tolist())
        change = pixels, before, after
        painted = MaskAnswer.of(t, MendKind.PAINT, right, wiped, change)
        with self._session.telling():
            self._store.edit(AnswerChange(masks_added=self.answers.next_for([painted])))
            self._tell("Saved", painted)

    def follow_painting(self) -> None:
        """Undo or redo answers whose painting was undone or redone elsewhere."""
        store = self._store
        with self._session.telling():
            undone = False
            while (last := _painting(store.masks.past[-1:])) and self._fits(last):
                undone = True
                if store.history.past and store.history.past[-1].masks_added == (last,):
                    store.undo()
                else:
                    store.edit(AnswerChange(masks_removed=(last,)))
                self._tell("Undone", last)
            while not undone and store.history.future:
                following = _painting(store.history.future[-1].masks_added)
                if following is None or not self._fits(following.inverse):
                    break
                store.redo()
                self._tell("Redone", following)

    def _tell(self, done: str, answer: MaskAnswer) -> None:
        self._session.message.emit("info", f"{done}: {answer.words}.")

    def _fits(self, change: MaskAnswer) -> bool:
        """Whether the masks are in the state before a change."""
        return change.fits(self._frame(change.frame))

    # ------------------------------------------------------------------ pixels

    def _frame(self, t: int) -> NDArray[np.integer]:
        return label_frame(self.labels, t)

    def _write(self, t: int, pixels: Index, labels: Index) -> None:
        where = np.unravel_index(pixels, self.labels.geometry.shape or ())
        if self._movie.pixels is not None:
            self._movie.pixels[t][where] = labels
            return
        if self._edited is None:
            self._edited = EditedFrames(self.labels)
            self.labels = self._edited.movie
        self._edited.write(t, where, labels)


def _painting(answers: tuple[MaskAnswer, ...]) -> MaskAnswer | None:
    """The painting of a step; None if it is something else."""
    painted = len(answers) == 1 and answers[0].kind == MendKind.PAINT
    return answers[0] if painted and not answers[0].says_nothing else None
