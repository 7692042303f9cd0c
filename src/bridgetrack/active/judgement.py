"""How good the tracking is, as far as a session's answers tell."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from bridgetrack.active.accuracy import Outcome, estimate_from, fair_sample, numbered
from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import slot_numbers
from bridgetrack.active.records import Record
from bridgetrack.active.rejudge import Judged
from bridgetrack.annotations.annotation import Slot
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import Estimate


@dataclass(frozen=True)
class Judgement:
    """The answers that tell how accurate the tracking is.

    Parameters
    ----------
    scene
        The movie with its annotations.
    counted
        Records that hold.
    judged
        Errors on random answers.
    skipped
        Slots passed over.
    options
        How random suggestions were drawn.
    """

    scene: Scene
    counted: tuple[Record, ...]
    judged: Judged
    skipped: Collection[Slot]
    options: SuggestOptions

    def estimate(self) -> Estimate | None:
        """Share of right events with its 95 % interval; None without random answers."""
        return estimate_from(self._sample())

    def random_ids(self) -> tuple[str, ...]:
        """Annotations that the estimate rests on."""
        return tuple(o.id for o in self._sample())

    def _sample(self) -> list[Outcome]:
        outcomes = numbered(self.scene, self._outcomes())
        passed = frozenset(slot_numbers(self.scene, list(self.skipped)).tolist())
        return fair_sample(self.scene, outcomes, self.options.seed, passed, self.options.frames)

    def _outcomes(self) -> dict[Slot, Outcome]:
        out: dict[Slot, Outcome] = {}
        for r in self.counted:
            wrong = None if r.right is None else float(not r.right)
            error = self.judged.unseen.get(r.id, wrong)
            least = error if error is None else min(self.judged.seen.get(r.id, error), error)
            out.update(dict.fromkeys(r.slots, Outcome(r.id, error, len(r.slots), least)))
        return out
