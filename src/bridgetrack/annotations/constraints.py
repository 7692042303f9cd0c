"""The hypotheses that annotations allow: sets of one slot each, of which exactly one holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import scipy.sparse as sp

from bridgetrack.annotations.anchor import Anchored
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.contradictions import find_contradictions
from bridgetrack.arrays import Index, Mask
from bridgetrack.errors import BridgetrackError, ContradictionError
from bridgetrack.hypotheses.events import Events, active_slots

_SHOWN = 5


class MissingHypothesisError(BridgetrackError):
    """Internal: the hypotheses lack an event that annotations name."""


class WhyUnused(StrEnum):
    """Why an annotation constrains nothing, as sentences without a full stop."""

    OUTSIDE = "its cell's fate or history lies outside the movie (first or last frame)"
    NOT_PROPOSED = "what it rejects is not proposed here anyway"
    CANNOT_TELL = "the answer was: cannot tell"
    ALL_REJECTED = "everything proposed for this cell is rejected; say what happens instead"


@dataclass(frozen=True)
class Unused:
    """An annotation that constrains nothing."""

    id: str
    reason: WhyUnused


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
        ``indices[indptr[a]:indptr[a + 1]]`` are the hypotheses of S_a, rising.
    left_out_indptr, left_out
        Hypotheses at the slot that are not in S_a, in the same form.
    annotation, ids
        Index of each row's annotation in ``Anchored.listed``, shape (A,), rising, and its id.
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
        """Hypotheses at an annotated slot outside its S_a; rising, unique.

        Setting them to 0 is the same as all constraints, since every slot is covered once.
        """
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
    positive = _said(anchored, Kind.CONFIRM, Kind.ONE_OF)
    detections = anchored.detections
    events = anchored.events.take(positive[anchored.owner])
    return events.take(events.touching(active_slots(detections))).unique()


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
    if not anchored.listed:
        none, start = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        return Constraints(none, start, none, start, none, none, ())
    active = active_slots(anchored.detections)
    slot = answered_slots(anchored)
    found = hypotheses.find(anchored.events)
    needed = (_said(anchored, Kind.CONFIRM, Kind.ONE_OF) & (slot >= 0))[anchored.owner]
    if (needed & (found < 0)).any():
        raise MissingHypothesisError("internal error: the hypotheses lack an annotated event")
    incidence = hypotheses.incidence(active)
    owner, member = _members(slot, incidence)
    reject = _said(anchored, Kind.REJECT)
    keep = _named(anchored, owner, member, found, hypotheses) ^ reject[owner]
    idle = reject & (slot >= 0)
    idle[owner[~keep]] = False
    used = np.flatnonzero((slot >= 0) & ~idle)
    row = np.full(len(slot), -1, dtype=np.int64)
    row[used] = np.arange(len(used))
    indptr, indices = _rows(row[owner], member, keep, len(used))
    left_indptr, left = _rows(row[owner], member, ~keep, len(used))
    ids = tuple(anchored.listed[a].id for a in used.tolist())
    constraints = Constraints(slot[used], indptr, indices, left_indptr, left, used, ids)
    exhausted = _exhausted(anchored, incidence, constraints, reject[used])
    unused = _unused(anchored, slot, idle, used[exhausted])
    return replace(constraints.take(np.flatnonzero(~exhausted)), unused=unused)


def answered_slots(anchored: Anchored) -> Index:
    """The one slot of every annotation, numbered as in `Events`, -1 where it has none, (A,)."""
    active = active_slots(anchored.detections)
    slots = anchored.events.slots(len(anchored.detections))
    start = np.searchsorted(anchored.owner, np.arange(len(anchored.listed)))
    live = (slots >= 0) & active[slots]
    first = slots[np.arange(len(slots)), np.argmax(live, axis=1)]
    slot = np.where(live.any(axis=1), first, -1)[start]
    for a in np.flatnonzero(_said(anchored, Kind.ONE_OF)).tolist():
        own = slots[anchored.owner == a]
        common = (s for s in own[0].tolist() if s >= 0 and (own == s).any(axis=1).all())
        slot[a] = next((s for s in common if active[s]), -1)
    slot[_said(anchored, Kind.CANNOT_TELL)] = -1
    return slot


def usable_with(anchored: Anchored, hypotheses: Events) -> Mask:
    """Annotations all of whose events are among some hypotheses, where they must be, (A,)."""
    needed = _said(anchored, Kind.CONFIRM, Kind.ONE_OF)[anchored.owner]
    missing = needed & (hypotheses.find(anchored.events) < 0)
    usable = np.ones(len(anchored.listed), dtype=bool)
    usable[anchored.owner[missing]] = False
    return usable


def _said(anchored: Anchored, *kinds: Kind) -> Mask:
    """Which annotations are of some kinds, shape (A,)."""
    return np.array([a.kind in kinds for a in anchored.listed], dtype=bool)


def _members(slot: Index, incidence: sp.csr_matrix) -> tuple[Index, Index]:
    """Hypotheses at the slot of each annotation, flat: index into A, and hypothesis; (M,) each."""
    by_slot = incidence.tocsc()
    by_slot.sort_indices()
    live = np.flatnonzero(slot >= 0)
    start = by_slot.indptr.astype(np.int64)
    indptr, members = _take_rows(start, by_slot.indices.astype(np.int64), slot[live])
    return np.repeat(live, np.diff(indptr)), members


def _named(
    anchored: Anchored, owner: Index, member: Index, found: Index, hypotheses: Events
) -> Mask:
    """Which members an annotation names, by itself or by its pattern, shape (M,)."""
    total = np.int64(len(hypotheses) + 1)
    named = np.isin(owner * total + member, anchored.owner * total + found)
    first = np.searchsorted(anchored.owner, owner)
    pattern = ~anchored.events.complete[first]
    same_kind = hypotheses.event[member] == anchored.events.event[first]
    return np.asarray(np.where(pattern, same_kind, named))


def _rows(row: Index, member: Index, chosen: Mask, n_rows: int) -> tuple[Index, Index]:
    """Row pointers and members of the chosen ones that have a row; rows ascend."""
    chosen = chosen & (row >= 0)
    counts = np.bincount(row[chosen], minlength=n_rows)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), member[chosen]


def _exhausted(
    anchored: Anchored, incidence: sp.csr_matrix, constraints: Constraints, reject: Mask
) -> Mask:
    """Which rows are rejections that leave nothing at their slot, shape (A,).

    The right event was not proposed there, which is no contradiction but cannot be met either.
    Other rows that leave nothing contradict each other, which raises ContradictionError.
    """
    single = np.flatnonzero((np.diff(constraints.indptr) == 1) & ~reject)
    confirmed = np.unique(constraints.indices[constraints.indptr[single]])
    covered = np.asarray(incidence[confirmed].sum(axis=0)).ravel()
    # What shares a slot with a confirmed event, and what a row leaves out, cannot hold.
    live = np.asarray(incidence @ (covered > 0).astype(np.float64) == 0)
    live[confirmed] = True
    live[constraints.left_out] = False
    options = np.bincount(
        constraints.row, weights=live[constraints.indices], minlength=len(constraints)
    )
    nothing = options == 0
    if (nothing & ~reject).any() or (covered > 1).any():
        raise ContradictionError(_contradiction(anchored, constraints, nothing & ~reject))
    return np.asarray(nothing & reject)


def _contradiction(anchored: Anchored, constraints: Constraints, impossible: Mask) -> str:
    found = [f"{c.message} ({', '.join(c.ids)})" for c in find_contradictions(anchored.refreshed())]
    if not found:
        names = ", ".join(constraints.ids[r] for r in np.flatnonzero(impossible)[:_SHOWN].tolist())
        found = [f"other annotations leave nothing that fits annotation {names}"]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (
        f"annotations contradict each other: {'; '.join(found[:_SHOWN])}{more}. "
        f"Remove or change one of each"
    )


def _unused(anchored: Anchored, slot: Index, idle: Mask, exhausted: Index) -> tuple[Unused, ...]:
    dead = set(exhausted.tolist())
    found = []
    for k, a in enumerate(anchored.listed):
        if a.kind == Kind.CANNOT_TELL:
            found.append(Unused(a.id, WhyUnused.CANNOT_TELL))
        elif slot[k] < 0:
            found.append(Unused(a.id, WhyUnused.OUTSIDE))
        elif idle[k]:
            found.append(Unused(a.id, WhyUnused.NOT_PROPOSED))
        elif k in dead:
            found.append(Unused(a.id, WhyUnused.ALL_REJECTED))
    return tuple(found)
