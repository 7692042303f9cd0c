"""What the model thinks happens to a cell, best first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import EventRef
from bridgetrack.arrays import Array, Index
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.table import certainty_of


@dataclass(frozen=True)
class Proposal:
    """One event that could explain a cell's fate or history.

    Parameters
    ----------
    event
        The event with its cells.
    confidence
        Share of belief among the alternatives of the same cell, 0 to 1.
    cost
        How much the whole movie's score would drop at least, 0 for the present choice.
    chosen
        Whether the present tracking holds it.
    excluded
        Whether an annotation rules it out.
    """

    event: EventRef
    confidence: float
    cost: float
    chosen: bool
    excluded: bool


def proposals(
    tracking: Tracking, row: int, *, history: bool = False, limit: int = 6
) -> list[Proposal]:
    """Ranked alternatives for a cell: the chosen event first, then by what they would cost.

    Parameters
    ----------
    tracking
        A tracked movie.
    row
        Row of the cell.
    history
        Ask where the cell comes from rather than where it goes.
    limit
        How many at most.

    Returns
    -------
    list of Proposal
        Empty for fates in the last frame and histories in the first. The confidence of the chosen
        event is that of the tables (`certainty_of` its margin); the others share what is left
        by ``exp(-cost)``, where the cost of an event is its reduced cost.
    """
    scene, problem = tracking.scene, tracking.scene.problem
    wanted = row + (len(scene.detections) if history else 0)
    slot = int(np.searchsorted(scene.slots, wanted))
    if slot == len(scene.slots) or scene.slots[slot] != wanted:
        return []
    columns = problem.by_slot[slot].indices
    price = problem.incidence[columns] @ tracking.solution.duals
    cost = np.maximum(price - tracking.scores[columns], 0.0)
    excluded = ~scene.constraints.allowed[columns]
    chosen = tracking.solution.chosen[columns]
    weight = np.where(excluded, 0.0, np.exp(-np.where(chosen, 0.0, cost)))
    share = shared(weight, np.flatnonzero(chosen), tracking.margins[columns[chosen]])
    order = np.lexsort((cost, excluded, ~chosen))[:limit]
    picked = columns[order]
    refs = event_refs(scene.detections, scene.hypotheses.take(picked))
    return [
        Proposal(ref, float(share[k]), float(cost[k]), bool(chosen[k]), bool(excluded[k]))
        for ref, k in zip(refs, order.tolist(), strict=True)
    ]


def shared(weight: Array, first: Index, margin: Array) -> Array:
    """Probabilities of alternatives: that of the first by its margin, the rest by their weights.

    Parameters
    ----------
    weight
        Of every alternative, shape (n,).
    first
        Place of the one that holds at present, at most one.
    margin
        Its margin, shape of ``first``.
    """
    share: Array = weight / max(float(weight.sum()), 1e-12)
    rest = np.delete(weight, first)
    if len(first) == 1 and len(rest) and rest.sum() > 0 and not np.isnan(margin[0]):
        sure = float(certainty_of(margin)[0])
        share = (1.0 - sure) * weight / float(rest.sum())
        share[first] = sure
    return share


def chosen_event(tracking: Tracking, row: int) -> EventRef | None:
    """What becomes of a cell in the present tracking."""
    best = proposals(tracking, row, limit=1)
    return best[0].event if best and best[0].chosen else None
