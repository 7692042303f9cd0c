"""Track a movie in windows of frames, so that memory does not grow with its length.

Cells are measured, and how they move is estimated, for the whole movie. A short movie is one
window. Otherwise events are proposed, described and chosen in windows that meet in one frame; then
they are chosen again around these frames. Windows do not need each other, so any executor can
share them out (see `bridgetrack.spread`).

What that may cost is bounded by the prices of the slots (see `pipeline/window.py`): as every slot
is covered once, all prices together exceed the choice by the reduced costs of the chosen events.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackError, InfeasibleError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds, Events
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import events_between
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.solve import solve
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import measure, propose
from bridgetrack.pipeline.tracking import (
    Tracking,
    Windows,
    explain_contradiction,
    track_scene,
    tracked,
)
from bridgetrack.pipeline.window import (
    REACH,
    Chosen,
    Meeting,
    Part,
    WholeMovie,
    mend_meeting,
    solve_window,
)
from bridgetrack.progress import Progress, Steps, begin
from bridgetrack.spread import spread

_AROUND = 8
"""Frames on either side of a meeting that are chosen again: from there on windows of simulated
movies are as good, and their bound as tight, as the whole movie, also with many answers."""
_NEAR = 4 * REACH
"""Frames on either side of an event among whose alternatives the best is looked for."""
_PROGRAM, _PER_CELL, _PER_HYPOTHESIS = 3.2e8, 1000.0, 400.0
"""Bytes that the program takes; a cell in tables and evidence; and a hypothesis while it is chosen.
See benchmarks/memory.py."""
_TOGETHER = 2 * (_AROUND + REACH - 1) + 1
"""Frames that memory must hold at least, as they are known together where windows meet."""
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
    memory = parse_memory(memory) if isinstance(memory, str) else memory
    detections = yield from measure(source, image, client)
    labels = source if isinstance(source, Movie) else None
    evidence = yield from gather_evidence(detections, labels, client=client)
    if window is None:
        windows = windows_within(evidence, memory)
    else:
        windows = even_windows(detections.geometry.n_frames, window)
    if len(windows) == 1:
        yield begin("Proposing events")
        scene = propose(evidence, labels, annotations, features, kinds)
        return (yield from track_scene(scene, model))
    features = features or default_features()
    model = model or shipped_model(features)
    movie = WholeMovie.of(evidence, labels, features, model, annotations, kinds, windows)
    choice = _Choice.of(movie, (yield from _solved(movie, client)))
    yield from _mend(choice, client)
    yield begin("Joining tracks")
    return choice.tracking(labels, model)


def even_windows(n_frames: int, frames: int) -> list[range]:
    """Windows of at most so many frames, about equally long; each begins where the last ends."""
    count = max(-(-(n_frames - 1) // max(frames - 1, 1)), 1)
    return _between(np.linspace(0, n_frames - 1, count + 1).round().astype(int).tolist())


def _between(ends: list[int]) -> list[range]:
    return [range(a, b + 1) for a, b in pairwise(ends)]


def windows_within(evidence: Evidence, memory: float | None = None) -> list[range]:
    """As few windows as the memory allows (None: what is free), of about as many cells each.

    Raises
    ------
    BridgetrackError
        Where it is too little.
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
    few = min(_TOGETHER, n_frames)
    least = tables + per_cell * float((offsets[few:] - offsets[:-few]).max())
    if least > memory:
        raise _too_little(memory, least, f"{few} frames at a time", asked)
    # Windows end with a frame, and so hold some cells more than their share.
    room = (memory - tables) / per_cell - float(np.diff(offsets).max())
    shares = np.linspace(0, len(detections), int(np.ceil(len(detections) / room)) + 1)[1:-1]
    return _between([0, *np.searchsorted(offsets, shares).tolist(), n_frames - 1])


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
    found = np.inf
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        found = 1024 * float(text.split("MemAvailable:")[1].split()[0])
    if not np.isfinite(found):
        with suppress(OSError, ValueError, AttributeError):
            found = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return _USED * found


def _solved(movie: WholeMovie, client: Any) -> Steps[list[Part]]:
    """What is chosen in every window for itself."""
    parts: list[Part] = []
    yield begin("Choosing events")
    try:
        for part in spread(solve_window, movie, movie.windows, client):
            parts.append(part)
            yield Progress("Choosing events", len(parts) / len(movie.windows))
    except InfeasibleError as error:
        every, _ = movie.proposed(range(movie.n_frames))
        raise explain_contradiction(movie.scene(every)) from error
    return parts


