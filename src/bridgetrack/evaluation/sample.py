"""Accuracy of a result, from judged events that were drawn from it at random.

A sample is drawn from a finished result and changes nothing in it. Every event of one group, its
*population*, is as likely to be drawn as any other (simple random sampling without replacement), so
the share of right ones among those judged estimates the share in the result, whatever the model
learned from. The interval is that of Clopper and Pearson: it covers the truth in at least 95 of 100
samples however few events there are. Events that nobody could judge are left out and counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field
from scipy.special import betaincinv

from bridgetrack.annotations.annotation import EventRef, describe_event
from bridgetrack.annotations.from_tracks import table_events
from bridgetrack.errors import InputError
from bridgetrack.files import as_path, replacing
from bridgetrack.hypotheses.events import Event
from bridgetrack.io.text_table import TextTable, read_text_table
from bridgetrack.schema import settings
from bridgetrack.tracks.tracks import EDGE_EVENTS, Tracks, sort_events

POPULATIONS = {
    "links": EDGE_EVENTS,
    "divisions": (Event.DIVIDE.key,),
    "events": tuple(event.key for event in Event if event != Event.FALSE),
}
"""Populations of samples: events that join cells, divisions, or all events."""

_COLUMNS = ("number", "of", "seed", "frame", "event", "cells", "next", "place", "what", "right")


_WORDS = {
    "": "",
    **dict.fromkeys(("yes", "y", "1", "true", "right"), "yes"),
    **dict.fromkeys(("no", "n", "0", "false", "wrong"), "no"),
    **dict.fromkeys(("?", "unsure", "u"), "?"),
}
"""The verdict for each word that may be written; empty before an event is judged."""


@settings("the sample:")
class SampleOptions:
    """Options of a sample.

    Parameters
    ----------
    count
        Number of events to judge.
    of
        What to check: links (moves, divisions and all other links between cells), divisions, or
        events (all).
    seed
        Random seed.
    """

    count: Annotated[int, Field(ge=1, le=100_000)] = 30
    of: Literal["links", "divisions", "events"] = "links"
    seed: Annotated[int, Field(ge=0)] = 0


@dataclass(frozen=True)
class SampledAccuracy:
    """Accuracy of a result by a sample."""

    of: str  # see `POPULATIONS`
    right: int
    judged: int
    unsure: int  # judged as cannot tell
    population: int  # events of that kind in the result
    seed: int  # of the draw

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share of right ones; a point if all were judged."""
        if self.judged == self.population:
            return self.share, self.share
        return exact_interval(self.right, self.judged)

    @property
    def share(self) -> float:
        """The share of right ones among those judged."""
        return self.right / self.judged

    @property
    def words(self) -> str:
        """The sentence for a methods section, without a full stop."""
        low, high = (f"{100 * end:.1f}" for end in self.interval)
        correct = f"{100 * self.share:.1f} % of the {self.of} are correct"
        left = f"; {self.unsure} more could not be judged" if self.unsure else ""
        if self.judged == self.population:
            return f"{correct} (all {self.judged:,} checked{left})"
        return (
            f"{correct} (95 % confidence interval {low}-{high} %; {self.judged:,} of "
            f"{self.population:,} {self.of} checked, drawn at random{left})"
        )

    def to_json(self) -> dict[str, object]:
        """The figures as JSON values."""
        low, high = self.interval
        return {**asdict(self), "share": self.share, "low": low, "high": high, "words": self.words}


def exact_interval(hits: float, of: float) -> tuple[float, float]:
    """Clopper and Pearson's 95 % interval of a probability after so many hits among some trials.

    Both numbers may be fractions, e.g. if trials are not independent.
    """
    low = 0.0 if hits <= 1e-9 * of else float(betaincinv(hits, of - hits + 1, 0.025))
    high = 1.0 if hits >= (1 - 1e-9) * of else float(betaincinv(hits + 1, of - hits, 0.975))
    return low, high


