"""A simulated annotator: clicks drawn from ground truth."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import RANDOM, Annotation, Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.mistakes import Mistakes
from bridgetrack.annotations.truth import EventRows, TrueEvents, read_events
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event

SHARES = {Event.MOVE: 0.6, Event.DIVIDE: 0.2}
"""Shares of a stratified count (design section 8); the other kinds share what is left."""


def _shares(kinds: NDArray[np.int64]) -> NDArray[np.float64]:
    rest = [k for k in kinds.tolist() if Event(k) not in SHARES]
    left = (1 - sum(SHARES.values())) / max(len(rest), 1)
    return np.array([SHARES.get(Event(k), left) for k in kinds.tolist()])


def allot(count: int, available: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many events of each kind a stratified draw of `count` takes.

    Parameters
    ----------
    count
        Events wanted.
    available
        Events there are of each kind, shape (len(Event),).

    Returns
    -------
    ndarray
        Shape (len(Event),), at most `available`, summing to `count` or to all there are:
        60 % moves, 20 % divisions, and 20 % in equal parts of the other kinds that occur.
        What a kind lacks goes to the others in the same proportion; the remainders go first
        to the largest fractional parts, ties to the rarer kind.
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


def _allot_fraction(fraction: float, available: NDArray[np.int64]) -> NDArray[np.int64]:
    """At least one of each kind that occurs, otherwise the fraction of each kind."""
    rounded = np.floor(fraction * available + 0.5).astype(np.int64)
    return np.asarray(np.minimum(np.maximum(rounded, 1), available))


def _check(count: int | None, fraction: float | None, wrong: float, cannot_tell: float) -> None:
    if (count is None) == (fraction is None):
        raise InputError("give either a count or a fraction of the events to draw")
    if count is not None and count < 1:
        raise InputError(f"the count of events to draw is {count}, it must be 1 or more")
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(f"the fraction of events to draw is {fraction}, it must be in (0, 1]")
    if not (wrong >= 0 and cannot_tell >= 0 and wrong + cannot_tell <= 1):
        raise InputError(
            f"the rates of wrong ({wrong}) and of cannot-tell ({cannot_tell}) answers must be 0 "
            f"or more and add up to 1 at most"
        )


def draw(
    events: pd.DataFrame | TrueEvents,
    detections: Detections,
    *,
    count: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
    stratified: bool = True,
    wrong: float = 0.0,
    cannot_tell: float = 0.0,
) -> AnnotationSet:
    """Draw a simulated annotator's answers from ground truth.

    Parameters
    ----------
    events
        True events, see `bridgetrack.annotations.truth.read_events`.
    detections
        The detections that its rows belong to.
    count, fraction
        How many events, or which share of them, to annotate; one of the two. More than there
        are takes all.
    seed
        Two draws with the same arguments are the same. A larger fraction contains the draw of
        a smaller one.
    stratified
        Whether rare kinds are drawn more often than they occur: by count as `allot` says, by
        fraction the share of each kind but at least one. Otherwise events are drawn uniformly
        and noted as `RANDOM`, which allows an unbiased estimate of accuracy.
    wrong
        Rate of wrong answers (`bridgetrack.annotations.mistakes.Mistakes`); they never make
        the set contradictory, so in crowded draws a few stay right.
    cannot_tell
        Rate of answers that label nothing.

    Returns
    -------
    AnnotationSet
        With the ids ``s1``, ``s2``, ... in the order of drawing, without times.

    Raises
    ------
    InputError
        Where the numbers or the table are not valid, or there is no event to draw.
    """
    _check(count, fraction, wrong, cannot_tell)
    if seed < 0:
        raise InputError(f"the seed is {seed}, it must be 0 or more")
    rows = read_events(events, detections)
    if len(rows) == 0:
        raise InputError("the ground truth holds no event that could be annotated")
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    mood = rng.random(len(rows))
    chosen = _choose(rows, order, count, fraction, stratified)
    kinds = np.where(mood[chosen] < wrong + cannot_tell, 2, 0)
    kinds[mood[chosen] < wrong] = 1
    return _answers(rows.take(chosen), kinds, detections, "simulated" if stratified else RANDOM)


def _choose(
    rows: EventRows,
    order: NDArray[np.int64],
    count: int | None,
    fraction: float | None,
    stratified: bool,
) -> NDArray[np.int64]:
    if not stratified:
        number = count if fraction is None else max(1, int(fraction * len(rows) + 0.5))
        return order[:number]
    available = np.bincount(rows.event, minlength=len(Event)).astype(np.int64)
    if fraction is None:
        quota = allot(count or 0, available)
    else:
        quota = _allot_fraction(fraction, available)
    kind = rows.event[order]
    place = np.zeros(len(order), dtype=np.int64)
    for e in Event:
        place[kind == e] = np.arange(available[e])
    return order[place < quota[kind]]


def _answers(
    rows: EventRows, kinds: NDArray[np.int64], detections: Detections, source: str
) -> AnnotationSet:
    """Annotations for events: 0 right, 1 wrong, 2 cannot tell."""
    mistakes = Mistakes(detections, rows)
    event, sources, targets = rows.event.copy(), rows.sources.copy(), rows.targets.copy()
    for k in np.flatnonzero(kinds == 1).tolist():
        row = mistakes.instead_of(rows, k)
        if row is not None:
            event[k], sources[k], targets[k] = row
    refs = EventRows(event, sources, targets).refs(detections)
    unsure = (kinds == 2).tolist()
    listed = (
        Annotation(f"s{k}", Kind.CANNOT_TELL if u else Kind.CONFIRM, (ref,), source=source)
        for k, (ref, u) in enumerate(zip(refs, unsure, strict=True), 1)
    )
    return AnnotationSet(detections.geometry, listed)
