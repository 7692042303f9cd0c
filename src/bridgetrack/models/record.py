"""What the library keeps beside a model: description, date, counts, accuracy, statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bridgetrack.hypotheses.events import Event
from bridgetrack.models.model import Model
from bridgetrack.models.statistics import FeatureStatistics


@dataclass(frozen=True)
class Record:
    """What is known of a model in the library.

    Parameters
    ----------
    description
        The user's words.
    created
        Day and time in ISO form, with its zone.
    counts
        Annotations of every kind that it learned from.
    accuracy
        Estimated share of right events and its 95 % interval, or None.
    statistics
        Of the movies it learned from; None where nobody knows.
    """

    description: str = ""
    created: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    accuracy: tuple[float, float, float] | None = None
    statistics: FeatureStatistics | None = None


def new_record(
    model: Model,
    description: str = "",
    statistics: FeatureStatistics | None = None,
    counts: Mapping[Event, int] | None = None,
) -> Record:
    """A record of a model that is made now.

    Parameters
    ----------
    model
        The model; its estimated accuracy is taken over.
    description
        The user's words.
    statistics
        Of the movies it learned from.
    counts
        Annotations of every kind that it learned from; without them those of its estimate.
    """
    estimate = model.estimate
    accuracy = None
    try:
        figures = [float(estimate[key]) for key in ("accuracy", "low", "high")]
        accuracy = (figures[0], min(figures[1], figures[0]), max(figures[2], figures[0]))
    except (KeyError, TypeError, ValueError):
        pass
    known = dict(_estimated(estimate)) if counts is None else {e.key: n for e, n in counts.items()}
    return Record(
        description.strip(),
        datetime.now(UTC).isoformat(timespec="seconds"),
        {key: n for key, n in known.items() if n},
        accuracy,
        statistics,
    )


def _estimated(estimate: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Annotations of every kind that an accuracy was estimated from."""
    kinds = {event.key for event in Event}
    for row in estimate.get("per_event", ()):
        if isinstance(row, dict) and row.get("event") in kinds:
            yield row["event"], int(row.get("annotations", 0))
