"""Ask again after an answer that the model had not thought of, or where it was sure of another.

Training follows every answer. In simulated sessions 89 % of plausible mistakes were such answers,
and 11 % of the true ones that differed from the proposal (``benchmarks/second_looks.py``).
"""

from __future__ import annotations

from dataclasses import replace

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.annotation import EventRef
from bridgetrack.annotations.annotation_set import AnnotationSet

REASON = "your answer was not what the model holds likely; please look once more"

WIDE = 1.0
"""Margin of a proposal from which on any other answer is a surprise, in contradicted answers."""


def unexpected(suggestion: Suggestion, event: EventRef) -> bool:
    """Whether an answer is worth a second look: not listed, or beside a proposal of wide margin."""
    if suggestion.again or event.key == suggestion.event.key:
        return False
    listed = any(event.key == other.key for other in suggestion.alternatives)
    return not listed or suggestion.margin >= WIDE


def second_look(suggestion: Suggestion, event: EventRef, noted: str) -> Suggestion:
    """Ask whether an unexpected answer holds indeed.

    Parameters
    ----------
    suggestion
        The question that was answered.
    event
        The answer.
    noted
        The id of its annotation.
    """
    return replace(
        suggestion,
        event=event,
        alternatives=(suggestion.event, *suggestion.alternatives),
        beliefs=(0.0, *suggestion.beliefs),
        hypothesis=-1,
        margin=0.0,
        uncertainty=1.0,
        value=0.0,
        reason=REASON,
        again=noted,
    )


def still_asked(have: AnnotationSet, suggestion: Suggestion) -> bool:
    """Whether the answer that a second look is about is still there; true for first looks."""
    if not suggestion.again:
        return True
    if suggestion.again not in have:
        return False
    return have[suggestion.again].events[0].key == suggestion.event.key
