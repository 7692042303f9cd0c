"""Why an event was chosen, or why not, feature by feature."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import event_refs
from bridgetrack.annotations.annotation import describe_event
from bridgetrack.errors import InputError, SolverError
from bridgetrack.inference.margins import best_without
from bridgetrack.pipeline.tracking import Tracking, allowed_by

Array = NDArray[np.float64]
Index = NDArray[np.int64]

_NOTHING = 1e-6
"""Differences of scores that are rounding: features are held in single precision."""


@dataclass(frozen=True)
class Contribution:
    """Share of one feature in a difference of scores.

    Parameters
    ----------
    feature, formula, unit
        The feature, as in `bridgetrack.features`.
    chosen, alternative
        Its total over the events on either side.
    weight
        The model's weight.
    """

    feature: str
    formula: str
    unit: str
    chosen: float
    alternative: float
    weight: float

    @property
    def value(self) -> float:
        """weight * (chosen - alternative); positive speaks for what was chosen."""
        return self.weight * (self.chosen - self.alternative)


@dataclass(frozen=True)
class Explanation:
    """An event against its best alternative.

    Parameters
    ----------
    event
        What is asked about, in words.
    was_chosen
        Whether it is part of the solution.
    kept, replaced_by
        The events on either side, in words: those chosen, and those that would take their place.
    margin
        How much better the chosen ones score; infinite where nothing else is allowed.
    contributions
        The largest first; they add up to `margin`.
    """

    event: str
    was_chosen: bool
    kept: tuple[str, ...]
    replaced_by: tuple[str, ...]
    margin: float
    contributions: tuple[Contribution, ...]

    def words(self, most: int = 5) -> str:
        """The explanation as a few lines of plain text."""
        if not np.isfinite(self.margin):
            return f"{self.event}: nothing else is possible here, given the annotations."
        verdict = "was chosen" if self.was_chosen else "was not chosen"
        lines = [f"{self.event}: {verdict}."]
        lines.append(f"Chosen: {'; '.join(self.kept)}.")
        lines.append(f"Best alternative: {'; '.join(self.replaced_by)}.")
        lines.append(f"The chosen events score {self.margin:.2f} higher, mostly because of:")
        for c in self.contributions[:most]:
            side = "for" if c.value > 0 else "against"
            lines.append(
                f"  {c.value:+.2f} {side} the choice: {c.feature} = {c.chosen:.2f}, "
                f"alternative {c.alternative:.2f} ({c.formula})"
            )
        return "\n".join(lines)


def find_event(tracking: Tracking, frame: int, label: int) -> int:
    """The chosen event that says what becomes of a cell (in the last frame: where it is from).

    Raises
    ------
    InputError
        Where there is no such cell.
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
    """Compare an event with the best alternative to it.

    Parameters
    ----------
    tracking
        A tracked movie.
    column
        Index of the hypothesis, chosen or not.

    Raises
    ------
    InputError
        Where an annotation excludes the event.
    """
    scene, solution = tracking.scene, tracking.solution
    allowed = allowed_by(scene)
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
    margin = float(sum(c.value for c in contributions))
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
    features = [(f.key, f.formula, f.unit) for f in matrix.features.features]
    rows = zip(features, ours.tolist(), theirs.tolist(), weights.tolist(), strict=True)
    found = [Contribution(*feature, *values) for feature, *values in rows]
    told = (c for c in found if abs(c.value) > _NOTHING)
    return tuple(sorted(told, key=lambda c: -abs(c.value)))


def _words(tracking: Tracking, columns: Index) -> tuple[str, ...]:
    """Events in plain words."""
    refs = event_refs(tracking.scene.detections, tracking.scene.hypotheses.take(columns))
    return tuple(describe_event(ref) for ref in refs)
