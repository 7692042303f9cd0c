"""How many of the events that the truth settles were found."""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.evaluation.true_events import EventTable
from bridgetrack.hypotheses.events import Event
from bridgetrack.tracks.tracks import Tracks


@dataclass(frozen=True)
class EventScores:
    """Found events of every kind that occurs in the truth.

    Parameters
    ----------
    right
        How many of the true events of a kind were found, by its name.
    true
        How many there are.
    """

    right: dict[str, int]
    true: dict[str, int]

    @property
    def share(self) -> float | None:
        """Share of the true events that were found; None where there are none."""
        total = sum(self.true.values())
        return sum(self.right.values()) / total if total else None


def score_events(tracks: Tracks, truth: EventTable) -> EventScores:
    """Compare chosen events with those that the truth settles (`true_events`).

    Unlike scores of edges this counts what a segmentation gets wrong as events of its own: a
    merge that the tracker names is right.

    Parameters
    ----------
    tracks
        The result; its events name the rows of the detections.
    truth
        True events in the same rows.
    """
    columns = (tracks.events[name] for name in ("event", "sources", "targets"))
    chosen = {
        (event, tuple(sorted(sources)), tuple(sorted(targets)))
        for event, sources, targets in zip(*columns, strict=True)
    }
    right: dict[str, int] = {}
    true: dict[str, int] = {}
    rows = zip(truth.event.tolist(), truth.sources.tolist(), truth.targets.tolist(), strict=True)
    for kind, sources, targets in rows:
        name = Event(kind).key
        named = (name, *(tuple(sorted(c for c in s if c >= 0)) for s in (sources, targets)))
        true[name] = true.get(name, 0) + 1
        right[name] = right.get(name, 0) + (named in chosen)
    return EventScores(right, true)
