"""What is asked about the masks of the open movie, and what an answer does to them."""

from __future__ import annotations

from dataclasses import replace

from psygnal import Signal

from bridgetrack.active.mask_questions import MaskQuestion, mask_questions
from bridgetrack.annotations.mask_answers import MaskAnswer
from bridgetrack.movie.movie import label_frame
from bridgetrack.pipeline.finding import Finding, chosen_as
from bridgetrack.pipeline.mask_doubts import MaskDoubt, mask_doubts
from bridgetrack.pipeline.masks import MaskSettings
from bridgetrack.progress import Progress, Steps
from bridgetrack.segmentation.movie import movie_settings
from bridgetrack.segmentation.settings import SegmentationSettings
from bridgetrack.session.mended_movie import MendedMovie

JOB = "mask questions"
"""Name of the background work: looking where masks may be wrong."""

BLOCK = 8
"""Frames that are looked at together."""

LOW = 4
"""Open questions below which more frames are looked at."""

_LEAST = 0.15
"""Events put right on average from which a question is worth asking."""


class MaskQuestions:
    """Looks for places where the masks may be wrong, the frames in view first, and asks there.

    Signals: `changed` when there are other questions, or the work ended.

    Attributes
    ----------
    on
        Whether masks are asked about; see `turn`.
    frame
        The frame in view, around which it looks first.
    """

    changed = Signal()

    def __init__(self, movie: MendedMovie) -> None:
        self._movie = movie
        self.on, self.frame = False, 0
        self._found: list[MaskQuestion] = []
        self._later: list[MaskQuestion] = []
        self._answered: list[tuple[MaskQuestion, MaskAnswer]] = []
        self._seen: set[int] = set()
        self._settings: SegmentationSettings | None = None
        movie.movie_changed.connect(self._on_movie)
        movie.masks_changed.connect(self._on_masks)
        movie.masks_chosen.connect(self._on_chosen)

    @property
    def possible(self) -> bool:
        """Whether there are an image and masks to ask about."""
        movie = self._movie.movie
        return movie is not None and movie.image is not None and movie.labels is not None

    @property
    def busy(self) -> bool:
        """Whether it is looking at frames."""
        return self._movie.busy(JOB)

    @property
    def n_answered(self) -> int:
        """How many were answered since the movie was opened."""
        return len(self._answered)

    @property
    def open(self) -> list[MaskQuestion]:
        """Questions worth asking that are not answered, the best first."""
        return [q for q in self._ranked() if q.value >= _LEAST]

    def turn(self, on: bool) -> None:
        """Ask about masks from now on, or do not."""
        self.on = on
        if on:
            self.look()
        else:
            self._movie.cancel(JOB)
        self.changed.emit()

    # ------------------------------------------------------------------ looking

    def look(self) -> None:
        """Look at more frames in the background, where few questions are left."""
        movie, masks = self._movie.movie, self._movie.masks
        if not (self.on and self.possible) or masks is None or self._movie.busy(JOB):
            return
        left = [t for t in range(masks.labels.n_frames) if t not in self._seen]
        if not left or len(self.open) >= LOW:
            return
        assert movie is not None and movie.image is not None
        nearest = min(left, key=lambda t: abs(t - self.frame))
        first = nearest - nearest % BLOCK
        frames = range(first, min(first + BLOCK, masks.labels.n_frames))
        image, labels, model = movie.image, masks.labels, self._movie.model
        channel = movie.channel
        known, learned = self._settings, self._movie.learned
        how = chosen_as(labels, movie.found)
        how, said = replace(how, learned=learned or how.learned), self._movie.said_of_masks()

        def work() -> Steps[tuple[SegmentationSettings, Finding, tuple[MaskDoubt, ...]]]:
            yield Progress("Looking where masks may be wrong", 0.0)
            complete = known or movie_settings(image, how.settings, channel=channel)
            answers = yield from said
            # As they were chosen, also where they come from the disk, which keeps no score.
            taught = yield from replace(how, settings=complete).taught(
                image, answers, model, channel=channel
            )
            doubts = yield from mask_doubts(
                image, labels, frames, complete, MaskSettings(loyalty=how.loyalty),
                taught.known(answers), model, channel=channel,
            )  # fmt: skip
            return complete, taught, doubts

        self._movie.run(JOB, work, lambda result: self._looked(frames, *result), self._failed)

    def _looked(
        self,
        frames: range,
        settings: SegmentationSettings,
        taught: Finding,
        doubts: tuple[MaskDoubt, ...],
    ) -> None:
        self._settings, self._movie.learned = settings, taught.learned
        self._seen |= set(frames)
        self._found = [q for q in self._found if q.frame not in frames]
        self._found += mask_questions(doubts)
        self.changed.emit()
        self.look()

    def _failed(self, error: Exception) -> None:
        self.on = False
        self._movie.message.emit("warning", f"Masks are not asked about any more: {error}")
        self.changed.emit()

    def _on_movie(self) -> None:
        self._movie.cancel(JOB)
        self._forget()
        found = None if self._movie.movie is None else self._movie.movie.found
        self.on = self.possible and found is not None and found.chosen_here
        self.changed.emit()

    def _on_masks(self, frames: set[int]) -> None:
        """Masks of many frames are others now; one that is mended leaves the others in doubt."""
        if len(frames) > 1:
            self._look_anew(frames)

    def _on_chosen(self, frames: set[int]) -> None:
        if len(frames) == 1:  # several are looked at anew already
            self._look_anew(frames)

    def _look_anew(self, frames: set[int]) -> None:
        self._seen -= frames
        self._found = [q for q in self._found if q.frame not in frames]
        self.look()

    def _forget(self) -> None:
        self._found, self._later, self._answered = [], [], []
        self._seen, self._settings = set(), None

    # ------------------------------------------------------------------ asking

    def _ranked(self) -> list[MaskQuestion]:
        """Those that are not answered, the best first.

        What is passed over comes last; what is near an answered one counts for half, as that
        answer may have settled it.
        """
        done = [q for q, _ in self._answered]
        left = [q for q in self._found if not any(q is other for other in done)]

        def rank(asked: MaskQuestion) -> tuple[int, float]:
            half = any(asked.near(q) for q in done)
            late = next((k for k, q in enumerate(self._later, 1) if q is asked), 0)
            return late, -asked.value / (2 if half else 1)

        return sorted(left, key=rank)

    def next(self) -> MaskQuestion | None:
        """The best question whose masks are still as they were; None where there is none."""
        masks = self._movie.masks
        if not self.on or masks is None:
            return None
        for asked in self.open:
            if self.asks(asked):
                return asked
            self.drop(asked)
        self.look()
        return None

    def asks(self, asked: MaskQuestion) -> bool:
        """Whether a question is open, and its masks are still as they were."""
        masks = self._movie.masks
        if masks is None or not any(q is asked for q in self._ranked()):
            return False
        return asked.holds_for(label_frame(masks.labels, asked.frame))

    def later(self, asked: MaskQuestion) -> None:
        """Ask a question after all others."""
        self._later = [*(q for q in self._later if q is not asked), asked]

    def passed_over(self, asked: MaskQuestion) -> bool:
        """Whether it is to be asked after all others."""
        return any(q is asked for q in self._later)

    def drop(self, asked: MaskQuestion) -> None:
        """Ask a question no more."""
        self._found = [q for q in self._found if q is not asked]

    def answer(self, asked: MaskQuestion, right: bool) -> None:
        """The masks are right as drawn, or the alternative is: they change at once.

        The same change is then proposed where frames before and after show the same.

        Raises
        ------
        InputError
            Where they have changed since.
        OutputError
            Where the answer cannot be saved; then nothing has changed.
        """
        movie = self._movie
        site = movie.site(asked.frame)
        made = movie.accept(asked.mend(site.labels, right, site.free))
        assert movie.masks is not None
        self._answered.append((asked, movie.masks.answers.past[-1]))
        if not right:
            movie.propose_same(made)
        self.look()

    def taken_back(self) -> MaskQuestion | None:
        """The latest question whose answer is gone; None where all are there."""
        masks, back = self._movie.masks, None
        if masks is None:
            return None
        have = {a.id for a in masks.answers}
        while self._answered and self._answered[-1][1].id not in have:
            back, _ = self._answered.pop()
        return back
