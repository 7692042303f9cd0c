"""Track a movie a few frames at a time, so that memory does not grow with its length.

Cells are measured, and how they move is estimated, for the whole movie. Events are proposed,
described and chosen in parts of the movie; then they are chosen again around the frames where parts
meet, farther and farther until nothing is lost there, or little enough. Parts do not need each
other, so a cluster can share them out (see `bridgetrack.spread`).

What that may cost is bounded by the prices of the slots (see `pipeline/window.py`): as every slot
is covered once, all prices together exceed the choice by the reduced costs of the chosen events,
which tell where something may be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import anchor
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import compile_constraints
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InfeasibleError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet, compute_features
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import LAST_RESORT
from bridgetrack.hypotheses.kinds import EVERYTHING, EventKinds
from bridgetrack.inference.margins import smallest_first
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import SolverLimits
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.room import Room
from bridgetrack.pipeline.scene import Scene, check_kinds, measure, propose
from bridgetrack.pipeline.shelves import Shelves
from bridgetrack.pipeline.tracking import (
    Tracking,
    Windows,
    allowed_by,
    explain_contradiction,
    tell_verified,
    track_scene,
)
from bridgetrack.pipeline.window import (
    DOUBTFUL,
    REACH,
    TOLERANCE,
    WholeMovie,
    mend_meeting,
    solve_part,
)
from bridgetrack.progress import Progress, Steps, begin, relayed
from bridgetrack.spread import Here, Workers
from bridgetrack.tracks.build import build_tracks

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FIRST = REACH + 1
"""Frames on either side of a meeting that are chosen again at first."""
_AT_ONCE = 16
"""Meetings that are worked on beside each other; what is known around each lies in memory."""
_NOTHING = 1e-9
"""Share of the objective that is rounding."""


@dataclass(frozen=True)
class InPieces:
    """How a movie is divided, where it is.

    Parameters
    ----------
    memory
        Bytes to keep to; what the machine has free where None.
    window
        Frames of a window; as many as the memory holds where None.
    gap
        Share of the objective that may be lost against the whole movie tracked at once.
    workers
        Who does the work.
    seconds
        How long it may take to choose where many events are equally good; what another choice may
        win is then told as the gap.
    """

    memory: float | None = None
    window: int | None = None
    gap: float = 0.0
    workers: Workers = field(default_factory=Here)
    seconds: float = SolverLimits.max_seconds


def track_movie(
    source: Movie | Detections,
    image: Movie | None = None,
    model: Model | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
    pieces: InPieces | None = None,
    *,
    kinds: EventKinds = EVERYTHING,
) -> Steps[Tracking]:
    """Track a movie, at once where the memory suffices and in windows otherwise.

    Parameters
    ----------
    source, image, model, annotations, features
        See `track_steps`.
    pieces
        What is known of memory, windows and workers.
    kinds
        See `track_steps`.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used, or the memory is not enough for the smallest windows; the
        message says what is.
    """
    pieces = pieces or InPieces()
    detections = yield from measure(source, image, pieces.workers)
    labels = source if isinstance(source, Movie) else None
    evidence = yield from gather_evidence(detections, labels, workers=pieces.workers)
    cuts = _cuts(evidence, pieces)
    if len(cuts) == 1:
        yield begin("Proposing events")
        scene = propose(evidence, labels, annotations, features, kinds)
        limits = SolverLimits(max_seconds=pieces.seconds)
        return (yield from track_scene(scene, model, limits))
    return (
        yield from track_in_windows(
            evidence, labels, model, cuts, annotations, features, pieces, kinds
        )
    )


def _cuts(evidence: Evidence, pieces: InPieces) -> list[range]:
    n_frames = evidence.detections.geometry.n_frames
    if pieces.window is not None:
        return even_windows(n_frames, pieces.window)
    return Room.of(evidence, pieces.memory).windows()


def even_windows(n_frames: int, frames: int) -> list[range]:
    """Windows of at most so many frames, about equally long; each begins where the last ends."""
    count = max(-(-(n_frames - 1) // max(frames - 1, 1)), 1)
    ends = np.linspace(0, n_frames - 1, count + 1).round().astype(int).tolist()
    return [range(a, b + 1) for a, b in zip(ends[:-1], ends[1:], strict=True)]


def track_in_windows(
    evidence: Evidence,
    labels: Movie | None,
    model: Model | None,
    windows: list[range],
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
    pieces: InPieces | None = None,
    kinds: EventKinds = EVERYTHING,
) -> Steps[Tracking]:
    """Track a movie in windows of frames.

    Parameters
    ----------
    evidence, labels
        The movie.
    model
        Weights; the shipped ones where None.
    windows
        Frames of each window; the last frame of one is the first of the next.
    annotations, features, pieces
        See `track_movie`.
    kinds
        What can happen in the movie.

    Raises
    ------
    InputError
        Where appearances or disappearances are ruled out: which of them cannot be spared is known
        of the whole movie only.
    ContradictionError
        Where annotations exclude each other.
    """
    if kinds.absent & LAST_RESORT:
        raise InputError(
            "a movie that is tracked a few frames at a time cannot be without appearances or "
            "disappearances; allow them, or more memory"
        )
    features, pieces = features or default_features(), pieces or InPieces()
    model = model or shipped_model(features)
    annotations = annotations or AnnotationSet(evidence.detections.geometry)
    check_kinds(annotations, kinds)
    anchored = anchor(annotations, evidence.detections, labels)
    meetings = tuple(frames.start for frames in windows[1:])
    # Every frame is chosen in a window, and those around meetings once more.
    limits = SolverLimits(max_seconds=pieces.seconds / (2 * len(windows)))
    weights = model.aligned(features)
    movie = WholeMovie.of(
        evidence, features, weights, anchored, meetings, kinds=kinds, limits=limits
    )
    work = pieces.workers.map(solve_part, movie, windows)
    try:
        parts = yield from relayed(work, partial(Progress, "Choosing events"))
    except InfeasibleError as error:
        raise explain_contradiction(
            propose(evidence, labels, annotations, features, kinds)
        ) from error
    state = Shelves.of(movie, windows, parts)
    del parts  # the shelves have all of them
    yield from _mend(state, movie, windows, pieces)
    yield begin("Joining tracks")
    tracking = _result(state, movie, labels, model, windows)
    scene = tracking.scene
    if (tracking.solution.chosen & ~allowed_by(scene)).any():
        raise explain_contradiction(scene)
    return tracking


def _mend(state: Shelves, movie: WholeMovie, windows: list[range], pieces: InPieces) -> Steps[None]:
    """Choose events around every meeting again, farther where something may be lost there."""
    reach = dict.fromkeys(movie.meetings, _FIRST)
    longest = max(len(frames) for frames in windows)
    if pieces.window is not None:  # else no more frames fit into the memory
        longest = max(longest, 8 * REACH)
    before: dict[int, float] = {}
    torn: dict[int, float] = {}
    open_ = list(movie.meetings)
    while open_:
        stuck: set[int] = set()
        turns = _turns(open_, reach)
        for k, at in enumerate(turns):
            todo = [state.meeting(movie, m, reach[m]) for m in at]
            work = pieces.workers.map(mend_meeting, movie, todo)
            found = yield from relayed(work, partial(_joined, k, len(turns)))
            for m, part in zip(at, found, strict=True):
                if part is None:
                    stuck.add(m)
                else:
                    state.apply(part)
                    torn[m] = part.torn
        state.reach = max(state.reach, *(reach[m] for m in open_))
        wrong = bool(stuck) or state.wrong(movie)
        if state.gap <= max(pieces.gap, _NOTHING) * abs(state.value) and not wrong:
            return
        lost = {m: state.lost(movie, m, reach[m]) for m in open_}
        # Where the relaxation is torn, or it does not become less, more frames do not help.
        less = {
            m
            for m in open_
            if 1.01 * torn.get(m, 0.0) + TOLERANCE < lost[m] < 0.99 * before.get(m, np.inf)
        }
        open_ = [m for m in open_ if wrong or m in less]
        before |= lost
        for m in open_:
            reach[m] *= 2
        open_ = [m for m in open_ if 2 * (reach[m] + REACH) + 1 <= longest]


def _joined(turn: int, turns: int, share: float) -> Progress:
    """Where joining stands."""
    return Progress("Joining windows", (turn + share) / turns)


def _turns(meetings: list[int], reach: dict[int, int]) -> list[list[int]]:
    """Meetings that do not reach into each other, some after others and few at a time."""
    turns, left = [], meetings
    while left:
        now: list[int] = []
        for m in left:
            apart = not now or m - now[-1] > reach[m] + reach[now[-1]] + 2 * REACH
            if apart and len(now) < _AT_ONCE:
                now.append(m)
        turns.append(now)
        left = [m for m in left if m not in now]
    return turns


def _result(
    state: Shelves, movie: WholeMovie, labels: Movie | None, model: Model, windows: list[range]
) -> Tracking:
    """The tracks of all windows, as if they had been chosen at once."""
    evidence, anchored = movie.evidence, movie.anchored
    every, chosen = state.in_order()
    events, scores, margins = every.events, every.scores, every.margins
    slots = np.concatenate([np.arange(some.start, some.stop) for some in state.active])
    prices = state.prices[slots]
    value = float(scores[chosen].sum())
    nothing, one = np.broadcast_to(0.0, len(slots)), np.broadcast_to(np.int64(0), len(slots))
    solution = Solution(chosen, value, value + state.gap, prices, nothing, one)
    problem = Problem(events.covering(movie.active))
    solution.check(problem, scores)
    matrix = compute_features(evidence, events, movie.features, on_demand=True)
    constraints = compile_constraints(anchored, events)
    scene = Scene(
        labels, evidence, events, matrix, problem, slots, anchored, constraints, movie.kinds
    )
    known = np.flatnonzero(np.isfinite(every.exact))
    doubtful = known[smallest_first(every.exact[known], known)][:DOUBTFUL]
    margins[doubtful] = every.exact[doubtful]
    last = margins[doubtful].max(initial=-np.inf) if len(doubtful) == DOUBTFUL else np.inf
    overlooked = int((chosen & np.isnan(every.exact) & (margins < last)).sum())
    tracks = build_tracks(evidence.detections, events, chosen, scores, margins)
    tracks = tell_verified(tracks, scene, chosen)
    longest = max(len(frames) for frames in windows)
    overlap = 2 * state.reach
    report = Windows(len(windows), longest, overlap, state.hypotheses, doubtful, overlooked)
    return Tracking(scene, model, scores, solution, margins, tracks, report)
