"""Annotations as sets of hypotheses, one slot each.

Whether constraints can hold together, checked on hypotheses without a solver.

From anchored annotations to constraints on hypotheses.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import Anchored
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.contradictions import find_contradictions
from bridgetrack.annotations.words import describe
from bridgetrack.errors import BridgetrackError, ContradictionError
from bridgetrack.hypotheses.events import Events, active_slots

Index = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Unused:
    """An annotation that constrains nothing.

    Parameters
    ----------
    id
        The annotation.
    reason
        Why, as a sentence without a full stop.
    """

    id: str
    reason: str


@dataclass(frozen=True)
class Constraints:
    """The sets S_a of the compatible outputs Y* (design of 001, eq. 6): one row per annotation.

    ``sum(y[h] for h in S_a) == 1`` holds for every row a; S_a lies within one slot, so the sum
    never exceeds 1 and the number of rows that it falls short of is the Hamming loss.

    Parameters
    ----------
    slot
        Slot of every row, shape (A,).
    indptr, indices
        ``indices[indptr[a]:indptr[a + 1]]`` are the hypotheses of S_a, rising; shapes (A + 1,)
        and (nnz,).
    left_out
        Hypotheses at the slot that are not in S_a, in the same form.
    left_out_indptr
        Its row pointers, shape (A + 1,).
    annotation
        Index of each row's annotation in ``Anchored.listed``, shape (A,), rising.
    ids
        Id of each row's annotation.
    unused
        Annotations without a row.
    """

    slot: Index
    indptr: Index
    indices: Index
    left_out_indptr: Index
    left_out: Index
    annotation: Index
    ids: tuple[str, ...]
    unused: tuple[Unused, ...] = ()

    def __len__(self) -> int:
        return len(self.slot)

    def allowed(self, a: int) -> Index:
        """Hypotheses of S_a."""
        return self.indices[self.indptr[a] : self.indptr[a + 1]]

    @property
    def row(self) -> Index:
        """Row of every entry of `indices`, shape (nnz,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    @property
    def forced(self) -> Index:
        """Hypotheses that must hold because they are all of some S_a; rising, unique."""
        single = np.flatnonzero(np.diff(self.indptr) == 1)
        return np.unique(self.indices[self.indptr[single]])

    @property
    def forbidden(self) -> Index:
        """Hypotheses that cannot hold because some S_a leaves them out; rising, unique."""
        return np.unique(self.left_out)

    def take(self, rows: Index) -> Constraints:
        """The constraints of some rows, e.g. of one fold of a cross-validation."""
        rows = np.asarray(rows, dtype=np.int64)
        indptr, indices = _take_rows(self.indptr, self.indices, rows)
        left_indptr, left = _take_rows(self.left_out_indptr, self.left_out, rows)
        ids = tuple(self.ids[r] for r in rows.tolist())
        return Constraints(
            self.slot[rows], indptr, indices, left_indptr, left, self.annotation[rows], ids
        )


def _take_rows(indptr: Index, indices: Index, rows: Index) -> tuple[Index, Index]:
    start, length = indptr[rows], np.diff(indptr)[rows]
    new = np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
    entries = np.arange(new[-1]) - np.repeat(new[:-1] - start, length)
    return new, indices[entries]


def pins(constraints: Constraints) -> tuple[Index, Index]:
    """What annotations fix outright, for pinning before inference.

    Parameters
    ----------
    constraints
        From `bridgetrack.annotations.constraints.compile_constraints`.

    Returns
    -------
    must_one
        Hypotheses that must hold, rising.
    forbid
        Hypotheses that must not hold: those at an annotated slot outside its S_a, rising.
        Setting them to 0 is the same as all constraints, since every slot is covered once.
    """
    return constraints.forced, constraints.forbidden


_SHOWN = 5


def _excluded(incidence: sp.csr_matrix, chosen: Index) -> Mask:
    """Hypotheses that share a slot with a chosen one, the chosen ones left aside."""
    taken = np.zeros(incidence.shape[1])
    taken[incidence[chosen].indices] = 1
    excluded = np.asarray(incidence @ taken > 0)
    excluded[chosen] = False
    return excluded


def _open(incidence: sp.csr_matrix, constraints: Constraints, confirmed: Index) -> Mask:
    """Hypotheses that no annotation rules out."""
    shut = _excluded(incidence, confirmed)
    shut[constraints.left_out] = True
    return ~shut


def _confirmed(constraints: Constraints, reject: Mask) -> Index:
    single = np.diff(constraints.indptr) == 1
    rows = np.flatnonzero(single & ~reject[constraints.annotation])
    return np.unique(constraints.indices[constraints.indptr[rows]])


def check_consistent(
    anchored: Anchored, incidence: sp.csr_matrix, constraints: Constraints, reject: Mask
) -> None:
    """Refuse annotations that exclude each other.

    Parameters
    ----------
    anchored
        The annotations, for the explanation.
    incidence
        Hypotheses x slots (`Events.incidence`).
    constraints
        What the annotations amount to.
    reject
        Which of ``anchored.listed`` are rejections.

    Raises
    ------
    ContradictionError
        With every contradiction in plain words (the first few).
    """
    confirmed = _confirmed(constraints, reject)
    covered = np.asarray(incidence[confirmed].sum(axis=0)).ravel()
    live = _open(incidence, constraints, confirmed)
    positive = np.flatnonzero(~reject[constraints.annotation])
    options = np.bincount(
        constraints.row, weights=live[constraints.indices], minlength=len(constraints)
    )
    impossible = positive[options[positive] == 0]
    if len(impossible) == 0 and (covered <= 1).all():
        return
    found = [f"{c.message} ({', '.join(c.ids)})" for c in find_contradictions(anchored.refreshed())]
    if not found:
        names = ", ".join(constraints.ids[r] for r in impossible[:_SHOWN].tolist())
        found = [f"other annotations leave nothing that fits annotation {names}"]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    raise ContradictionError(
        f"annotations contradict each other: {'; '.join(found[:_SHOWN])}{more}. "
        f"Remove or change one of each"
    )


def exhausted_rejections(incidence: sp.csr_matrix, constraints: Constraints, reject: Mask) -> Mask:
    """Rejections that leave nothing at their slot.

    Somebody who rejects every proposal for a cell says that the right event was not proposed,
    which is no contradiction but cannot be met either.

    Parameters
    ----------
    incidence
        Hypotheses x slots.
    constraints
        Consistent in their confirmed and ambiguous annotations.
    reject
        Which of ``anchored.listed`` are rejections.

    Returns
    -------
    ndarray
        Rows of `constraints` to leave out, shape (A,).
    """
    live = _open(incidence, constraints, _confirmed(constraints, reject))
    open_ = np.bincount(
        constraints.row, weights=live[constraints.indices], minlength=len(constraints)
    )
    return np.asarray((open_ == 0) & reject[constraints.annotation])


_NOWHERE = "its cell's fate or history lies outside the movie (first or last frame)"
_ALREADY = "what it rejects is not proposed here anyway"
_UNDECIDED = "the answer was: cannot tell"
_EXHAUSTED = "everything proposed for this cell is rejected; say what happens instead"


class MissingHypothesisError(BridgetrackError):
    """Internal: the hypotheses lack an event that annotations name."""


def _slot_of_events(slots: Index, active: NDArray[np.bool_]) -> Index:
    """First active slot of every event, -1 where it has none, shape (E,)."""
    live = slots >= 0
    live[live] = active[slots[live]]
    first = np.argmax(live, axis=1)
    return np.where(live.any(axis=1), slots[np.arange(len(slots)), first], -1)


def _slot_of_annotations(anchored: Anchored, active: NDArray[np.bool_]) -> Index:
    """The one slot of every annotation, -1 where there is none, shape (A,)."""
    slots = anchored.events.slots(len(anchored.detections))
    of_event = _slot_of_events(slots, active)
    start = np.searchsorted(anchored.owner, np.arange(len(anchored.listed) + 1))
    chosen = of_event[start[:-1]].copy() if len(of_event) else np.zeros(0, dtype=np.int64)
    for a in np.flatnonzero(np.diff(start) > 1).tolist():
        own = slots[start[a] : start[a + 1]]
        common = (s for s in own[0].tolist() if s >= 0 and (own == s).any(axis=1).all())
        chosen[a] = next((s for s in common if active[s]), -1)
    return chosen


def required_events(anchored: Anchored) -> Events:
    """Events that annotations say hold or may hold, which must be among the hypotheses.

    Parameters
    ----------
    anchored
        Anchored annotations.

    Returns
    -------
    Events
        Confirmed events and alternatives, each once; not those outside the movie's slots.
        Rejected events need not be proposed.
    """
    positive = np.array([k in (Kind.CONFIRM, Kind.ONE_OF) for k in anchored.kind], dtype=bool)
    detections = anchored.detections
    events = anchored.events.take(positive[anchored.owner])
    inside = _slot_of_events(events.slots(len(detections)), active_slots(detections)) >= 0
    return events.take(inside).unique()


@dataclass(frozen=True)
class _Members:
    """Hypotheses at the slot of each annotation, flat: owner (index into A) and hypothesis."""

    owner: Index
    hypothesis: Index


def _members(slot: Index, incidence: sp.csr_matrix) -> _Members:
    by_slot = incidence.tocsc()
    by_slot.sort_indices()
    live = np.flatnonzero(slot >= 0)
    start = by_slot.indptr[slot[live]].astype(np.int64)
    length = by_slot.indptr[slot[live] + 1].astype(np.int64) - start
    ends = np.cumsum(length)
    entries = np.arange(int(length.sum())) - np.repeat(ends - length - start, length)
    return _Members(np.repeat(live, length), by_slot.indices[entries].astype(np.int64))


def _named(
    anchored: Anchored, members: _Members, found: Index, hypotheses: Events
) -> NDArray[np.bool_]:
    """Which members an annotation names, by itself or by its pattern, shape (M,)."""
    total = np.int64(len(hypotheses) + 1)
    named = np.isin(members.owner * total + members.hypothesis, anchored.owner * total + found)
    first = np.searchsorted(anchored.owner, members.owner)
    pattern = ~anchored.events.complete[first]
    same_kind = hypotheses.event[members.hypothesis] == anchored.events.event[first]
    return np.asarray(np.where(pattern, same_kind, named))


def _check_found(anchored: Anchored, found: Index, slot: Index) -> None:
    positive = np.array([k in (Kind.CONFIRM, Kind.ONE_OF) for k in anchored.kind], dtype=bool)
    missing = np.flatnonzero((found < 0) & positive[anchored.owner] & (slot[anchored.owner] >= 0))
    if len(missing):
        a = anchored.listed[int(anchored.owner[missing[0]])]
        raise MissingHypothesisError(
            f"internal error: the hypotheses lack {len(missing)} annotated events, first that of "
            f"annotation {a.id} ({describe(a)}); generate them with "
            f"required=required_events(anchored)"
        )


def compile_constraints(anchored: Anchored, hypotheses: Events) -> Constraints:
    """The sets of hypotheses that annotations allow, one slot each.

    A confirmed event is counted once, at its first active slot; a rejected event leaves the
    other hypotheses of its first slot (the source's fate, where it has a source); a rejected
    kind leaves those of other kinds; an ambiguous answer leaves its alternatives.

    Parameters
    ----------
    anchored
        Anchored annotations.
    hypotheses
        Hypotheses of the same detections, generated with ``required_events(anchored)``.

    Returns
    -------
    Constraints
        One row per annotation that constrains something; the others are in ``unused``.

    Raises
    ------
    ContradictionError
        Where annotations exclude each other; the message names them.
    MissingHypothesisError
        Where an annotated event is not among the hypotheses.
    """
    active = active_slots(anchored.detections)
    slot = _slot_of_annotations(anchored, active)
    slot[[k == Kind.CANNOT_TELL for k in anchored.kind]] = -1
    found = hypotheses.find(anchored.events)
    _check_found(anchored, found, slot)
    incidence = hypotheses.incidence(active)
    members = _members(slot, incidence)
    named = _named(anchored, members, found, hypotheses)
    reject = np.array([k == Kind.REJECT for k in anchored.kind], dtype=bool)
    keep = named ^ reject[members.owner]
    idle = reject & (slot >= 0)
    idle[members.owner[~keep]] = False
    constraints = _build(anchored, slot, members, keep, np.flatnonzero((slot >= 0) & ~idle))
    check_consistent(anchored, incidence, constraints, reject)
    dead = exhausted_rejections(incidence, constraints, reject)
    unused = _unused(anchored, slot, idle, constraints.annotation[dead])
    alive = constraints.take(np.flatnonzero(~dead))
    return replace(alive, unused=unused)


def _build(
    anchored: Anchored, slot: Index, members: _Members, keep: NDArray[np.bool_], used: Index
) -> Constraints:
    number = np.full(len(anchored.listed), -1, dtype=np.int64)
    number[used] = np.arange(len(used))
    row = number[members.owner]

    def part(mask: NDArray[np.bool_]) -> tuple[Index, Index]:
        mask = mask & (row >= 0)
        counts = np.bincount(row[mask], minlength=len(used))
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), members.hypothesis[mask]

    indptr, indices = part(keep)
    left_indptr, left = part(~keep)
    ids = tuple(anchored.listed[a].id for a in used.tolist())
    return Constraints(slot[used], indptr, indices, left_indptr, left, used, ids)


def _unused(
    anchored: Anchored, slot: Index, idle: NDArray[np.bool_], exhausted: Index
) -> tuple[Unused, ...]:
    dead = set(exhausted.tolist())
    found = []
    for k, a in enumerate(anchored.listed):
        if a.kind == Kind.CANNOT_TELL:
            found.append(Unused(a.id, _UNDECIDED))
        elif slot[k] < 0:
            found.append(Unused(a.id, _NOWHERE))
        elif idle[k]:
            found.append(Unused(a.id, _ALREADY))
        elif k in dead:
            found.append(Unused(a.id, _EXHAUSTED))
    return tuple(found)
