"""How far people are with their answers, and whether more of them are worth the effort."""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.active.accuracy import Point
from bridgetrack.active.session import ActiveSession
from bridgetrack.notes import plural
from bridgetrack.session.training import WIDEST, sentence
from bridgetrack.training.estimate import ErrorEstimate

ROUGH = 0.2
"""Width of the interval from which on the estimate is called rough."""


@dataclass(frozen=True)
class Report:
    """How far people are with their answers, in plain words."""

    effort: str = "No question answered yet."  # clicks and minutes so far
    # the estimate with its interval, or what is missing
    accuracy: str = "An estimate of accuracy appears after the first random questions."
    verdict: str = ""  # the expected gain of more clicks, and whether to stop
    stop: bool = False  # whether more answers are hardly worth the effort
    points: tuple[Point, ...] = ()  # the progress curve, by rising clicks, once it says something


def report_of(active: ActiveSession | None) -> Report:
    """How far a session is."""
    if active is None or not active.effort.clicks:
        return Report()
    effort = active.effort
    words = plural(effort.clicks, "answer")
    words = f"{words} in {_duration(effort.seconds)}."
    estimate = active.estimate()
    accuracy = _accuracy(estimate)
    verdict = active.verdict()
    advice = sentence(verdict.words)
    if verdict.stop and (estimate is None or estimate.high - estimate.low > ROUGH):
        advice = f"{advice} The estimate below is still rough."
    # One point for each number of clicks, the latest, without those that were undone since.
    latest = {p.clicks: p for p in active.points if p.clicks <= effort.clicks}
    points = tuple(latest[k] for k in sorted(latest) if _tells(latest[k]))
    return Report(words, accuracy, advice, verdict.stop, points)


def _accuracy(estimate: ErrorEstimate | None) -> str:
    """The estimate, once it says something; those of few answers alarm for nothing."""
    if estimate is None:
        return Report.accuracy
    if estimate.high - estimate.low > WIDEST:
        n = estimate.n_annotations
        return f"{plural(n, 'random question')} so far: too few to say how right it is."
    return sentence(estimate.words)


def _tells(point: Point) -> bool:
    """Whether an estimate is narrow enough to be drawn; those of few answers jump and alarm."""
    return point.low is not None and point.high is not None and point.high - point.low <= WIDEST


def _duration(seconds: float) -> str:
    return f"{max(round(seconds), 1)} s" if seconds < 59.5 else f"{seconds / 60:.1f} minutes"
