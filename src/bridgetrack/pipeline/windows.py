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

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import anchor
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import compile_constraints
from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackError, InfeasibleError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet, compute_features
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds, Events
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import LAST_RESORT, events_between
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.relax import SolverLimits
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import Scene, check_kinds, measure, propose
from bridgetrack.pipeline.tracking import (
    Tracking,
    Windows,
    allowed_by,
    explain_contradiction,
    tell_verified,
    track_scene,
)
from bridgetrack.pipeline.window import (
    REACH,
    TOLERANCE,
    Chosen,
    Meeting,
    Part,
    WholeMovie,
    mend_meeting,
    solve_part,
)
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.spread import spread
from bridgetrack.tracks.build import build_tracks

_FIRST = REACH + 1
"""Frames on either side of a meeting that are chosen again at first."""
_AT_ONCE = 16
"""Meetings that are worked on beside each other; what is known around each lies in memory."""
_NOTHING = 1e-9
"""Share of the objective that is rounding."""
_PROGRAM, _PER_CELL, _PER_HYPOTHESIS = 3.2e8, 1000.0, 400.0
"""Bytes that the program takes; a cell in tables and evidence; and a hypothesis while it is chosen.
See benchmarks/memory.py."""
_SHORTEST = 2 * (2 * REACH + 1)
"""Frames that a window must hold at least."""
_USED = 0.8
"""Share of the free memory that is used."""
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def parse_memory(text: str) -> float:
    """Bytes, from words such as ``"4GB"`` or ``"800 MB"``.

    Raises
    ------
    InputError
        Where it is no amount of memory.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kmgt]?)i?b?\s*", text.lower())
    if found is None or not float(found[1]):
        raise InputError(f"{text!r} is no amount of memory; give one such as 4GB or 800MB")
    return float(found[1]) * _UNITS[found[2]]


def track_steps(
    source: Movie | Detections,
    image: Movie | None = None,
    model: Model | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
    *,
    kinds: EventKinds = EVERYTHING,
    memory: float | None = None,
    window: int | None = None,
    client: Any = None,
) -> Steps[Tracking]:
    """Track a movie, at once where the memory suffices and in windows otherwise.

    Parameters
    ----------
    source
        Label movie (see `open_labels`), or a table of detections.
    image, model, annotations, features
        As in `bridgetrack.track`.
    kinds
        What can happen in the movie.
    memory
        Bytes to keep to; what the machine has free where None.
    window
        Frames of a window; as many as the memory holds where None.
    client
        A dask client, over whose cluster frames and windows are spread; this process where None.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used, or the memory is not enough for the smallest windows; the
        message says what is.
    """
    detections = yield from measure(source, image, client)
    labels = source if isinstance(source, Movie) else None
    evidence = yield from gather_evidence(detections, labels, client=client)
    if window is None:
        cuts, longest = windows_within(evidence, memory), None
    else:
        cuts, longest = even_windows(detections.geometry.n_frames, window), 8 * REACH
    if len(cuts) == 1:
        yield begin("Proposing events")
        scene = propose(evidence, labels, annotations, features, kinds)
        return (yield from track_scene(scene, model))
    work = track_in_windows(
        evidence, labels, model, cuts, annotations, features, kinds,
        longest=longest, client=client,
    )  # fmt: skip
    return (yield from work)


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
    kinds: EventKinds = EVERYTHING,
    *,
    longest: int | None = None,
    client: Any = None,
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
    annotations, features, kinds, client
        See `track_steps`.
    longest
        Frames that may be chosen again at once where windows meet; at least those of a window.

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
    features = features or default_features()
    model = model or shipped_model(features)
    annotations = annotations or AnnotationSet(evidence.detections.geometry)
    check_kinds(annotations, kinds)
    anchored = anchor(annotations, evidence.detections, labels)
    meetings = tuple(frames.start for frames in windows[1:])
    # Every frame is chosen in a window, and those around meetings once more.
    limits = SolverLimits(max_seconds=SolverLimits.max_seconds / (2 * len(windows)))
    weights = model.aligned(features)
    movie = WholeMovie.of(
        evidence, features, weights, anchored, meetings, kinds=kinds, limits=limits
    )
    parts = []
    yield begin("Choosing events")
    try:
        for part in spread(solve_part, movie, windows, client):
            parts.append(part)
            yield Progress("Choosing events", len(parts) / len(windows))
    except InfeasibleError as error:
        raise explain_contradiction(
            propose(evidence, labels, annotations, features, kinds)
        ) from error
    state = _State.of(movie, parts)
    most = max(longest or 0, *(len(frames) for frames in windows))
    yield from _mend(state, movie, most, client)
    yield begin("Joining tracks")
    tracking = _result(state, movie, labels, model, windows)
    scene = tracking.scene
    if (tracking.solution.chosen & ~allowed_by(scene)).any():
        raise explain_contradiction(scene)
    return tracking


def windows_within(evidence: Evidence, memory: float | None = None) -> list[range]:
    """As few windows as the memory allows (None: what is free); each begins where the last ends.

    Raises
    ------
    BridgetrackError
        Where they would be too short.
    """
    asked = memory is not None
    memory = free_memory() if memory is None else memory
    detections = evidence.detections
    offsets, n_frames = detections.offsets, detections.geometry.n_frames
    tables, per_cell = _bytes_needed(evidence)
    if tables + per_cell * len(detections) <= memory:
        return [range(n_frames)]
    if tables >= memory:
        raise _too_little(memory, tables, f"the tables of {len(detections):,} cells", asked)
    size = int((memory - tables) / per_cell)
    found: list[range] = []
    start = 0
    while start < n_frames - 1:
        room = int(offsets[start]) + size
        stop = min(int(np.searchsorted(offsets, room, side="right")) - 1, n_frames)
        if stop < n_frames and stop - start < _SHORTEST:
            least = int(offsets[min(start + _SHORTEST, n_frames)] - offsets[start])
            what = f"{_SHORTEST} frames at a time"
            raise _too_little(memory, tables + per_cell * least, what, asked)
        found.append(range(start, stop))
        start = stop - 1
    # The rest may be too short to stand alone.
    if len(found) > 1 and len(found[-1]) < _SHORTEST:
        middle = (found[-2].start + found[-1].stop) // 2
        found[-2:] = [range(found[-2].start, middle + 1), range(middle, n_frames)]
    return found


def _bytes_needed(evidence: Evidence) -> tuple[float, float]:
    """Bytes for the program and its tables, and for every cell of a window."""
    counts = np.diff(evidence.detections.offsets)
    hypotheses = 1.0
    if len(counts) > 1:  # where there are the most cells
        t = min(int(np.argmax(counts)), len(counts) - 2)
        few = events_between(evidence, range(t, t + 2), Events.join([]))
        hypotheses = max(len(few) / max(int(counts[t]), 1), 1.0)
    return _PROGRAM + _PER_CELL * len(evidence.detections), _PER_HYPOTHESIS * hypotheses


def _too_little(memory: float, least: float, what: str, asked: bool) -> BridgetrackError:
    enough = f"{np.ceil(1.1 * least / 1e7) / 100:g}GB"
    here = f"{memory / 1e9:.2g} GB"
    if asked:
        return BridgetrackError(
            f"{here} are not enough for {what}; about {enough} are: give --memory {enough}"
        )
    return BridgetrackError(
        f"this machine has {here} free, which are not enough for {what}; about {enough} are: "
        "close other programs, take a larger machine or a part of the movie"
    )


def free_memory() -> float:
    """Bytes that may be used here; a lot where the system does not say."""
    found = [np.inf]
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found.append(1024 * float(text.split("MemAvailable:")[1].split()[0]))
    if not np.isfinite(min(found)):
        with suppress(OSError, ValueError, AttributeError):
            found.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    return max(_USED * min(found), 0.0)


@dataclass
class _State:
    """What is chosen so far, in no order, with the prices of all slots, shape (2n,)."""

    movie: WholeMovie
    chosen: Chosen
    prices: Array
    noted: list[Chosen] = field(default_factory=list)
    hypotheses: int = 0
    reach: int = 0

    @classmethod
    def of(cls, movie: WholeMovie, parts: list[Part]) -> _State:
        """From the parts of a movie."""
        prices = np.zeros(len(movie.active))
        for part in parts:
            prices[part.slots] = part.prices
        # Only rare events cover slots of several parts.
        rare = int(movie.rare.touching(movie.active).sum())
        count = rare + sum(part.hypotheses for part in parts)
        chosen = Chosen.join([part.chosen for part in parts])
        return cls(movie, chosen, prices, [part.noted for part in parts], count)

    def apply(self, part: Part) -> None:
        """Take over what was chosen again."""
        again = np.zeros(len(self.prices), dtype=bool)
        again[part.covered] = True
        kept = self.chosen.take(~self.chosen.events.touching(again))
        self.chosen = Chosen.join([kept, part.chosen])
        self.prices[part.slots] = part.prices
        self.noted.append(part.noted)

    @property
    def short(self) -> Array:
        """How much the prices of every chosen event exceed its score."""
        priced = self.chosen.events.incidence(self.movie.active) @ self.prices
        return np.asarray(np.maximum(priced - self.chosen.scores, 0.0))

    def meeting(self, frame: int, reach: int) -> Meeting:
        """What is known around a frame."""
        offsets, events = self.movie.evidence.detections.offsets, self.chosen.events
        frames = self.movie.around(frame, reach + 2 * REACH)
        low, high = offsets[frames.start], offsets[frames.stop]
        named = [((x >= low) & (x < high)).any(axis=1) for x in (events.sources, events.targets)]
        wide = self.movie.around(frame, reach + REACH - 1)
        prices = self.prices[self.movie.rows(wide)]
        return Meeting(frame, reach, events.take(named[0] | named[1]), prices)

    @property
    def wrong(self) -> bool:
        """Whether some annotation is not met yet."""
        if not self.movie.anchored.listed:
            return False
        every, chosen = self.in_order()
        forbidden = compile_constraints(self.movie.anchored, every.events).forbidden
        return bool(chosen[forbidden].any())

    def in_order(self) -> tuple[Chosen, Mask]:
        """The chosen events with those that annotations speak of, sorted, and which are chosen."""
        every = Chosen.join([self.chosen, *self.noted])
        order = every.events.in_order()  # of equal events the first, so the chosen one
        return every.take(order), order < len(self.chosen.events)


def _mend(state: _State, movie: WholeMovie, longest: int, client: Any) -> Steps[None]:
    """Choose events around every meeting again, farther where something may be lost there."""
    reach = dict.fromkeys(movie.meetings, _FIRST)
    before: dict[int, float] = {}
    open_ = list(movie.meetings)
    while open_:
        stuck = False
        turns = _turns(open_, reach)
        for k, at in enumerate(turns):
            yield Progress("Joining windows", k / len(turns))
            known = [state.meeting(m, reach[m]) for m in at]
            for part in spread(mend_meeting, movie, known, client):
                if part is None:
                    stuck = True
                else:
                    state.apply(part)
        state.reach = max(state.reach, *(reach[m] for m in open_))
        wrong = stuck or state.wrong
        short, events = state.short, state.chosen.events
        if short.sum() <= _NOTHING * abs(state.chosen.scores.sum()) and not wrong:
            return
        near = {m: events.touching(movie.slots_of(movie.around(m, reach[m]))) for m in open_}
        lost = {m: float(short[near[m]].sum()) for m in open_}
        # Where it does not become less, more frames do not help.
        less = {m for m in open_ if TOLERANCE < lost[m] < 0.99 * before.get(m, np.inf)}
        open_ = [m for m in open_ if wrong or m in less]
        before |= lost
        for m in open_:
            reach[m] *= 2
        open_ = [m for m in open_ if 2 * (reach[m] + REACH) + 1 <= longest]


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
    state: _State, movie: WholeMovie, labels: Movie | None, model: Model, windows: list[range]
) -> Tracking:
    """The tracks of all windows, as if they had been chosen at once."""
    evidence, anchored = movie.evidence, movie.anchored
    every, chosen = state.in_order()
    events, scores, margins = every.events, every.scores, every.margins
    slots = np.flatnonzero(movie.active)
    prices = state.prices[slots]
    value = float(scores[chosen].sum())
    nothing, one = np.broadcast_to(0.0, len(slots)), np.broadcast_to(np.int64(0), len(slots))
    solution = Solution(chosen, value, value + float(state.short.sum()), prices, nothing, one)
    problem = Problem(events.covering(movie.active))
    solution.check(problem, scores)
    matrix = compute_features(evidence, events, movie.features)
    constraints = compile_constraints(anchored, events)
    scene = Scene(
        labels, evidence, events, matrix, problem, slots, anchored, constraints, movie.kinds
    )
    tracks = build_tracks(evidence.detections, events, chosen, scores, margins)
    tracks = tell_verified(tracks, scene, chosen)
    longest = max(len(frames) for frames in windows)
    overlap = 2 * state.reach
    report = Windows(len(windows), longest, overlap, state.hypotheses)
    return Tracking(scene, model, scores, solution, margins, tracks, report)
