"""What was answered, how accurate the tracking is by it, and whether to go on asking."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bridgetrack.active.suggester import places, random_order
from bridgetrack.active.suggestion import SuggestOptions
from bridgetrack.annotations.annotation import SUGGESTED, Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.errors import plural, sentence
from bridgetrack.hypotheses.events import Event
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import ErrorEstimate, estimate_accuracy

if TYPE_CHECKING:
    from bridgetrack.active.session import ActiveSession

ENOUGH = 20
"""Answers before which nobody is told to stop."""

ENOUGH_RANDOM = 10
"""Random answers that the estimate of accuracy rests on before one is told to stop."""

AHEAD = 10
"""Answers that the advice looks ahead."""

_WIDEST = 0.4
"""Width of the interval up to which an estimate is told and drawn; wider ones alarm for nothing."""

ROUGH = 0.2
"""Width of the interval from which on the estimate is called rough."""

_RECENT = 20
_BORROWED = 4.0


@dataclass(frozen=True)
class Point:
    """Where a session stands after some answers: one point of the progress curve."""

    clicks: int  # answers so far, "cannot tell" included
    seconds: float  # time that they took
    estimate: ErrorEstimate | None = None  # of the accuracy; None without random answers


@dataclass(frozen=True)
class AskedSlot:
    """What is known of one slot that was asked."""

    id: str  # the annotation; slots of one event share it
    wrong: float | None  # error of the prediction there, 0 to 1; None if that is not known
    width: int  # slots that the event covers: it is met that much more often
    # error of the present model, which has learned from the answer; None: as ``wrong``
    least: float | None = None


def random_answers(
    scene: Scene, have: AnnotationSet, seen: Mapping[str, float], options: SuggestOptions
) -> list[AskedSlot]:
    """The answers of a scene that still hold and tell how accurate the tracking is.

    The error at an answer is that of the model that asked, which had not seen it; it is not known
    where nobody could tell, or people answered without being asked. `seen` has the errors of the
    present model, which learned from them, by annotation id.
    """
    slots = places(scene, scene.anchored.events)
    asked: dict[int, AskedSlot] = {}
    for k, row in zip(scene.anchored.owner.tolist(), slots.tolist(), strict=True):
        a = scene.anchored.listed[k]
        if a.id not in have or (a.kind == Kind.REJECT and a.right is None):
            continue
        mine = [slot for slot in row if slot >= 0]
        wrong = None if a.right is None else float(not a.right)
        least = None if wrong is None else min(seen.get(a.id, wrong), wrong)
        asked |= dict.fromkeys(mine, AskedSlot(a.id, wrong, len(mine), least))
    return fair_sample(scene, asked, options.seed)


def fair_sample(scene: Scene, asked: Mapping[int, AskedSlot], seed: int) -> list[AskedSlot]:
    """What is known at the beginning of the random order, up to the first slot nobody answered.

    Whatever else was answered, for whatever reason, does not make this sample unfair: its slots
    were drawn before anything was known. Slots that happened to be answered for other reasons
    count too. Slots go by their number in the problem.
    """
    found: dict[str, AskedSlot] = {}
    for slot in random_order(scene, seed).tolist():
        if slot not in asked:
            break
        found.setdefault(asked[slot].id, asked[slot])
    return list(found.values())


def estimate_from(sample: Sequence[AskedSlot]) -> ErrorEstimate | None:
    """Accuracy with its 95 % interval; None without any answer.

    Every event counts ``1 / width`` since it is drawn in proportion to the slots it covers
    (`right_share`). Slots are drawn one by one, so that answers are
    independent however errors lie together in the movie. The lower end goes by the errors of
    the models that asked, which had learned from less and err more often than the present one; the
    upper end allows for the errors of the present model, which errs less often on what it learned
    from: the truth lies between. Weighting strata of the model's own doubt was tried and covered
    the truth less often, because the model doubts more than it errs.
    """
    sample = [o for o in sample if o.wrong is not None]
    if not sample:
        return None
    wrong = np.asarray([o.wrong for o in sample], dtype=np.float64)
    least = np.asarray([o.wrong if o.least is None else o.least for o in sample], dtype=np.float64)
    width, unknown = np.asarray([o.width for o in sample]), np.full(len(sample), -1, dtype=np.int8)
    nothing = np.zeros(len(Event))
    return estimate_accuracy(wrong, unknown, nothing, True, seen=least, chance=width)


# --- whether to go on ------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """Whether to go on, in plain words."""

    stop: bool  # whether more answers are hardly worth the effort
    words: str  # the verdict as a sentence


def expected_finds(answers: Iterable[Annotation], doubts: Sequence[float]) -> float:
    """Wrong links that the next `AHEAD` answers will find.

    The rate among the last answers to questions that were not drawn at random, together with a few
    imagined ones at the rate that the model itself expects of the suggestions to come (``doubts``).
    """
    known = [a.right for a in answers if a.source == SUGGESTED and a.right is not None]
    recent = known[-_RECENT:]
    wrong = float(len(recent) - sum(recent))
    guess = float(np.clip(np.mean(doubts), 0.02, 0.98)) if len(doubts) else 0.5
    return AHEAD * (wrong + _BORROWED * guess) / (len(recent) + _BORROWED)


def verdict_on(finds: float, estimate: ErrorEstimate | None, clicks: int) -> Verdict:
    """Say whether to stop, by what more answers are expected to find."""
    number = f"about {finds:.0f}" if finds >= 1 else "less than one"
    found = f"{AHEAD} more answers would correct {number} {'link' if finds < 1.5 else 'links'}"
    if clicks < ENOUGH:
        return Verdict(False, "it is too early to stop; keep answering")
    if finds >= 1.0:
        return Verdict(False, f"{found}; keep answering")
    if estimate is None or estimate.n_annotations < ENOUGH_RANDOM:
        return Verdict(False, f"{found}; keep answering until the accuracy is known")
    return Verdict(True, f"you can stop now: {found}")


@dataclass(frozen=True)
class Report:
    """How far people are with their answers."""

    words: str = ""  # answers and minutes so far, the estimate, and whether to go on
    points: tuple[Point, ...] = ()  # the progress curve, by rising clicks, once it says something


def report_of(active: ActiveSession | None) -> Report:
    """How far a session is; nothing before the first answer."""
    if active is None or not active.effort.clicks:
        return Report()
    effort, estimate, verdict = active.effort, active.estimate(), active.verdict()
    words = [f"{plural(effort.clicks, 'answer')} in {_duration(effort.seconds)}."]
    if active.last is not None:
        n = active.last.doubtful
        few = f"At most {plural(n, 'event')} {'is' if n == 1 else 'are'} less than 90 % certain."
        words.append(few if n else "Every event is at least 90 % certain.")
    words += [_accuracy(estimate), sentence(verdict.words)]
    if verdict.stop and (estimate is None or estimate.high - estimate.low > ROUGH):
        words.append("The estimate is still rough.")
    # One point for each number of clicks, the latest, without those that were undone since.
    latest = {p.clicks: p for p in active.points if p.clicks <= effort.clicks}
    points = tuple(latest[k] for k in sorted(latest) if says_something(latest[k].estimate))
    return Report(" ".join(words), points)


def _accuracy(estimate: ErrorEstimate | None) -> str:
    """The estimate, once it says something."""
    if estimate is None:
        return "An estimate of accuracy appears after the first random questions."
    if not says_something(estimate):
        n = estimate.n_annotations
        return f"{plural(n, 'random question')} so far: too few to say how accurate it is."
    return sentence(estimate.words)


def says_something(estimate: ErrorEstimate | None) -> bool:
    """Whether an estimate is narrow enough to be told; those of few answers jump and alarm."""
    return estimate is not None and estimate.high - estimate.low <= _WIDEST


def _duration(seconds: float) -> str:
    return f"{max(round(seconds), 1)} s" if seconds < 59.5 else f"{seconds / 60:.1f} minutes"
