"""The accuracy of the tracks, by a sample of events to be judged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from psygnal import Signal

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import Kind
from bridgetrack.errors import InputError, sentence
from bridgetrack.evaluation.sample import Sample, SampleOptions, draw_sample, write_sample
from bridgetrack.pipeline.project import SAMPLE, judged_sample

if TYPE_CHECKING:
    from bridgetrack.session.session import Session

_VERDICTS = {Kind.CONFIRM: "yes", Kind.REJECT: "no", Kind.CANNOT_TELL: "?"}


class SampleCheck:
    """Goes through a sample of the present tracks; every verdict is kept on disk at once.

    Signals: `changed` after every verdict, `ended` when its events are asked about no more.
    """

    changed = Signal()
    ended = Signal()

    def __init__(self, movie: Session) -> None:
        self._movie = movie
        self.sample: Sample | None = None  # the last sample, with its verdicts
        self.running = False  # whether its events are asked about now
        self.holds = False  # whether it was drawn from the present tracks
        self._looked_for = False  # in the project, as soon as there were tracks
        movie.movie_changed.connect(self._forget)
        movie.scene_changed.connect(self._forget)
        movie.tracking_changed.connect(self._resume)

    @property
    def path(self) -> Path | None:
        """File of the sample, in the project's folder; None if everything is in memory."""
        folder = self._movie.project.path
        return None if folder is None else folder / SAMPLE

    @property
    def finished(self) -> Sample | None:
        """The sample, where every event is judged and it holds for the present tracks."""
        sample = self.sample
        return sample if sample is not None and not sample.left and self.holds else None

    @property
    def words(self) -> str:
        """Its progress, or the resulting sentence."""
        sample = self.sample
        if sample is None:
            return ""
        accuracy, n = sample.accuracy, len(sample.events)
        if sample.left:
            done = f"{n - len(sample.left)} of {n} judged."
            return done if self.holds else f"{done} The tracks have changed since; start again."
        if accuracy is None:
            return "None of these events could be judged."
        changed = "The tracks have changed since: this is about the earlier ones."
        words = sentence(accuracy.words)
        return words if self.holds else f"{words} {changed}"

    def begin(self, count: int) -> None:
        """Draw some events of the present tracks; go on with those drawn before, or draw more.

        Raises
        ------
        InputError
            Where nothing is tracked, or nothing is left to look at.
        """
        tracking, sample = self._movie.tracking, self.sample
        if tracking is None:
            raise InputError("there are no tracks to check yet; track the movie first")
        if sample is None or not self.holds:
            sample = draw_sample(tracking.tracks, SampleOptions(count))
        elif not sample.left:
            said = sample.verdicts
            options = replace(sample.options, count=len(said) + count)
            sample = draw_sample(tracking.tracks, options)
            sample = replace(sample, verdicts=said + sample.verdicts[len(said) :])
        if not sample.left:
            raise InputError(f"all {len(sample.events)} events have been judged already")
        self.running = self.holds = True
        self._keep(sample)

    def stop(self) -> None:
        """Stop asking for now; the verdicts are kept."""
        if self.running:
            self.running = False
            self.changed.emit()
            self.ended.emit()

    def next(self) -> Suggestion | None:
        """The next event without a verdict."""
        sample = self.sample
        if sample is None or not sample.left:
            return None
        number, n = sample.left[0], len(sample.events)
        event = sample.events[number]
        reason = (
            f"number {number + 1} of {n} drawn at random; your judgement does not change the tracks"
        )
        slot = ("fate" if event.sources else "history"), event.cells[0].cell
        return Suggestion(event, slot, reason, random=True, number=number)

    def judge(self, asked: Suggestion, kind: Kind) -> None:
        """Record a verdict.

        Raises
        ------
        OutputError
            Where it cannot be written down; nothing has changed then.
        """
        if self.sample is not None and asked.number is not None:
            self._keep(self.sample.judged(asked.number, _VERDICTS[kind]))

    @property
    def can_take_back(self) -> bool:
        """Whether some event was judged."""
        return self.sample is not None and len(self.sample.left) < len(self.sample.events)

    def take_back(self) -> bool:
        """Forget the last verdict, so that its event is next; whether there is one."""
        sample = self.sample
        if sample is None or not self.can_take_back:
            return False
        self._keep(sample.judged(max(k for k, said in enumerate(sample.verdicts) if said), ""))
        return True

    def _keep(self, sample: Sample) -> None:
        if self.path is not None:
            write_sample(sample, self.path)
        self.sample = sample
        self.changed.emit()

    def _forget(self) -> None:
        self.sample = None
        self.running = self.holds = self._looked_for = False
        self.changed.emit()

    def _resume(self) -> None:
        """Take over verdicts on these tracks from when the movie was open before."""
        tracking = self._movie.tracking
        if tracking is None:
            return
        if not self._looked_for and self.sample is None:
            self.sample = judged_sample(self._movie.project.path, tracking.tracks)
        self._looked_for = True
        self.holds = self.sample is not None and self.sample.holds_for(tracking.tracks)
        self.changed.emit()
