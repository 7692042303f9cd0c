"""From anchored annotations to constraints on hypotheses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.annotations.anchored import Anchored
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.consistency import check_consistent, exhausted_rejections
from bridgetrack.annotations.constraints import Constraints, Index, Unused
from bridgetrack.annotations.words import describe
from bridgetrack.errors import BridgetrackError
from bridgetrack.hypotheses.events import Event
from bridgetrack.hypotheses.generate import Required
from bridgetrack.hypotheses.hypotheses import Hypotheses

_NOWHERE = "its cell's fate or history lies outside the movie (first or last frame)"
_ALREADY = "what it rejects is not proposed here anyway"
_UNDECIDED = "the answer was: cannot tell"
_EXHAUSTED = "everything proposed for this cell is rejected; say what happens instead"


class MissingHypothesisError(BridgetrackError):
    """Internal: the hypotheses lack an event that annotations name."""


def _slots(anchored: Anchored) -> Index:
    """Slots that events cover, fates first, -1 where none, shape (E, 5)."""
    n = len(anchored.detections)
    histories = np.where(anchored.targets >= 0, anchored.targets + n, -1)
    own = np.where(anchored.event == Event.FALSE, anchored.sources[:, 0] + n, -1)
    return np.concatenate([anchored.sources, histories, own[:, None]], axis=1)


def _slot_of_events(slots: Index, active: NDArray[np.bool_]) -> Index:
    """First active slot of every event, -1 where it has none, shape (E,)."""
    live = slots >= 0
    live[live] = active[slots[live]]
    first = np.argmax(live, axis=1)
    return np.where(live.any(axis=1), slots[np.arange(len(slots)), first], -1)


def _slot_of_annotations(anchored: Anchored, active: NDArray[np.bool_]) -> Index:
    """The one slot of every annotation, -1 where there is none, shape (A,)."""
    slots = _slots(anchored)
    of_event = _slot_of_events(slots, active)
    start = np.searchsorted(anchored.owner, np.arange(len(anchored.listed) + 1))
    chosen = of_event[start[:-1]].copy() if len(of_event) else np.zeros(0, dtype=np.int64)
    for a in np.flatnonzero(np.diff(start) > 1).tolist():
        own = slots[start[a] : start[a + 1]]
        common = (s for s in own[0].tolist() if s >= 0 and (own == s).any(axis=1).all())
        chosen[a] = next((s for s in common if active[s]), -1)
    return chosen


def required_events(anchored: Anchored) -> Required:
    """Events that annotations say hold or may hold, which must be among the hypotheses.

    Parameters
    ----------
    anchored
        Anchored annotations.

    Returns
    -------
    Required
        Confirmed events and alternatives, each once; not those outside the movie's slots.
        Rejected events need not be proposed.
    """
    positive = np.array([k in (Kind.CONFIRM, Kind.ONE_OF) for k in anchored.kind], dtype=bool)
    frame, last = anchored.detections.frame, anchored.detections.geometry.n_frames - 1
    active = np.concatenate([frame < last, frame > 0])
    keep = np.flatnonzero(positive[anchored.owner]) if len(positive) else np.zeros(0, dtype=int)
    keep = keep[_slot_of_events(_slots(anchored)[keep], active) >= 0]
    keys = np.column_stack([anchored.event, anchored.sources, anchored.targets])[keep]
    keys = np.unique(keys, axis=0).astype(np.int64)
    return Required(keys[:, 0].astype(np.int8), keys[:, 1:3].copy(), keys[:, 3:5].copy())


def find_hypotheses(
    hypotheses: Hypotheses, event: NDArray[np.int8], sources: Index, targets: Index
) -> Index:
    """Indices of events among the hypotheses, shape (E,), -1 where an event is not there.

    Parameters
    ----------
    hypotheses
        The hypotheses of the movie.
    event, sources, targets
        Events as in `Hypotheses`, shapes (E,), (E, 2), (E, 2).
    """
    base = np.int64(hypotheses.n_detections + 1)

    def key(e: NDArray[np.int8], s: Index, t: Index) -> pd.DataFrame:
        first = (e.astype(np.int64) * base + s[:, 0] + 1) * base + s[:, 1] + 1
        return pd.DataFrame({"a": first, "b": (t[:, 0] + 1) * base + t[:, 1] + 1})

    known = key(hypotheses.event, hypotheses.sources, hypotheses.targets)
    wanted = key(event, sources, targets)
    near = np.flatnonzero(np.isin(known["a"].to_numpy(), wanted["a"].to_numpy()))
    candidates = known.iloc[near].assign(h=near).drop_duplicates(["a", "b"])
    found = wanted.merge(candidates, on=["a", "b"], how="left")["h"]
    return found.fillna(-1).to_numpy(dtype=np.int64)


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
    anchored: Anchored, members: _Members, found: Index, hypotheses: Hypotheses
) -> NDArray[np.bool_]:
    """Which members an annotation names, by itself or by its pattern, shape (M,)."""
    total = np.int64(len(hypotheses) + 1)
    named = np.isin(members.owner * total + members.hypothesis, anchored.owner * total + found)
    first = np.searchsorted(anchored.owner, members.owner)
    pattern = ~anchored.complete[first]
    same_kind = hypotheses.event[members.hypothesis] == anchored.event[first]
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


def compile_constraints(anchored: Anchored, hypotheses: Hypotheses) -> Constraints:
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
    slot = _slot_of_annotations(anchored, hypotheses.active)
    slot[[k == Kind.CANNOT_TELL for k in anchored.kind]] = -1
    found = find_hypotheses(hypotheses, anchored.event, anchored.sources, anchored.targets)
    _check_found(anchored, found, slot)
    incidence = hypotheses.incidence()
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
