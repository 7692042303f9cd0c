"""The hypotheses that annotations allow: sets of one slot each, of which exactly one holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import Anchored, event_refs
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.contradictions import find_contradictions
from bridgetrack.arrays import Index, Mask
from bridgetrack.errors import ContradictionError
from bridgetrack.hypotheses.events import Events, active_slots

_SHOWN = 5


OUTSIDE = "its cell's fate or history lies outside the movie (first or last frame)"
NOT_PROPOSED = "what it rejects is not proposed here anyway"
ALL_REJECTED = "everything proposed for this cell is rejected; say what happens instead"
"""Why an annotation constrains nothing, as sentences without a full stop."""


@dataclass(frozen=True)
class Constraints:
    """The sets S_a of the compatible outputs Y* (001, section 2): one row per annotation.

    ``sum(y[h] for h in S_a) == 1`` holds for every row a; S_a lies within one slot, so the sum
    never exceeds 1, and the number of rows whose sum is 0 is the Hamming loss.
    """

    slot: Index  # slot of every row, shape (A,)
    # indicators of the hypotheses of S_a, and of those at the slot that are not in it, shapes (A,
    # H)
    sets: sp.csr_matrix
    others: sp.csr_matrix
    # index of each row's annotation in ``Anchored.listed``, shape (A,), rising, and its id
    annotation: Index
    ids: tuple[str, ...]
    # why annotations without a row constrain nothing, by their ids; those of the kind cannot_tell
    # are only counted, in `unsure`
    unused: Mapping[str, str] = field(default_factory=dict)
    unsure: int = 0

    def __len__(self) -> int:
        return len(self.slot)

    @property
    def allowed(self) -> Mask:
        """Hypotheses that no row excludes, shape (H,).

        Setting the others to 0 is equivalent to all constraints, since every slot is covered once.
        """
        allowed = np.ones(self.sets.shape[1], dtype=bool)
        allowed[self.others.indices] = False
        return allowed

    @property
    def forced(self) -> Index:
        """Hypotheses that must hold because they are all of some S_a; rising, unique."""
        single = np.flatnonzero(np.diff(self.sets.indptr) == 1)
        return np.unique(self.sets.indices[self.sets.indptr[single]])

    def take(self, rows: Index) -> Constraints:
        """The constraints of some rows, e.g. of one fold of a cross-validation."""
        rows = np.asarray(rows, dtype=np.int64)
        ids = tuple(self.ids[r] for r in rows.tolist())
        sets, others = sp.csr_matrix(self.sets[rows]), sp.csr_matrix(self.others[rows])
        return Constraints(self.slot[rows], sets, others, self.annotation[rows], ids)


def required_events(anchored: Anchored) -> Events:
    """Events that hold or may hold by annotations, which must be among the hypotheses.

    Confirmed events and alternatives, each once; not those outside the movie's slots. Rejected
    events need not be proposed.
    """
    positive = _said(anchored, Kind.CONFIRM, Kind.ONE_OF)
    detections = anchored.detections
    events = anchored.events.take(positive[anchored.owner])
    return events.take(events.touching(active_slots(detections))).unique()


def compile_constraints(anchored: Anchored, hypotheses: Events) -> Constraints:
    """The sets of hypotheses that annotations allow, one slot each.

    A confirmed event is counted once, at its first active slot; a rejected event leaves the other
    hypotheses of its first slot (the source's fate, if it has a source); a rejected kind leaves
    those of other kinds; an ambiguous answer leaves its alternatives. Annotations that constrain
    nothing are in ``unused``.

    Hypotheses are those of the same detections, generated with ``required_events(anchored)``.
    Raises a `ContradictionError` if annotations exclude each other; the message names them.
    """
    slot = answered_slots(anchored)
    live = np.flatnonzero(slot >= 0)
    unsure = _said(anchored, Kind.CANNOT_TELL)
    why, n = np.full(len(unsure), OUTSIDE, dtype=object), int(unsure.sum())
    why[live] = why[unsure] = None
    if not len(live):
        nothing = sp.csr_matrix((0, len(hypotheses)))
        return Constraints(live, nothing, nothing, live, (), _unused(anchored, why), n)
    told, reject = anchored.take(live), _said(anchored, Kind.REJECT)[live]
    incidence = hypotheses.incidence(active_slots(anchored.detections))
    here = sp.csr_matrix(incidence.T)[slot[live]]
    row = np.repeat(np.arange(len(live)), np.diff(here.indptr))
    inside = _named(told, row, here.indices.astype(np.int64), hypotheses) ^ reject[row]
    sets, others = _part(here, inside), _part(here, ~inside)
    ids = tuple(a.id for a in told.listed)
    constraints = Constraints(slot[live], sets, others, live, ids)
    idle = reject & (np.diff(others.indptr) == 0)
    exhausted = _exhausted(told, incidence, constraints, reject) & ~idle
    why[live[idle]], why[live[exhausted]] = NOT_PROPOSED, ALL_REJECTED
    constraints = constraints.take(np.flatnonzero(~idle & ~exhausted))
    return replace(constraints, unused=_unused(anchored, why), unsure=n)


def _unused(anchored: Anchored, why: NDArray[np.object_]) -> dict[str, str]:
    listed = zip(anchored.listed, why.tolist(), strict=True)
    return {a.id: reason for a, reason in listed if reason is not None}


def _part(matrix: sp.csr_matrix, chosen: Mask) -> sp.csr_matrix:
    """The chosen entries of a matrix, as ones."""
    part = matrix.astype(np.float64, copy=True)
    part.data = chosen.astype(np.float64)
    part.eliminate_zeros()
    part.sort_indices()
    return part


def answered_slots(anchored: Anchored) -> Index:
    """The one slot of every annotation, numbered as in `Events`, -1 if it has none, (A,)."""
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
    """Annotations whose events are all among some hypotheses, if they must be, (A,)."""
    needed = _said(anchored, Kind.CONFIRM, Kind.ONE_OF)[anchored.owner]
    missing = needed & (hypotheses.find(anchored.events) < 0)
    usable = np.ones(len(anchored.listed), dtype=bool)
    usable[anchored.owner[missing]] = False
    return usable


def _said(anchored: Anchored, *kinds: Kind) -> Mask:
    """Which annotations are of some kinds, shape (A,)."""
    return np.array([a.kind in kinds for a in anchored.listed], dtype=bool)


def _named(told: Anchored, owner: Index, member: Index, hypotheses: Events) -> Mask:
    """Which members an annotation names, by itself or by its pattern, shape (M,)."""
    found = hypotheses.find(told.events)
    needed = _said(told, Kind.CONFIRM, Kind.ONE_OF)[told.owner]
    assert not (needed & (found < 0)).any(), "the hypotheses lack an annotated event"
    total = np.int64(len(hypotheses) + 1)
    named = np.isin(owner * total + member, told.owner * total + found)
    first = np.searchsorted(told.owner, owner)
    same_kind = hypotheses.event[member] == told.events.event[first]
    return np.asarray(np.where(told.events.complete[first], named, same_kind))


def _exhausted(
    anchored: Anchored, incidence: sp.csr_matrix, constraints: Constraints, reject: Mask
) -> Mask:
    """Which rows are rejections that leave nothing at their slot, shape (A,).

    The right event was not proposed there, which is no contradiction but cannot be met either.
    Other rows that leave nothing contradict each other, which raises ContradictionError.
    """
    sets = constraints.sets
    single = np.flatnonzero((np.diff(sets.indptr) == 1) & ~reject)
    confirmed = np.unique(sets.indices[sets.indptr[single]])
    covered = np.asarray(incidence[confirmed].sum(axis=0)).ravel()
    # Events that share a slot with a confirmed one, and those that a row excludes, cannot hold.
    live = np.asarray(incidence @ (covered > 0).astype(np.float64) == 0)
    live[confirmed] = True
    nothing = sets @ (live & constraints.allowed).astype(np.float64) == 0
    if (nothing & ~reject).any() or (covered > 1).any():
        raise ContradictionError(_contradiction(anchored, constraints, nothing & ~reject))
    return np.asarray(nothing & reject)


def _contradiction(anchored: Anchored, constraints: Constraints, impossible: Mask) -> str:
    refs = iter(event_refs(anchored.detections, anchored.events))
    now = [replace(a, events=tuple(next(refs) for _ in a.events)) for a in anchored.listed]
    found = [f"{c.message} ({', '.join(c.ids)})" for c in find_contradictions(now)]
    if not found:
        names = ", ".join(constraints.ids[r] for r in np.flatnonzero(impossible)[:_SHOWN].tolist())
        found = [f"other annotations leave nothing that fits annotation {names}"]
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return (
        f"annotations contradict each other: {'; '.join(found[:_SHOWN])}{more}. "
        f"Remove or change one of each"
    )
