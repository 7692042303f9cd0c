"""Answers drawn from a table of true events, as a person who knows the truth would give them."""

from __future__ import annotations

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.arrays import Array, Index
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event, Events


def read_events(events: Events, detections: Detections) -> Events:
    """True events that are a question for the tracker.

    Parameters
    ----------
    events
        What `bridgetrack.evaluation.true_events` returns.
    detections
        The detections that their rows belong to.

    Returns
    -------
    Events
        Without appearances in the first and disappearances in the last frame.

    Raises
    ------
    InputError
        Where they name detections that are not there.
    """
    named = np.concatenate([events.sources, events.targets], axis=1)
    if len(events) and not -1 <= named.min() <= named.max() < len(detections):
        raise InputError(f"the events name other detections than the {len(detections)} there are")
    frame, last = detections.frame, detections.geometry.n_frames - 1
    start = (events.event == Event.APPEAR) & (frame[events.targets[:, 0]] == 0)
    end = (events.event == Event.DISAPPEAR) & (frame[events.sources[:, 0]] == last)
    return events.take(~(start | end))


SHARES = {Event.MOVE: 0.6, Event.DIVIDE: 0.2}
"""Shares of a stratified count (design section 8); the other kinds share what is left."""


def _shares(kinds: Index) -> Array:
    rest = [k for k in kinds.tolist() if Event(k) not in SHARES]
    left = (1 - sum(SHARES.values())) / max(len(rest), 1)
    return np.array([SHARES.get(Event(k), left) for k in kinds.tolist()])


def allot(count: int, available: Index) -> Index:
    """How many of the events available of each kind, (len(Event),), a stratified draw takes.

    60 % moves, 20 % divisions, and 20 % in equal parts of the other kinds that occur. What a kind
    lacks goes to the others in the same proportion; the remainders go first to the largest
    fractional parts, ties to the rarer kind.
    """
    wanted = np.zeros(len(available))
    left = float(min(count, available.sum()))
    kinds = np.flatnonzero(available > 0)
    while left > 1e-9:
        free = kinds[wanted[kinds] < available[kinds]]
        share = _shares(kinds)[np.isin(kinds, free)]
        wanted[free] = np.minimum(wanted[free] + left * share / share.sum(), available[free])
        left = min(count, available.sum()) - wanted.sum()
    whole = np.floor(wanted + 1e-6)
    spare = int(min(count, available.sum()) - whole.sum())
    order = np.lexsort((available, -np.round(wanted - whole, 6)))
    order = order[whole[order] < available[order]]
    whole[order[:spare]] += 1
    return whole.astype(np.int64)


def _allot_fraction(fraction: float, available: Index) -> Index:
    """At least one of each kind that occurs, otherwise the fraction of each kind."""
    rounded = np.floor(fraction * available + 0.5).astype(np.int64)
    return np.asarray(np.minimum(np.maximum(rounded, 1), available))


def draw_annotations(
    events: Events,
    detections: Detections,
    *,
    count: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
) -> AnnotationSet:
    """Draw answers from ground truth, rare kinds more often.

    Parameters
    ----------
    events
        True events, as `bridgetrack.true_events` returns them.
    detections
        The detections that their rows belong to.
    count, fraction
        How many events, or which share of them, to annotate; one of the two. More than there
        are takes all. By count, 60 % are moves, 20 % divisions, and 20 % the other kinds that
        occur; by fraction, it is the share of each kind, but at least one of each.
    seed
        Two draws with the same arguments are the same. A larger fraction contains the draw of
        a smaller one.

    Returns
    -------
    AnnotationSet
        With the ids ``s1``, ``s2``, ... in the order of drawing, without times.

    Raises
    ------
    InputError
        Where the numbers are not valid, or there is no event to draw.
    """
    if (count is None) == (fraction is None):
        raise InputError("give either a count or a fraction of the events to draw")
    if count is not None and count < 1:
        raise InputError(f"the count of events to draw is {count}, it must be 1 or more")
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(f"the fraction of events to draw is {fraction}, it must be in (0, 1]")
    if seed < 0:
        raise InputError(f"the seed is {seed}, it must be 0 or more")
    rows = read_events(events, detections)
    if len(rows) == 0:
        raise InputError("the ground truth holds no event that could be annotated")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    available = np.bincount(rows.event, minlength=len(Event)).astype(np.int64)
    quota = allot(count, available) if count else _allot_fraction(fraction or 0.0, available)
    kind = rows.event[order]
    place = np.zeros(len(order), dtype=np.int64)
    for e in Event:
        place[kind == e] = np.arange(available[e])
    refs = event_refs(detections, rows.take(order[place < quota[kind]]))
    listed = (
        Annotation(f"s{k}", Kind.CONFIRM, (ref,), source="simulated")
        for k, ref in enumerate(refs, 1)
    )
    return AnnotationSet(detections.geometry, listed)
