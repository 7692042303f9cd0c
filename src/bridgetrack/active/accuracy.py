"""How good a tracking is, from answers to randomly drawn questions, and whether to go on asking."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from bridgetrack.active.options import SuggestOptions
from bridgetrack.active.questions import random_order, slot_numbers, within
from bridgetrack.active.records import Point, Record
from bridgetrack.annotations.annotation import Slot
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.estimate import ErrorEstimate, right_share

Array = NDArray[np.float64]

ENOUGH = 20
"""Answers before which nobody is told to stop."""

ENOUGH_RANDOM = 10
"""Random answers that the estimate of accuracy rests on before one is told to stop."""

_RECENT = 20
_BORROWED = 4.0


@dataclass(frozen=True)
class Judged:
    """Errors on answers, 0 to 1, by annotation id.

    Parameters
    ----------
    unseen
        Of models that had not seen the answer. They learned from less than the present model did,
        and so err rather more often than it does.
    seen
        Of the present model, which learned from the answer but is not held to it here: it errs
        rather less often on these answers than elsewhere.
    """

    unseen: Mapping[str, float] = field(default_factory=dict)
    seen: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class AskedSlot:
    """What is known of one slot that was asked."""

    id: str  # the annotation; slots of one event share it
    wrong: float | None  # error of the prediction there, 0 to 1; None where nobody could tell
    width: int  # slots that the event covers: it is met that much more often
    # error of the present model, which has learned from the answer; None: as ``wrong``
    least: float | None = None


def random_answers(
    scene: Scene,
    records: Sequence[Record],
    judged: Judged,
    skipped: Collection[Slot],
    options: SuggestOptions,
) -> list[AskedSlot]:
    """The answers that tell how accurate the tracking is."""
    found: dict[Slot, AskedSlot] = {}
    for r in records:
        wrong = None if r.right is None else float(not r.right)
        error = judged.unseen.get(r.id, wrong)
        least = error if error is None else min(judged.seen.get(r.id, error), error)
        found.update(dict.fromkeys(r.slots, AskedSlot(r.id, error, len(r.slots), least)))
    numbers = slot_numbers(scene, list(found)).tolist()
    asked = {k: known for k, known in zip(numbers, found.values(), strict=True) if k >= 0}
    passed = frozenset(slot_numbers(scene, list(skipped)).tolist())
    return fair_sample(scene, asked, options.seed, passed, options.frames)


def fair_sample(
    scene: Scene,
    asked: Mapping[int, AskedSlot],
    seed: int,
    passed: frozenset[int] = frozenset(),
    frames: tuple[int, int] | None = None,
) -> list[AskedSlot]:
    """What is known at the beginning of the random order, up to the first slot nobody answered.

    Whatever else was answered, for whatever reason, does not make this sample unfair: its slots
    were drawn before anything was known. Slots that happened to be answered as chosen questions
    count too; those passed over are left out. Slots go by their number in the problem.
    """
    found: dict[str, AskedSlot] = {}
    order = random_order(scene, seed)
    for slot in order[within(scene, frames)[order]].tolist():
        if slot in passed:
            continue
        known = asked.get(slot)
        if known is None:
            break
        if known.wrong is not None:
            found.setdefault(known.id, known)
    return list(found.values())


def estimate_from(sample: Sequence[AskedSlot]) -> ErrorEstimate | None:
    """Accuracy with its 95 % interval; None without any answer.

    Every event counts ``1 / width`` since it is drawn in proportion to the slots it covers
    (`right_share`). Slots are drawn one by one from the frames asked about, so that answers are
    independent however errors lie together in the movie. The lower end goes by the errors of
    models that had not seen the answers, which learned from less and err more often than the
    present one; the upper end allows for the errors of the present model, which errs less often
    on what it learned from: the truth lies between. Weighting strata of the model's own doubt was
    tried and covered the truth less often, because the model doubts more than it errs.
    """
    if not sample:
        return None
    weight = np.asarray([1.0 / o.width for o in sample])
    wrong = np.asarray([o.wrong for o in sample], dtype=np.float64)
    least = np.asarray([o.wrong if o.least is None else o.least for o in sample], dtype=np.float64)
    accuracy, low, high = right_share(weight, wrong, np.arange(len(sample)), least)
    return ErrorEstimate(accuracy, low, high, len(sample), True, ())


def _interval(a: float, b: float) -> tuple[float, float]:
    """The middle 95 % of a beta distribution."""
    low, high = betaincinv(a, b, [0.025, 0.975]).tolist()
    return low, high


# --- whether to go on ------------------------------------------------------------------------


@dataclass(frozen=True)
class Gain:
    """Expected use of more answers."""

    clicks: int  # how many more answers this is about
    found: float  # wrong links that they are expected to find
    # low, high: 95 % interval of that
    low: float
    high: float
    # events of the movie that they are expected to change by teaching the model; None where that
    # is not known yet
    changed: float | None


@dataclass(frozen=True)
class Verdict:
    """Whether to go on, in plain words."""

    stop: bool  # whether more answers are hardly worth the effort
    words: str  # the verdict as a sentence


def expected_gain(
    records: Sequence[Record], doubts: Sequence[float], clicks: int, changed: float | None
) -> Gain:
    """Wrong links that the next answers will find.

    The rate among the last chosen (not random) answers, together with a few imagined ones at the
    rate that the model itself expects of the suggestions to come (``doubts``).
    """
    recent = [r for r in records if not r.random and r.right is not None][-_RECENT:]
    wrong = float(sum(not r.right for r in recent))
    guess = float(np.clip(np.mean(doubts), 0.02, 0.98)) if len(doubts) else 0.5
    a, b = wrong + _BORROWED * guess, len(recent) - wrong + _BORROWED * (1 - guess)
    low, high = _interval(a, b)
    per_clicks = None if changed is None else clicks * changed
    return Gain(clicks, clicks * a / (a + b), clicks * low, clicks * high, per_clicks)


def changes_a_click(points: Sequence[Point]) -> float | None:
    """Events that lately changed with every click; None before there are two updates."""
    recent = points[-4:]
    if len(recent) < 2:
        return None
    done = recent[-1].clicks - recent[0].clicks
    moved = sum(p.changed for p in recent[1:])
    return moved / done if done > 0 else None


def verdict_on(gain: Gain, estimate: ErrorEstimate | None, clicks: int, events: int) -> Verdict:
    """Say whether to stop, by what ten more answers would bring."""
    number = f"about {gain.found:.0f}" if gain.found >= 1 else "less than one"
    found = f"{number} more wrong link{'' if gain.found < 1.5 else 's'} found"
    found = f"{found} per {gain.clicks} clicks"
    if clicks < ENOUGH:
        return Verdict(False, f"{found}; go on, it is too early to say when to stop")
    little = gain.found < 1.0
    steady = gain.changed is not None and gain.changed < max(2.0, 0.005 * events)
    if little and steady and (estimate is None or estimate.n_annotations < ENOUGH_RANDOM):
        return Verdict(False, f"{found}; go on, too few random questions tell how good it is")
    if little and steady:
        return Verdict(True, f"you can stop now: {found}, and they hardly change the rest")
    if little:
        return Verdict(False, f"{found}, but the model still changes its mind elsewhere; go on")
    return Verdict(False, f"{found}; it is worth going on")
