"""What ten more answers would bring, and whether to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.active.records import Point, Record
from bridgetrack.training.estimate import Estimate

_RECENT = 20
_BORROWED = 4.0
ENOUGH = 20
"""Answers before which nobody is told to stop."""

SURE = 10
"""Random answers that the estimate of accuracy rests on before one is told to stop."""


@dataclass(frozen=True)
class Gain:
    """Expected use of more answers.

    Parameters
    ----------
    clicks
        How many more answers this is about.
    found
        Wrong links that they are expected to find.
    low, high
        95 % interval of that.
    changed
        Events of the movie that they are expected to change by teaching the model; None where
        that is not known yet.
    """

    clicks: int
    found: float
    low: float
    high: float
    changed: float | None


@dataclass(frozen=True)
class Verdict:
    """Whether to go on, in plain words.

    Parameters
    ----------
    stop
        Whether more answers are hardly worth the effort.
    words
        The verdict as a sentence.
    """

    stop: bool
    words: str


def expected_gain(
    records: Sequence[Record], doubts: Sequence[float], clicks: int, changed: float | None
) -> Gain:
    """Wrong links that the next answers will find.

    The rate among the last chosen (not random) answers, together with a few imagined ones at the
    rate that the model itself expects of the suggestions to come.

    Parameters
    ----------
    records
        All answers, in order.
    doubts
        The model's belief that it is wrong, of the suggestions to come.
    clicks
        How many answers more.
    changed
        Events changed per answer lately.
    """
    from scipy.stats import beta

    recent = [r for r in records if not r.random and r.right is not None][-_RECENT:]
    wrong = float(sum(not r.right for r in recent))
    guess = float(np.clip(np.mean(doubts), 0.02, 0.98)) if len(doubts) else 0.5
    a, b = wrong + _BORROWED * guess, len(recent) - wrong + _BORROWED * (1 - guess)
    low, high = beta.ppf([0.025, 0.975], a, b).tolist()
    per_clicks = None if changed is None else clicks * changed
    return Gain(clicks, clicks * a / (a + b), clicks * low, clicks * high, per_clicks)


def judge(gain: Gain, estimate: Estimate | None, clicks: int, events: int) -> Verdict:
    """Say whether to stop.

    Parameters
    ----------
    gain
        What ten more answers would bring.
    estimate
        Accuracy from random answers, None where there are none yet.
    clicks
        Answers so far.
    events
        Events of the movie.
    """
    number = f"about {gain.found:.0f}" if gain.found >= 1 else "less than one"
    found = f"{number} more wrong link{'' if gain.found < 1.5 else 's'} found"
    found = f"{found} per {gain.clicks} clicks"
    if clicks < ENOUGH:
        return Verdict(False, f"{found}; go on, it is too early to say when to stop")
    little = gain.found < 1.0
    steady = gain.changed is not None and gain.changed < max(2.0, 0.005 * events)
    if little and steady and (estimate is None or estimate.n_annotations < SURE):
        return Verdict(False, f"{found}; go on, too few random questions tell how good it is")
    if little and steady:
        return Verdict(True, f"you can stop now: {found}, and they hardly change the rest")
    if little:
        return Verdict(False, f"{found}, but the model still changes its mind elsewhere; go on")
    return Verdict(False, f"{found}; it is worth going on")


def changes_a_click(points: Sequence[Point]) -> float | None:
    """Events that lately changed with every click; None before there are two updates."""
    recent = points[-4:]
    if len(recent) < 2:
        return None
    done = recent[-1].clicks - recent[0].clicks
    moved = sum(p.changed for p in recent[1:])
    return moved / done if done > 0 else None