@dataclass(frozen=True)
class Sample:
    """Events drawn at random from a result, with their verdicts.

    Parameters
    ----------
    options
        Options of the sample.
    population
        Number of events that it was drawn from.
    events, verdicts
        The events in the order they were drawn, and for each ``"yes"``, ``"no"``, ``"?"``, or an
        empty text before it is judged.
    """

    options: SampleOptions
    population: int
    events: tuple[EventRef, ...]
    verdicts: tuple[str, ...]

    @property
    def left(self) -> tuple[int, ...]:
        """Numbers, from 0, of events that are not judged yet."""
        return tuple(k for k, said in enumerate(self.verdicts) if not said)

    def judged(self, number: int, verdict: str) -> Sample:
        """The same with a verdict on the event with this number, from 0."""
        if verdict not in _WORDS:
            raise InputError(f"{verdict!r} is not an answer; say yes, no or ?")
        said = (*self.verdicts[:number], _WORDS[verdict], *self.verdicts[number + 1 :])
        return replace(self, verdicts=said)

    @property
    def accuracy(self) -> SampledAccuracy | None:
        """Accuracy of the result; None as long as no event is judged."""
        right, wrong, unsure = (self.verdicts.count(said) for said in ("yes", "no", "?"))
        if not right + wrong:
            return None
        numbers = right, right + wrong, unsure, self.population, self.options.seed
        return SampledAccuracy(self.options.of, *numbers)

    def holds_for(self, tracks: Tracks) -> bool:
        """Whether it would be drawn from these tracks, too."""
        same = draw_sample(tracks, self.options)
        keys = [[e.key for e in s.events] for s in (self, same)]
        return self.population == same.population and keys[0] == keys[1]


def draw_sample(tracks: Tracks, options: SampleOptions | None = None) -> Sample:
    """Draw events of a result at random, every one as likely as any other.

    The same result and the same options give the same sample, and a longer one begins with it.

    Raises
    ------
    InputError
        If the result has no such event.
    """
    options = options or SampleOptions()
    table = sort_events(tracks.events[tracks.events["event"].isin(POPULATIONS[options.of])])
    if not len(table):
        raise InputError(f"there is nothing to check: the result has no {options.of}")
    order = np.random.default_rng([options.seed, len(table)]).permutation(len(table))
    drawn = table.iloc[order[: options.count]]
    events = tuple(table_events(tracks, drawn))
    return Sample(options, len(table), events, ("",) * len(events))


# ---------------------------------------------------------------------- files


def write_sample(sample: Sample, path: Path | str) -> Path:
    """Write a sample as a table whose last column, ``right``, is to be filled in.

    Raises an `OutputError` if the file cannot be written.
    """
    rows = [
        {
            "number": number,
            "of": sample.options.of,
            "seed": sample.options.seed,
            **_named(event),
            "place": " ".join(f"{p:.0f}" for p in event.cells[0].position),
            "what": describe_event(event),
            "right": verdict,
        }
        for number, (event, verdict) in enumerate(
            zip(sample.events, sample.verdicts, strict=True), 1
        )
    ]
    with replacing(as_path(path), "the sample") as spare:
        pd.DataFrame(rows, columns=list(_COLUMNS)).to_csv(spare, index=False, lineterminator="\n")
    return as_path(path)


def _named(event: EventRef) -> dict[str, str]:
    """Entries of a row that identify its event."""
    return {
        "frame": str(event.cells[0].frame),
        "event": event.event.key,
        "cells": " ".join(str(c.label) for c in event.sources),
        "next": " ".join(str(c.label) for c in event.targets),
    }


def read_sample(path: Path | str, tracks: Tracks) -> Sample:
    """Read the verdicts on a sample of these tracks.

    The events are drawn again and compared, so that none is left out or exchanged by mistake.

    Raises an `InputError` if the file cannot be read, an answer is not understood, or the events
    were not drawn from this result.
    """
    text = read_text_table(path)
    missing = [c for c in _COLUMNS if c not in text.header]
    if missing:
        raise InputError(
            f"{text.source}: the columns {', '.join(missing)} are missing; give the table that "
            "bridgetrack check wrote, with its column right filled in"
        )
    if not len(text.cells):
        raise InputError(f"{text.source}: there are no events in it")
    of: Any = str(text.cells["of"].iloc[0]).strip()
    options = SampleOptions(len(text.cells), of, int(text.integers("seed")[0]))
    sample = draw_sample(tracks, options)
    _check_same(sample, text)
    return replace(sample, verdicts=tuple(_verdicts(text)))


def _check_same(sample: Sample, text: TextTable) -> None:
    """Refuse rows that are not the events drawn, one each, in their order."""
    drawn = pd.DataFrame([_named(event) for event in sample.events])
    given = text.cells[drawn.columns].apply(lambda column: column.str.strip())
    if given.to_numpy().tolist() != drawn.to_numpy().tolist():
        raise InputError(
            f"{text.source}: these are not the events that were drawn from this result: the result "
            "is another one, or rows were removed, added or sorted; draw a sample of this result, "
            "and leave its rows as they are"
        )


def _verdicts(text: TextTable) -> list[str]:
    said = text.cells["right"].str.strip().str.lower()
    wrong = (~said.isin(list(_WORDS))).to_numpy()
    text.refuse(wrong, lambda k: f"{said.iloc[k]!r} is not an answer; write yes, no or ?")
    return [_WORDS[word] for word in said]
