"""Track a movie in windows of frames, so that memory does not grow with its length.

Cells are measured, and how they move is estimated, for the whole movie. A short movie is one
window. Otherwise events are proposed, described and chosen in windows, which do not need each
other, so any executor can share them out (see `bridgetrack.spread`).

Moves, divisions, splits and merges cover fates of one frame and histories of the next, so the
slots of a movie fall into pairs of frames that only skips and false detections tie together. A
window from frame a to frame b has the fates of a..b-1 and the histories of a+1..b; windows that
meet in a frame share no slot, and each is solved for itself.

What may reach from window to window is looked at afterwards. Around the frame where two meet the
events are chosen again, and the prices of the slots (the duals of the relaxations) are set
again such that the price of its slots is at least the score of every event: then no choice of
events of the whole movie is worth more than all prices together. As every slot is covered once,
these exceed the choice by the reduced costs of the chosen events: that bounds what windows cost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import Anchored, anchor
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import (
    answered_slots,
    compile_constraints,
    required_events,
    usable_with,
)
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InfeasibleError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureMatrix, FeatureSet
from bridgetrack.features.view import CellMeasures, describe_cells
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds, Events, active_slots
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import events_between
from bridgetrack.hypotheses.motion import MAX_GAP
from bridgetrack.inference.margins import margin_bounds, reduced_costs
from bridgetrack.inference.problem import Problem, Solution, components
from bridgetrack.inference.relax import SolverLimits, prices
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import Model, shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.memory import even_windows, parse_memory, windows_within
from bridgetrack.pipeline.scene import Scene, check_kinds, measure, propose
from bridgetrack.pipeline.tracking import (
    Tracking,
    Windows,
    explain_contradiction,
    track_scene,
    tracked,
)
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.spread import Workers, spread

REACH = MAX_GAP
"""Frames that an event spans at most."""
_AROUND = 8
"""Frames on either side of a meeting that are chosen again: from there on windows of simulated
movies are as good, and their bound as tight, as the whole movie, also with many answers."""
_TOGETHER = 2 * (_AROUND + REACH - 1) + 1
"""Least number of frames that must fit into memory: windows need as many where they meet."""
_NEAR = 4 * REACH
"""Frames on either side of an event among whose alternatives the best is looked for."""
TOLERANCE = 1e-6
"""Tolerance of the solver by which prices may be below scores."""


def track_steps(
    source: Movie | Detections,
    image: Movie | None = None,
    model: Model | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
    *,
    kinds: EventKinds = EVERYTHING,
    memory: str | float | None = None,
    window: int | None = None,
    client: Any = None,
) -> Steps[Tracking]:
    """Track a movie, in one window where the memory suffices and in several otherwise.

    Parameters
    ----------
    source
        Label movie (see `open_labels`), or a table of detections.
    image, model, annotations, features
        As in `bridgetrack.track`.
    kinds
        What can happen in the movie.
    memory
        Bytes to keep to, or words for them (see `parse_memory`); what the machine has free where
        None.
    window
        Frames of a window; as many as the memory holds where None.
    client
        An executor of ``concurrent.futures`` or a dask client, over which frames and windows are
        spread; this process where None.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used, or the memory is not enough for the smallest windows; the
        message says what is.
    """
    memory = None if memory is None else parse_memory(memory)
    client = Workers.of(client)
    detections = yield from measure(source, image, client)
    labels = source if isinstance(source, Movie) else None
    evidence = yield from gather_evidence(detections, labels, client=client)
    if window is None:
        windows = windows_within(evidence, memory, _TOGETHER)
    else:
        windows = even_windows(detections.geometry.n_frames, window)
    if len(windows) == 1:
        yield begin("Proposing events")
        scene = propose(evidence, labels, annotations, features, kinds)
        return (yield from track_scene(scene, model))
    features = features or default_features()
    model = model or shipped_model(features)
    movie = WholeMovie.of(evidence, labels, features, model, annotations, kinds, windows)
    choice = _Choice(movie)
    yield from _solve(choice, client)
    yield from _mend(choice, client)
    yield begin("Joining tracks")
    return choice.tracking(labels, model)


def near(tracking: Tracking, frame: int) -> Tracking:
    """A tracking around a frame with all events proposed there, chosen or not.

    If the movie was tracked in one window, this is returned unchanged.
    """
    if tracking.windows is None:
        return tracking
    known, model = tracking.scene, tracking.model
    movie = WholeMovie.of(
        known.evidence, known.labels, known.matrix.features, model,
        known.anchored.annotations, known.kinds, [],
    )  # fmt: skip
    frames = movie.around(frame, _NEAR)
    events, scores = movie.proposed(frames)
    # events chosen beyond these frames, or leading there, stay
    chosen = known.hypotheses.take(tracking.solution.chosen)
    free = movie.undecided(movie.slots_of(frames), chosen)
    usable = movie.usable(events, free)
    events, scores, told = events.take(usable), scores[usable], movie.anchored
    told = told.take(np.flatnonzero(usable_with(told, events)))
    scene = Scene.of(None, movie.evidence, events, movie.features, told, movie.kinds, free)
    allowed = scene.constraints.allowed
    solution = solve(scene.problem, scores, allowed)
    margins = margin_bounds(scene.problem, scores, solution, allowed)
    return replace(
        tracking, scene=scene, scores=scores, solution=solution, margins=margins, windows=None
    )


# ---------------------------------------------------------------------- the whole movie


class _Choice:
    """The events chosen so far, unordered, with the prices of all slots, shape (2n,)."""

    def __init__(self, movie: WholeMovie) -> None:
        self.movie, self.prices = movie, np.zeros(len(movie.active))
        self.chosen, self.noted = Chosen.join([]), list[Chosen]()
        # How many events were proposed: only rare ones cover slots of several windows.
        self.hypotheses = int(movie.rare.touching(movie.active).sum())

    def apply(self, part: Part) -> None:
        """Take over the choice of a window, or a new choice around a meeting."""
        again = np.zeros(len(self.prices), dtype=bool)
        again[part.covered] = True
        kept = self.chosen.take(~self.chosen.events.touching(again))
        self.chosen = Chosen.join([kept, part.chosen])
        self.prices[part.slots] = part.prices
        self.noted.append(part.noted)
        self.hypotheses += part.hypotheses

    def choose_again(self, frames: list[int], reach: int, client: Any = None) -> list[int]:
        """Choose again around some frames; those where no choice meets the annotations."""
        known = (self.meeting(frame, reach) for frame in frames)
        parts = spread(mend_meeting, self.movie, known, client)
        stuck = []
        for frame, part in zip(frames, parts, strict=True):
            if part is None:
                stuck.append(frame)
            else:
                self.apply(part)
        return stuck

    def meeting(self, frame: int, reach: int) -> Meeting:
        """The choice and prices around a frame."""
        offsets, events = self.movie.evidence.detections.offsets, self.chosen.events
        frames = self.movie.around(frame, reach + 2 * REACH)
        low, high = offsets[frames.start], offsets[frames.stop]
        named = [((x >= low) & (x < high)).any(axis=1) for x in (events.sources, events.targets)]
        wide = self.movie.around(frame, reach + REACH - 1)
        prices = self.prices[self.movie.rows(wide)]
        return Meeting(frame, reach, events.take(named[0] | named[1]), prices)

    def tracking(self, labels: Movie | None, model: Model) -> Tracking:
        """The tracks, as if all had been chosen at once; refused if they do not meet answers."""
        every = Chosen.join([self.chosen, *self.noted])
        order = every.events.in_order()  # of equal events the first, so the chosen one
        every, chosen = every.take(order), order < len(self.chosen.events)
        scene = self.movie.scene(every.events, labels)
        if (chosen & ~scene.constraints.allowed).any():
            raise explain_contradiction(scene)
        # how much the prices of every chosen event exceed its score
        short = self.chosen.events.incidence(self.movie.active) @ self.prices - self.chosen.scores
        prices, value = self.prices[scene.slots], float(every.scores[chosen].sum())
        nothing = np.broadcast_to(0.0, len(prices))
        one = np.broadcast_to(np.int64(0), len(prices))
        solution = Solution(
            chosen, value, value + float(np.maximum(short, 0.0).sum()), prices, nothing, one
        )
        solution.check(scene.problem, every.scores)
        longest = max(map(len, self.movie.windows))
        report = Windows(len(self.movie.windows), longest, self.hypotheses)
        return tracked(scene, model, every.scores, solution, every.margins, report)


def _solve(choice: _Choice, client: Any) -> Steps[None]:
    """Choose the events of every window for itself."""
    movie = choice.movie
    yield begin("Choosing events")
    try:
        for k, part in enumerate(spread(solve_window, movie, movie.windows, client), 1):
            choice.apply(part)
            yield Progress("Choosing events", k / len(movie.windows))
    except InfeasibleError as error:
        every, _ = movie.proposed(range(movie.n_frames))
        raise explain_contradiction(movie.scene(every)) from error


def _mend(choice: _Choice, client: Any) -> Steps[None]:
    """Choose events around every meeting again, with those of both windows."""
    movie, stuck, reach = choice.movie, list[int](), _AROUND
    apart = min(len(frames) - 1 for frames in movie.windows)
    turns = 1 + 2 * (reach + REACH) // apart  # those of a turn do not reach into each other
    for k in range(turns):
        yield Progress("Joining windows", k / turns)
        stuck += choice.choose_again(movie.meetings[k::turns], reach, client)
    while stuck and reach < movie.n_frames:  # answers that more of the movie is needed to meet
        reach *= 2
        stuck = choice.choose_again(stuck, reach)


# ---------------------------------------------------------------------- a few frames


@dataclass(frozen=True)
class WholeMovie:
    """Data that all windows of a movie share."""

    # the movie, and the measures of its cells
    evidence: Evidence
    cells: CellMeasures
    rare: Events  # skips, false detections, and what annotations name
    # features and weights of scores
    features: FeatureSet
    weights: Array
    # the annotations, and the slot of each, -1 where it has none, shape (A,)
    anchored: Anchored
    answered: Index
    kinds: EventKinds  # kinds of events that occur in the movie
    windows: list[range]  # frames of each; the last frame of one is the first of the next

    @classmethod
    def of(
        cls,
        evidence: Evidence,
        labels: Movie | None,
        features: FeatureSet,
        model: Model,
        annotations: AnnotationSet | None,
        kinds: EventKinds,
        windows: list[range],
    ) -> WholeMovie:
        """Make it from a movie.

        Raises a `ContradictionError` if an annotation names an event of a kind that does not occur.
        """
        annotations = annotations or AnnotationSet(evidence.detections.geometry)
        check_kinds(annotations, kinds)
        anchored = anchor(annotations, evidence.detections, labels)
        cells, rare = describe_cells(evidence), evidence.missed.events
        rare = rare.take(~np.isin(rare.event, list(kinds.absent)))
        if anchored.listed:
            rare = Events.join([rare, required_events(anchored)]).unique()
        known = evidence, cells, rare, features, model.aligned(features), anchored
        return cls(*known, answered_slots(anchored), kinds, windows)

    @property
    def meetings(self) -> list[int]:
        """Frames where windows meet."""
        return [frames.start for frames in self.windows[1:]]

    @property
    def limits(self) -> SolverLimits:
        """When the choice in a window gives up: frames around meetings are chosen twice."""
        return SolverLimits(max_seconds=SolverLimits.max_seconds / (2 * len(self.windows)))

    @cached_property
    def active(self) -> Mask:
        """Slots of the movie, shape (2n,)."""
        return active_slots(self.evidence.detections)

    @property
    def n_frames(self) -> int:
        """How many frames there are."""
        return self.evidence.detections.geometry.n_frames

    def around(self, frame: int, reach: int) -> range:
        """A frame with those up to so far from it."""
        return range(max(frame - reach, 0), min(frame + reach + 1, self.n_frames))

    def slots_of(self, frames: range) -> Mask:
        """Fates and histories that events within some frames decide, shape (2n,)."""
        detections = self.evidence.detections
        offsets, n = detections.offsets, len(detections)
        out = np.zeros(2 * n, dtype=bool)
        out[offsets[frames.start] : offsets[frames.stop - 1]] = True
        out[n + offsets[frames.start + 1] : n + offsets[frames.stop]] = True
        return out & self.active

    def rows(self, frames: range) -> Index:
        """All slots of the cells of some frames, shape (2m,)."""
        detections = self.evidence.detections
        first, stop = detections.offsets[frames.start], detections.offsets[frames.stop]
        return np.r_[first:stop, len(detections) + first : len(detections) + stop]

    def proposed(self, frames: range) -> tuple[Events, Array]:
        """Events that name cells of some frames alone, with an active slot, and their scores."""
        events = events_between(self.evidence, frames, self.rare, kinds=self.kinds)
        covered = events.touching(self.active)
        events = events if covered.all() else events.take(covered)
        matrix = FeatureMatrix(self.evidence, events, self.features, self.cells)
        return events, matrix.scores(self.weights)

    def undecided(self, slots: Mask, chosen: Events) -> Mask:
        """Slots among some that no chosen event ties to others, shape (2n,)."""
        free = np.zeros_like(slots)
        inside = chosen.take(~chosen.touching(self.active & ~slots))
        free[inside.incidence(self.active).indices] = True
        return free

    def usable(self, events: Events, free: Mask) -> Index:
        """Numbers of the events that cover some slots and no other ones."""
        return np.flatnonzero(events.touching(free) & ~events.touching(self.active & ~free))

    def allowed(self, events: Events, slots: Mask) -> Mask:
        """Which events the annotations at some slots allow, shape (E,).

        An annotation that names an event which is not among these says nothing here.
        """
        at = np.flatnonzero((self.answered >= 0) & slots[self.answered])
        if not len(at):
            return np.ones(len(events), dtype=bool)
        local = self.anchored.take(at)
        local = local.take(np.flatnonzero(usable_with(local, events)))
        return compile_constraints(local, events).allowed

    def scene(self, events: Events, labels: Movie | None = None) -> Scene:
        """The whole movie with some of its events."""
        return Scene.of(labels, self.evidence, events, self.features, self.anchored, self.kinds)

    def noted(self, events: Events, scores: Array) -> Chosen:
        """Those of some events at annotated slots, which the result must have as hypotheses."""
        at = np.zeros_like(self.active)
        at[self.answered[self.answered >= 0]] = True
        rows = np.flatnonzero(events.touching(at)) if at.any() else np.zeros(0, dtype=np.int64)
        return Chosen(events.take(rows), scores[rows], np.full(len(rows), np.nan))


@dataclass(frozen=True)
class Chosen:
    """Chosen events with their scores, and lower bounds on their margins."""

    events: Events
    scores: Array
    margins: Array

    @classmethod
    def join(cls, parts: list[Chosen]) -> Chosen:
        """Those of several parts, one after another."""
        return cls(
            Events.join([part.events for part in parts]),
            *(
                np.concatenate([np.zeros(0), *(getattr(part, name) for part in parts)])
                for name in ("scores", "margins")
            ),
        )

    def take(self, rows: Index | Mask | slice) -> Chosen:
        """Some of them."""
        return Chosen(self.events.take(rows), self.scores[rows], self.margins[rows])


@dataclass(frozen=True)
class Part:
    """The result of a window."""

    chosen: Chosen  # the events that cover the slots `covered`
    covered: Index  # slots that were decided, ascending
    # slots that have new prices
    slots: Index
    prices: Array
    noted: Chosen  # events at annotated slots
    hypotheses: int = 0  # how many events but rare ones were proposed for the covered slots


def solve_window(movie: WholeMovie, frames: range) -> Part:
    """Choose the events of a window, which shares no slot with the others.

    Annotations that events beyond it may meet are left to `mend_meeting`.
    """
    slots = movie.slots_of(frames)
    events, scores = movie.proposed(frames)
    noted = movie.noted(events, scores)
    usable = movie.usable(events, slots)
    events, scores = events.take(usable), scores[usable]
    near = np.zeros_like(slots)
    for meeting in {frames.start, frames.stop - 1} & set(movie.meetings):
        near[movie.rows(movie.around(meeting, REACH - 1))] = True
    allowed = movie.allowed(events, slots & ~near)
    problem = Problem(events.covering(slots))
    solution = solve(problem, scores, allowed, movie.limits)
    bounds = margin_bounds(problem, scores, solution, allowed)
    chosen = Chosen(events, scores, bounds).take(solution.chosen)
    where, frequent = np.flatnonzero(slots), int((movie.rare.find(events) < 0).sum())
    return Part(chosen, where, where, solution.duals, noted, frequent)


@dataclass(frozen=True)
class Meeting:
    """A frame where two windows meet, and what is known around it."""

    # events are chosen again up to so many frames from it
    frame: int
    reach: int
    chosen: Events  # chosen events that name a cell of these frames or of those just beyond
    prices: Array  # of the slots of these cells, as `WholeMovie.rows` gives them


def mend_meeting(movie: WholeMovie, meeting: Meeting) -> Part | None:
    """Choose events around a frame again, and set prices there that are feasible for all events.

    None where no choice there meets the annotations.
    """
    inner = movie.around(meeting.frame, meeting.reach)
    wide = movie.around(meeting.frame, meeting.reach + REACH - 1)
    slots = movie.slots_of(inner)
    events, scores = movie.proposed(wide)
    free = movie.undecided(slots, meeting.chosen)
    allowed = movie.allowed(events, movie.slots_of(wide))
    usable = movie.usable(events, free)
    problem = Problem(events.take(usable).covering(free))
    try:
        solution = solve(problem, scores[usable], allowed[usable], movie.limits)
    except InfeasibleError:
        return None
    again = usable[solution.chosen]

    # The prices of slots farther away stay, so that theirs hold as before.
    price = np.zeros(len(slots))
    price[movie.rows(wide)] = meeting.prices
    middle = movie.slots_of(movie.around(meeting.frame, max(meeting.reach - REACH, 1)))
    part, rest = _priced(events, scores, price, middle)
    price[middle] = prices(part, rest, allowed[events.touching(middle)])

    part, rest = _priced(events, scores, price, slots)
    near = np.flatnonzero(events.touching(slots))
    stay = meeting.chosen.take(~meeting.chosen.touching(free) & meeting.chosen.touching(slots))
    held = np.zeros(len(events), dtype=bool)
    held[again] = True
    found = events.find(stay)
    held[found[found >= 0]] = True
    bounds = np.full(len(events), np.nan)
    bounds[near] = _bounds(part, rest, held[near], price[slots], allowed[near])
    where = np.flatnonzero(middle)
    chosen = Chosen(events, scores, bounds).take(again)
    covered, noted = np.flatnonzero(free), movie.noted(events, scores)
    return Part(chosen, covered, where, price[where], noted)


def _priced(events: Events, scores: Array, price: Array, slots: Mask) -> tuple[Problem, Array]:
    """The problem of some slots alone; what events cover elsewhere is paid at its price."""
    near = events.touching(slots)
    part = events.take(near)
    problem = Problem(part.covering(slots))
    return problem, scores[near] - part.incidence(~slots) @ price


def _bounds(problem: Problem, scores: Array, chosen: Mask, price: Array, allowed: Mask) -> Array:
    """Bounds on margins at given prices, shape (H,); see `margin_bounds`."""
    nothing = np.zeros(problem.n_slots)
    whole = Solution(chosen, 0.0, 0.0, price, nothing, nothing.astype(np.int64))
    short = np.maximum(reduced_costs(problem, scores, whole), 0.0) * chosen
    if short.max(initial=0.0) > TOLERANCE:
        count, label, of_column = components(problem.incidence)
        slack = np.bincount(of_column, weights=short, minlength=count)
        whole = replace(whole, slack=slack[label].astype(np.float64), component=label)
    return margin_bounds(problem, scores, whole, allowed)
