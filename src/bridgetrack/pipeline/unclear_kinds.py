"""Kinds of events that a movie seems not to have: several were found, and none of them is clear.

Whether cells are drawn as one, missed, cut, or are none at all hangs on the masks; where masks are
right there is nothing of it, and what is chosen for want of better is nearly as good as something
else. Where such events are real, some of them are clear. So a person is asked, and says it with
one click or word (`EventKinds`); nothing is left out unasked.
"""

from __future__ import annotations

import numpy as np

from bridgetrack.annotations.words import NOUN
from bridgetrack.hypotheses.events import ODD, Event
from bridgetrack.hypotheses.kinds import kind_words
from bridgetrack.pipeline.tracking import Tracking

LEAST = 3
"""Events of a kind below which nothing is said: one or two may well be doubtful."""

CLEAR = 1.0
"""Margin, or lower bound on it, from which on an event is clear, in contradicted annotations.

On movies for development the clearest of three or more events of a kind that a movie does not have
reaches 0.7 (once 2.1), of one that it has 1.1 to 6.5."""


def unclear_kinds(tracking: Tracking) -> dict[Event, int]:
    """How many events there are of every kind of which none is clear, the most frequent first.

    What answers confirm is clear.
    """
    event, chosen = tracking.scene.hypotheses.event, tracking.solution.chosen
    found = {}
    for kind in ODD:
        margins = tracking.margins[chosen & (event == kind)]
        if len(margins) >= LEAST and not (np.nan_to_num(margins, nan=np.inf) >= CLEAR).any():
            found[kind] = len(margins)
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def unclear_words(kind: Event, count: int) -> str:
    """What was noticed, as a sentence without its end."""
    return f"{count:,} {NOUN[kind][1]} were found, and none of them is clear"


def unclear_remarks(tracking: Tracking) -> list[str]:
    """The same for the command line, with what to do."""
    return [
        f"{unclear_words(kind, count)}; if this movie has none, leave them out by "
        f"--without {kind_words(kind)}"
        for kind, count in unclear_kinds(tracking).items()
    ]
