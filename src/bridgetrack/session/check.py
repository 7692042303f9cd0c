"""How accurate the tracks are: a sample of events to be judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from psygnal import Signal

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import EventRef, Kind
from bridgetrack.errors import InputError, sentence
from bridgetrack.evaluation.sample import (
    Sample,
    SampleOptions,
    Verdict,
    draw_sample,
    read_sample,
    write_sample,
)
from bridgetrack.pipeline.project import SAMPLE
from bridgetrack.pipeline.tracking import Tracking

if TYPE_CHECKING:
    from bridgetrack.session.session import Session


_VERDICTS = {
    Kind.CONFIRM: Verdict.RIGHT,
    Kind.REJECT: Verdict.WRONG,
    Kind.CANNOT_TELL: Verdict.UNSURE,
}


@dataclass(frozen=True)
class SampleQuestion(Suggestion):
    """Whether an event of a sample is right, without a word on what the model thinks of it."""

    number: int = 0  # in the sample, from 0


class SampleCheck:
    """Goes through a sample of the present tracks; every verdict is kept on disk at once.

    Signals: `changed` after every verdict, `ended` when its events are asked about no more.
    """

    changed = Signal()
    ended = Signal()

    def __init__(self, movie: Session) -> None:
        self._movie = movie
        self.sample: Sample | None = None  # what was drawn last, with its verdicts
        self.running = False  # whether its events are asked about now
        self._later: list[int] = []  # numbers of events that were put off, and of those judged
        self._given: list[int] = []
        self._looked_for = False
        self._held: tuple[Tracking, Sample, bool] | None = None
        movie.movie_changed.connect(self._forget)
        movie.scene_changed.connect(self._forget)
        movie.tracking_changed.connect(self._resume)

    @property
    def path(self) -> Path | None:
        """Where the sample is kept: in the project's folder; None where all is in memory."""
        folder = self._movie.project.path
        return None if folder is None else folder / SAMPLE

    @property
    def holds(self) -> bool:
        """Whether the present tracks are those that the sample was drawn from."""
        tracking, sample = self._movie.tracking, self.sample
        if tracking is None or sample is None:
            return False
        if self._held is None or self._held[0] is not tracking or self._held[1] is not sample:
            self._held = tracking, sample, sample.holds_for(tracking.tracks)
        return self._held[2]

    @property
    def finished(self) -> Sample | None:
        """The sample, where every event is judged and it holds for the present tracks."""
        sample = self.sample
        return sample if sample is not None and not sample.left and self.holds else None

    @property
    def words(self) -> str:
        """How far it is, or the sentence that came of it."""
        sample = self.sample
        if sample is None:
            return ""
        accuracy, n = sample.accuracy, len(sample.events)
        if sample.left:
            done = f"{n - len(sample.left)} of {n} looked at."
            return done if self.holds else f"{done} The tracks have changed since; begin anew."
        if accuracy is None:
            return "Nobody could tell of any of these events whether it is right."
        since = "" if self.holds else " The tracks have changed since: this is about those before."
        return f"{sentence(accuracy.words)}{since}"

    def begin(self, options: SampleOptions | None = None) -> None:
        """Draw a sample of the present tracks, or go on with it where it was begun.

        Raises
        ------
        InputError
            Where nothing is tracked, or nothing is left to look at.
        """
        tracking, old = self._movie.tracking, self.sample
        if tracking is None:
            raise InputError("there are no tracks to check yet; track the movie first")
        new = draw_sample(tracking.tracks, options)
        if old is not None and old.options.of == new.options.of and self.holds:
            shared = min(len(old.events), len(new.events))
            new = replace(new, verdicts=old.verdicts[:shared] + new.verdicts[shared:])
        if not new.left:
            raise InputError(
                f"all {len(new.events)} events were looked at already; ask for more of them to go "
                "on"
            )
        self.running, self._later, self._given = True, [], []
        self._keep(new)

    def stop(self) -> None:
        """Ask no more for now; what was said stays."""
        self.running = False
        self.changed.emit()
        self.ended.emit()

    def next(self) -> SampleQuestion | None:
        """The next event that nobody has looked at."""
        sample = self.sample
        if sample is None or not sample.left:
            return None
        place = {k: n for n, k in enumerate(self._later, 1)}
        number = min(sample.left, key=lambda k: (place.get(k, 0), k))
        return _question(sample.events[number], number, len(sample.events))

    def postpone(self, asked: Suggestion) -> bool:
        """Ask the others first; whether there are others."""
        assert isinstance(asked, SampleQuestion)
        self._later = [k for k in self._later if k != asked.number] + [asked.number]
        return self.sample is not None and len(self.sample.left) > 1

    def answer(
        self,
        asked: Suggestion,
        event: EventRef | None = None,
        kind: Kind = Kind.CONFIRM,
        *,
        seconds: float | None = None,
    ) -> None:
        """Note what somebody saw; how long that took and what happened instead is not kept.

        Raises
        ------
        OutputError
            Where it cannot be written down; nothing has changed then.
        """
        assert isinstance(asked, SampleQuestion)
        if self.sample is not None:
            self._keep(self.sample.judged(asked.number, _VERDICTS[kind]))
            self._given.append(asked.number)

    @property
    def can_take_back(self) -> bool:
        """Whether something was said since it was begun."""
        return bool(self._given)

    def take_back(self) -> SampleQuestion | None:
        """The event that was judged last, without its verdict; None where there is none."""
        if self.sample is None or not self._given:
            return None
        number = self._given[-1]
        self._keep(self.sample.judged(number, Verdict.OPEN))
        self._given.pop()
        return _question(self.sample.events[number], number, len(self.sample.events))

    def _keep(self, sample: Sample) -> None:
        if self.path is not None:
            write_sample(sample, self.path)
        self.sample = sample
        self.changed.emit()

    def _forget(self) -> None:
        self.sample, self.running, self._looked_for = None, False, False
        self._later, self._given = [], []
        self.changed.emit()

    def _resume(self) -> None:
        """Take up what was said of these tracks when the movie was open before."""
        tracking, path = self._movie.tracking, self.path
        if tracking is None or self._looked_for:
            return
        self._looked_for = True
        if path is not None and path.is_file():
            try:
                self.sample = read_sample(path, tracking.tracks)
            except InputError:
                return  # of tracks that are no more
        self.changed.emit()


def _question(event: EventRef, number: int, count: int) -> SampleQuestion:
    cell = event.cells[0]
    what = "fate" if event.sources else "history"
    return SampleQuestion(
        event=event,
        alternatives=(),
        beliefs=(1.0,),
        slot=(what, cell.cell),
        hypothesis=-1,
        margin=0.0,
        uncertainty=0.0,
        reason=f"number {number + 1} of {count} drawn at random; it changes nothing in the tracks",
        random=True,
        number=number,
    )
