"""How far active learning is, in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.active.records import Point
from bridgetrack.active.session import ActiveSession

ROUGH = 0.2
"""Width of the interval from which on the estimate is called rough."""


@dataclass(frozen=True)
class Standing:
    """What the progress panel shows.

    Parameters
    ----------
    effort
        Clicks and minutes so far.
    accuracy
        The estimate with its interval, or what is missing for one.
    verdict
        The expected gain of more clicks, and whether to stop.
    stop
        Whether more answers are hardly worth the effort.
    points
        The progress curve, by rising clicks.
    """

    effort: str = "No answers yet."
    accuracy: str = "An estimate of accuracy appears after the first random questions."
    verdict: str = ""
    stop: bool = False
    points: tuple[Point, ...] = ()


def standing_of(active: ActiveSession | None) -> Standing:
    """Where a session stands."""
    if active is None:
        return Standing()
    effort = active.effort
    if not effort.clicks:
        return Standing()
    words = f"{effort.clicks} answer{'s' if effort.clicks != 1 else ''}"
    words = f"{words} in {_duration(effort.seconds)}."
    estimate = active.estimate()
    accuracy = Standing.accuracy if estimate is None else _sentence(estimate.words)
    verdict = active.verdict()
    advice = _sentence(verdict.words)
    if verdict.stop and (estimate is None or estimate.high - estimate.low > ROUGH):
        advice = f"{advice} The estimate below is still rough."
    return Standing(words, accuracy, advice, verdict.stop, curve(active))


def curve(active: ActiveSession) -> tuple[Point, ...]:
    """One point for each number of clicks, the latest, without those that were undone since."""
    clicks = active.effort.clicks
    latest = {p.clicks: p for p in active.points if p.clicks <= clicks}
    return tuple(latest[k] for k in sorted(latest))


def _duration(seconds: float) -> str:
    if seconds < 59.5:
        return f"{max(round(seconds), 1)} s"
    return f"{seconds / 60:.1f} minutes"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."
