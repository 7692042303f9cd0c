"""Track a movie a few frames at a time, so that memory does not grow with its length.

Cells are measured, and how they move is estimated, for the whole movie: that takes little. Events
are proposed, described and chosen in windows of frames. Of each window everything is settled that
happens before its last few frames; these are decided again by the next window, which must cover
what the settled events leave.

What that may cost is bounded by the prices of the slots (the duals of the relaxations). Where the
price of its slots is at least the score of every event, no choice of events of the whole movie is
worth more than all prices together. Prices of two windows may leave an event across their border
too cheap; then the price of one of its slots is raised, and the bound with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import anchor
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import compile_constraints
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import compute_features
from bridgetrack.features.view import describe_cells
from bridgetrack.hypotheses.events import Event, Events, active_slots
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import events_between, rare_events
from bridgetrack.inference.margins import margin_bounds, smallest_margins
from bridgetrack.inference.problem import Problem, Solution
from bridgetrack.inference.solve import solve_steps
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import Scene, measure, propose
from bridgetrack.pipeline.tracking import Tracking, Windows, track_scene
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.tracks.build import build_tracks

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Mask = NDArray[np.bool_]

OVERLAP = 6
"""Frames of a window that the next one decides again; more than a skip bridges."""
_PER_HYPOTHESIS, _SETTLED, _RESULT, _STILL = 650.0, 150.0, 1000.0, 8e7
"""Bytes that a hypothesis of a window takes, a cell whose events are settled, a cell in the tables
of the result, and what is still to be loaded; see benchmarks/memory.py."""
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_DOUBTFUL, _TRIES = 5, 30
"""Events with the smallest margins that are told, and about how many margins are made exact."""
_TOLERANCE = 1e-6
"""How far the solver lets prices stay below scores."""


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


def track_within(
    source: Movie | Detections,
    memory: float,
    image: Movie | None = None,
    model: Model | None = None,
) -> Steps[Tracking]:
    """Track a movie within so many bytes: at once where that suffices, otherwise in windows.

    Raises
    ------
    BridgetrackError
        Where the memory is not enough for the smallest windows; the message says what is.
    """
    detections = yield from measure(source, image)
    labels = source if isinstance(source, Movie) else None
    evidence = yield from gather_evidence(detections, labels)
    size = _cells_at_once(evidence, memory)
    if size >= len(detections):
        yield Progress("Proposing events", 0.0)
        return (yield from track_scene(propose(evidence, labels), model))
    return (yield from track_in_windows(evidence, labels, model, _cut(detections, size, memory)))


def track_in_windows(
    evidence: Evidence, labels: Movie | None, model: Model | None, windows: list[range]
) -> Steps[Tracking]:
    """Track a movie in windows of frames.

    Parameters
    ----------
    evidence, labels
        The movie.
    model
        Weights; the shipped ones where None.
    windows
        Frames of each window; the first ones of a window are the last ones of that before it.
    """
    features = default_features()
    model = model or shipped_model(features)
    weights, cells = model.aligned(features), describe_cells(evidence)
    rare, state = rare_events(evidence), _State.of(evidence.detections, len(windows))
    for k, frames in enumerate(windows):
        events = events_between(evidence, frames, rare)
        matrix = compute_features(evidence, events, features, on_demand=True, cells=cells)
        scores = matrix.scores(weights)
        del matrix
        settled = windows[k + 1].start if k + 1 < len(windows) else frames.stop
        work = state.solve(events, scores, frames, settled)
        yield from relayed(work, partial(_progress, k, len(windows)))
    yield Progress("Joining tracks", 0.0)
    return state.result(evidence, labels, model, windows)


def _progress(window: int, count: int, share: float) -> Progress:
    return Progress("Choosing events", (window + share) / count)


@dataclass
class _State:
    """What is settled so far; slots are numbered as in `Events`."""

    detections: Detections
    active: Mask  # slots of the movie, shape (2n,)
    covered: Mask  # those that settled events cover, shape (2n,)
    duals: Array  # prices, of the last window that had the slot, shape (2n,)
    events: list[Events] = field(default_factory=list)
    scores: list[Array] = field(default_factory=list)
    margins: list[Array] = field(default_factory=list)
    exact: list[Array] = field(default_factory=list)  # exact margins of a few, NaN for others
    waiting: list[tuple[Events, Array]] = field(default_factory=list)
    hypotheses: int = 0
    tries: int = _TRIES  # margins of a window that are made exact at most

    @classmethod
    def of(cls, detections: Detections, windows: int) -> _State:
        active = active_slots(detections)
        state = cls(detections, active, np.zeros_like(active), np.zeros(len(active)))
        state.tries = max(_TRIES // windows, 3)
        return state

    def solve(
        self, events: Events, scores: Array, frames: range, settled: int
    ) -> Generator[float, None, None]:
        """Choose events of a window, and settle those that begin before a frame."""
        slots = self._slots_of(frames) & ~self.covered
        begins = self._begins(events)
        last = settled == frames.stop
        # What the window before has settled is proposed again where it has a fate here.
        early = (begins >= frames.start) | (frames.start == 0)
        early &= last | (begins < settled)
        self.hypotheses += int((early & events.touching(self.active)).sum())
        usable = np.flatnonzero(events.touching(slots) & ~events.touching(self.covered))
        problem = Problem(events.take(usable).covering(slots))
        solution: Solution = yield from solve_steps(problem, scores[usable])
        self.duals[np.flatnonzero(slots)] = solution.duals
        bounds = margin_bounds(problem, scores[usable], solution)
        bounds[~early[usable]] = np.nan
        found = smallest_margins(
            problem, scores[usable], solution, bounds, _DOUBTFUL, tries=self.tries
        )
        exact = np.full(len(usable), np.nan)
        exact[list(found)] = list(found.values())
        chosen = np.flatnonzero(solution.chosen & early[usable])
        picked = events.take(usable[chosen])
        self.events.append(picked)
        self.scores.append(scores[usable[chosen]])
        self.margins.append(bounds[chosen])
        self.exact.append(exact[chosen])
        self.covered |= np.asarray(picked.incidence(self.active).sum(axis=0)).ravel() > 0
        self._raise(events.take(early), scores[early], last)

    def _raise(self, events: Events, scores: Array, last: bool) -> None:
        """Raise prices where an event all of whose slots are settled is worth more than they.

        Others wait until the next window has settled them.
        """
        parts = [*self.waiting, (events, scores)]
        events = Events.join([part for part, _ in parts])
        scores = np.concatenate([part for _, part in parts])
        ready = ~events.touching(self.active & ~self.covered)
        self.waiting = [] if last else [(events.take(~ready), scores[~ready])]
        incidence = events.take(ready).incidence(self.active)
        short = scores[ready] - incidence @ self.duals
        rows = np.flatnonzero((short > _TOLERANCE) & (np.diff(incidence.indptr) > 0))
        first = incidence.indices[incidence.indptr[rows]]
        more = np.zeros(len(self.duals))
        np.maximum.at(more, first, short[rows])
        self.duals += more

    def result(
        self, evidence: Evidence, labels: Movie | None, model: Model, windows: list[range]
    ) -> Tracking:
        """The tracks of all windows, as if they had been chosen at once."""
        events = Events.join(self.events)
        order = np.lexsort(np.column_stack([events.event, events.sources, events.targets]).T[::-1])
        events = events.take(order)
        scores, margins, exact = (
            np.concatenate(part)[order] for part in (self.scores, self.margins, self.exact)
        )
        chosen = np.ones(len(events), dtype=bool)
        slots = np.flatnonzero(self.active)
        value, bound = float(scores.sum()), float(self.duals[slots].sum())
        nothing = np.zeros(len(slots))
        solution = Solution(
            chosen, value, max(value, bound), self.duals[slots], nothing, nothing.astype(np.int64)
        )
        problem = Problem(events.covering(self.active))
        solution.check(problem, scores)
        anchored = anchor(AnnotationSet(self.detections.geometry), self.detections, labels)
        matrix = compute_features(evidence, events, default_features(), on_demand=True)
        constraints = compile_constraints(anchored, events)
        scene = Scene(labels, evidence, events, matrix, problem, slots, anchored, constraints)
        tracks = build_tracks(self.detections, events, chosen, scores, margins)
        known = np.flatnonzero(np.isfinite(exact))
        doubtful = known[np.argsort(exact[known], kind="stable")][:_DOUBTFUL]
        margins = margins.copy()
        margins[doubtful] = exact[doubtful]
        overlap = windows[0].stop - windows[1].start if len(windows) > 1 else 0
        longest = max(len(frames) for frames in windows)
        report = Windows(len(windows), longest, overlap, self.hypotheses, doubtful)
        return Tracking(scene, model, scores, solution, margins, tracks, report)

    def _slots_of(self, frames: range) -> Mask:
        """Fates and histories that events within some frames can decide, shape (2n,)."""
        offsets, n = self.detections.offsets, len(self.detections)
        first, second = offsets[frames.start], offsets[frames.start + 1]
        before_last, stop = offsets[frames.stop - 1], offsets[frames.stop]
        out = np.zeros(2 * n, dtype=bool)
        out[first:before_last] = True
        out[n + second : n + stop] = True
        return out & self.active

    def _begins(self, events: Events) -> Index:
        """The frame whose fates an event decides, that before for what only has histories."""
        frame = np.append(self.detections.frame, 0)
        begins = frame[events.sources[:, 0]]
        alone = events.event == Event.APPEAR
        begins = np.where(alone, frame[events.targets[:, 0]] - 1, begins)
        return np.asarray(begins - (events.event == Event.FALSE), dtype=np.int64)


def _cells_at_once(evidence: Evidence, memory: float) -> int:
    """How many cells a window may have."""
    detections = evidence.detections
    counts = np.diff(detections.offsets)
    if len(counts) < 2:
        return len(detections)
    t = min(int(np.argmax(counts)), len(counts) - 2)
    few = events_between(evidence, range(t, t + 2), Events.join([]))
    each = max(len(few) / max(int(counts[t]), 1), 1.0)
    left = memory - _resident() - _STILL
    if left < _RESULT * len(detections):
        least = memory - left + _RESULT * len(detections)
        raise _too_little(memory, least, f"the tables of {len(detections):,} cells")
    return int((left - _SETTLED * len(detections)) / (each * _PER_HYPOTHESIS))


def _cut(detections: Detections, size: int, memory: float) -> list[range]:
    """Windows of at most `size` cells that overlap.

    Raises
    ------
    BridgetrackError
        Where they would be too short.
    """
    offsets, n_frames = detections.offsets, detections.geometry.n_frames
    windows: list[range] = []
    start = 0
    while not windows or windows[-1].stop < n_frames:
        room = int(offsets[start]) + size
        stop = min(int(np.searchsorted(offsets, room, side="right")) - 1, n_frames)
        if stop < n_frames and stop - start < 2 * OVERLAP:
            least = int(offsets[min(start + 2 * OVERLAP, n_frames)] - offsets[start])
            more = (least - size) * 15 * _PER_HYPOTHESIS
            raise _too_little(memory, memory + more, f"{2 * OVERLAP} frames at a time")
        windows.append(range(start, stop))
        start = stop - OVERLAP
    return windows


def _too_little(memory: float, least: float, what: str) -> BridgetrackError:
    enough = f"{np.ceil(least / 1e7) / 100:g}GB"
    return BridgetrackError(
        f"{memory / 1e9:.2g} GB are not enough for {what}; about {enough} are: "
        f"give --memory {enough}"
    )


def _resident() -> float:
    """Bytes that this process holds now; a guess where the system does not say."""
    with suppress(OSError, ValueError, AttributeError):
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return float(pages * os.sysconf("SC_PAGE_SIZE"))
    return 4e8
