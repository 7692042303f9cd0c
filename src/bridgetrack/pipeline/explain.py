"""Why an event was chosen, or why not: against the best alternative, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import describe_event
from bridgetrack.arrays import Index
from bridgetrack.errors import InputError, SolverError
from bridgetrack.inference.margins import best_without
from bridgetrack.pipeline.tracking import Tracking

_NOTHING = 1e-6
"""Differences of scores that are rounding: features are held in single precision."""


class Contribution(NamedTuple):
    """Contribution of one feature to a difference of scores; positive favours the chosen events."""

    feature: str  # with formula and unit, as in `bridgetrack.features`
    formula: str
    unit: str
    chosen: float  # its total over the events on either side
    alternative: float
    weight: float  # of the model
    contribution: float  # weight * (chosen - alternative)


@dataclass(frozen=True)
class Explanation:
    """An event against its best alternative."""

    event: str  # the event in question, in words
    was_chosen: bool  # whether it is part of the solution
    # kept, replaced_by: the events on either side, in words: those chosen, and those that would
    # take their place
    kept: tuple[str, ...]
    replaced_by: tuple[str, ...]
    margin: float  # how much better the chosen ones score; infinite where nothing else is allowed
    contributions: tuple[Contribution, ...]  # the largest first; they add up to `margin`

    def words(self, most: int = 5) -> str:
        """The explanation as a few lines of plain text."""
        if not np.isfinite(self.margin):
            return f"{self.event}: nothing else is possible here, given the annotations."
        lines = [] if self.was_chosen else [f"Not chosen: {self.event}."]
        lines += [
            f"Chosen: {'; '.join(self.kept)}.",
            f"Best alternative: {'; '.join(self.replaced_by)}.",
            f"The chosen events score {self.margin:.2f} higher; the largest differences:",
        ]
        lines += [
            f"  {c.contribution:+.2f} {'for' if c.contribution > 0 else 'against'} the choice: "
            f"{c.feature} = {c.chosen:.2f}, alternative {c.alternative:.2f}"
            f"{'' if c.formula == '1' else f' ({c.formula})'}"
            for c in self.contributions[:most]
        ]
        return "\n".join(lines)


def find_event(tracking: Tracking, frame: int, label: int) -> int:
    """The chosen event that is the fate of a cell (in the last frame: its history).

    Raises an `InputError` where there is no such cell.
    """
    detections, slots = tracking.scene.detections, tracking.scene.slots
    row = detections.row_of(frame, label)
    if detections.geometry.n_frames == 1:
        raise InputError("a movie of a single frame has no events to explain")
    last = frame == detections.geometry.n_frames - 1
    place = int(np.searchsorted(slots, row + last * len(detections)))
    columns = tracking.scene.problem.by_slot[place].indices
    return int(columns[tracking.solution.chosen[columns]][0])


def explain_event(tracking: Tracking, column: int) -> Explanation:
    """Compare an event, by the index of its hypothesis, chosen or not, with the best alternative.

    Raises an `InputError` where an annotation excludes the event.
    """
    scene, solution = tracking.scene, tracking.solution
    allowed = scene.constraints.allowed
    chosen = bool(solution.chosen[column])
    problem = scene.problem
    if chosen:
        owner, banned = column, np.asarray([column])
    else:
        if not allowed[column]:
            raise InputError("an annotation says that this event did not happen")
        slot = int(problem.incidence[column].indices[0])
        rivals = problem.by_slot[slot].indices
        owner = int(rivals[solution.chosen[rivals]][0])
        banned = rivals[rivals != column]
    name = _words(tracking, np.asarray([column]))[0]
    try:
        _, added, dropped = best_without(problem, tracking.scores, solution, owner, banned, allowed)
    except SolverError:
        return Explanation(name, chosen, (name,), (), float("inf"), ())
    contributions = _contributions(tracking, dropped, added)
    margin = float(sum(c.contribution for c in contributions))
    kept, replaced_by = _words(tracking, dropped), _words(tracking, added)
    return Explanation(name, chosen, kept, replaced_by, margin, contributions)


def _contributions(tracking: Tracking, kept: Index, other: Index) -> tuple[Contribution, ...]:
    """Features on both sides, the largest difference of scores first."""
    matrix = tracking.scene.matrix
    weights = tracking.model.aligned(matrix.features)
    ours, theirs = (
        sum((matrix.row(int(c)) for c in columns), start=np.zeros(len(weights)))
        for columns in (kept, other)
    )
    value = weights * (ours - theirs)
    columns = np.stack([ours, theirs, weights, value], axis=1).tolist()
    features = matrix.features.features
    return tuple(
        Contribution(features[k].key, features[k].formula, features[k].unit, *columns[k])
        for k in np.argsort(-np.abs(value), kind="stable")
        if abs(value[k]) > _NOTHING
    )


def _words(tracking: Tracking, columns: Index) -> tuple[str, ...]:
    """Events in plain words."""
    refs = event_refs(tracking.scene.detections, tracking.scene.hypotheses.take(columns))
    return tuple(describe_event(ref) for ref in refs)