@dataclass
class _Choice:
    """What is chosen so far, in no order, with the prices of all slots, shape (2n,)."""

    movie: WholeMovie
    chosen: Chosen
    prices: Array
    noted: list[Chosen]
    hypotheses: int

    @classmethod
    def of(cls, movie: WholeMovie, parts: list[Part]) -> _Choice:
        """Of the windows of a movie."""
        prices = np.zeros(len(movie.active))
        for part in parts:
            prices[part.slots] = part.prices
        # Only rare events cover slots of several windows.
        rare = int(movie.rare.touching(movie.active).sum())
        count = rare + sum(part.hypotheses for part in parts)
        chosen = Chosen.join([part.chosen for part in parts])
        return cls(movie, chosen, prices, [part.noted for part in parts], count)

    def applied(self, part: Part | None, frame: int) -> list[int]:
        """Take over what was chosen again around a frame; the frame where nothing was."""
        if part is None:
            return [frame]
        again = np.zeros(len(self.prices), dtype=bool)
        again[part.covered] = True
        kept = self.chosen.take(~self.chosen.events.touching(again))
        self.chosen = Chosen.join([kept, part.chosen])
        self.prices[part.slots] = part.prices
        self.noted.append(part.noted)
        return []

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

    def in_order(self) -> tuple[Chosen, Mask]:
        """The chosen events with those that annotations speak of, sorted, and which are chosen."""
        every = Chosen.join([self.chosen, *self.noted])
        order = every.events.in_order()  # of equal events the first, so the chosen one
        return every.take(order), order < len(self.chosen.events)

    def tracking(self, labels: Movie | None, model: Model) -> Tracking:
        """The tracks, as if all had been chosen at once.

        Raises
        ------
        ContradictionError
            Where annotations are not met.
        """
        every, chosen = self.in_order()
        scene = replace(self.movie.scene(every.events), labels=labels)
        if (chosen & ~scene.constraints.allowed).any():
            raise explain_contradiction(scene)
        prices, value = self.prices[scene.slots], float(every.scores[chosen].sum())
        nothing = np.broadcast_to(0.0, len(prices))
        one = np.broadcast_to(np.int64(0), len(prices))
        solution = Solution(chosen, value, value + float(self.short.sum()), prices, nothing, one)
        solution.check(scene.problem, every.scores)
        longest = max(map(len, self.movie.windows))
        report = Windows(len(self.movie.windows), longest, 2 * _AROUND, self.hypotheses)
        result = tracked(scene, model, every.scores, solution, every.margins)
        return replace(result, windows=report)


def _mend(choice: _Choice, client: Any) -> Steps[None]:
    """Choose events around every meeting again, with those of both windows."""
    movie, stuck = choice.movie, list[int]()
    apart = min(len(frames) - 1 for frames in movie.windows)
    turns = 1 + 2 * (_AROUND + REACH) // apart  # those of a turn do not reach into each other
    for k in range(turns):
        yield Progress("Joining windows", k / turns)
        some = movie.meetings[k::turns]
        known = (choice.meeting(frame, _AROUND) for frame in some)
        for frame, part in zip(some, spread(mend_meeting, movie, known, client), strict=True):
            stuck += choice.applied(part, frame)
    reach = _AROUND
    while stuck and reach < movie.n_frames:  # answers that more of the movie is needed to meet
        reach, again = 2 * reach, list[int]()
        for frame in stuck:
            again += choice.applied(mend_meeting(movie, choice.meeting(frame, reach)), frame)
        stuck = again


def near(tracking: Tracking, frame: int) -> Tracking:
    """A tracking around a frame with all that might have happened there, chosen or not.

    That of a movie in one window is given back as it is: it knows everything.
    """
    if tracking.windows is None:
        return tracking
    known, model = tracking.scene, tracking.model
    movie = WholeMovie.of(
        known.evidence, known.labels, known.matrix.features, model,
        known.anchored.annotations, known.kinds, [],
    )  # fmt: skip
    chosen = known.hypotheses.take(tracking.solution.chosen)
    scene, scores = movie.near(movie.around(frame, _NEAR), chosen)
    allowed = scene.constraints.allowed
    solution = solve(scene.problem, scores, allowed)
    margins = margin_bounds(scene.problem, scores, solution, allowed)
    return replace(
        tracking, scene=scene, scores=scores, solution=solution, margins=margins, windows=None
    )
