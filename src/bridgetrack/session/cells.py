"""What cells are called, what may happen to them, and questions in such words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bridgetrack.active.suggestion import Suggestion
from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import (
    CellRef,
    EventRef,
    Name,
    by_label,
    describe,
    describe_event,
    short_words,
)
from bridgetrack.annotations.annotation_set import AnswerChange
from bridgetrack.annotations.mask_answers import describe_masks
from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.events import Event
from bridgetrack.notes import plural
from bridgetrack.pipeline.tracking import Tracking
from bridgetrack.tracks.table import certainty_of, verified_tracks


class CellNames:
    """Names of cells: the number of the track, e.g. ``#12``; by the label where there are none.

    Two pieces of one cell in the same frame are ``#12a`` and ``#12b``; verified tracks have a tick.

    Parameters
    ----------
    tracking
        The tracks; None before there are any.
    """

    def __init__(self, tracking: Tracking | None) -> None:
        self._tracking = tracking

    @cached_property
    def _of_row(self) -> tuple[Index, dict[int, str]]:
        """Track of every detection, 0 where it has none, and letters of pieces by their row."""
        assert self._tracking is not None
        nodes = self._tracking.tracks.nodes
        rows = nodes["id"].to_numpy(dtype=np.int64)
        track = np.zeros(len(self._tracking.scene.detections), dtype=np.int64)
        track[rows] = nodes["track_id"].to_numpy(dtype=np.int64)
        shared = nodes[nodes.duplicated(["frame", "track_id"], keep=False)].sort_values("id")
        place = shared.groupby(["frame", "track_id"]).cumcount()
        letters = zip(shared["id"].tolist(), place.tolist(), strict=True)
        return track, {int(row): chr(ord("a") + k % 26) for row, k in letters}

    @cached_property
    def _verified(self) -> frozenset[int]:
        return frozenset() if self._tracking is None else verified_tracks(self._tracking.tracks)

    def track(self, cell: CellRef) -> int:
        """Number of the track of a cell, 0 where it has none."""
        return self._found(cell)[0]

    def verified(self, cell: CellRef) -> bool:
        """Whether the track of a cell is verified."""
        return bool(self._verified) and self.track(cell) in self._verified

    def _found(self, cell: CellRef) -> tuple[int, str]:
        """Track and letter of a cell."""
        if self._tracking is None:
            return 0, ""
        try:
            row = self._tracking.scene.detections.row_of(*cell.cell)
        except InputError:  # an answer about a cell that is gone
            return 0, ""
        track, letters = self._of_row
        return int(track[row]), letters.get(row, "")

    def __call__(self, cell: CellRef) -> str:
        """What a cell is called."""
        if self._tracking is None:
            return by_label(cell)
        track, letter = self._found(cell)
        if not track:
            # Labels are other numbers than those of tracks, which stand in the same sentence.
            return f"untracked {cell.label}"
        return f"#{track}{letter}{'✓' if track in self._verified else ''}"


def question_words(asked: Suggestion, name: Name = by_label) -> str:
    """The question."""
    return f"Is this right: {describe_event(asked.event, name)}?"


def choice_words(event: EventRef, asked: Suggestion, name: Name = by_label) -> str:
    """An event as a predicate of the cell asked about; sisters tell divisions apart."""
    history = asked.slot[0] == "history"
    words = short_words(event, history, name)
    sisters = [c for c in event.targets if c.cell != asked.slot[1]]
    if not history or not sisters:
        return words
    called = [name(c) for c in sisters]
    if called == [name(c) for c in event.sources]:
        # The mother's track goes on as the sister so far; its number twice would say nothing.
        what = "is a sister of" if event.event == Event.DIVIDE else "is one cell with"
        return f"{what} {called[0]} in frame {sisters[0].frame}"
    return f"{words}, together with {' and '.join(called)}"


def step_words(change: AnswerChange, name: Name = by_label) -> str:
    """What a step changed."""
    events = change.added or change.removed
    masks = change.masks_added or change.masks_removed
    frames = {answer.frame for answer in masks}
    parts = []
    if events:
        one = len(events) == 1
        parts.append(describe(events[0], name) if one else f"{len(events)} answers")
    if len(masks) == 1 and not masks[0].says_nothing:
        parts.append(describe_masks(masks[0].frame, masks[0].kind))
    elif masks:
        parts.append(f"the masks of {plural(len(frames), 'frame')}")
    if "model" in change.settings:
        parts.append("the choice of the model")
    if "without" in change.settings:
        parts.append("what can happen in this movie")
    return " and ".join(parts)


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
    share = _shared(weight, np.flatnonzero(chosen), tracking.margins[columns[chosen]])
    order = np.lexsort((cost, excluded, ~chosen))[:limit]
    picked = columns[order]
    refs = event_refs(scene.detections, scene.hypotheses.take(picked))
    return [
        Proposal(ref, float(share[k]), float(cost[k]), bool(chosen[k]), bool(excluded[k]))
        for ref, k in zip(refs, order.tolist(), strict=True)
    ]


def _shared(weight: Array, first: Index, margin: Array) -> Array:
    """Probabilities of alternatives: of the one that holds, if any, by its margin; the rest of
    them share what is left by their weights."""
    share: Array = weight / max(float(weight.sum()), 1e-12)
    rest = np.delete(weight, first)
    if len(first) == 1 and len(rest) and rest.sum() > 0 and not np.isnan(margin[0]):
        sure = float(certainty_of(margin)[0])
        share = (1.0 - sure) * weight / float(rest.sum())
        share[first] = sure
    return share
