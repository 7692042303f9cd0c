"""Choose candidate regions together with their events, in one integer program.

Every region is covered like a detection: its fate and its history each by one event, of which
*no cell* (`Event.FALSE`) covers both. The atoms of the exclusions are further slots, which may
stay free; every other event that covers the fate of a region (in the last frame its history) also
covers the region's atoms, so no pixel belongs to two chosen regions. Movies are solved in
overlapping windows of frames: what was decided in the first part of a window stays, so that memory
depends on the window and not on the movie.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.arrays import Array, Mask
from bridgetrack.detections.measure import measure_frame
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InfeasibleError, InputError
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureMatrix
from bridgetrack.features.view import describe_cells
from bridgetrack.hypotheses.alternatives import alternative_evidence, propose_alternatives
from bridgetrack.hypotheses.events import Event, Events, active_slots
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.relax import SolverLimits
from bridgetrack.inference.solve import solve_steps
from bridgetrack.models.model import Model
from bridgetrack.movie.geometry import Geometry
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.regions.regions import Regions, concatenate, exclusions, layers
from bridgetrack.regions.score import choose_by_frame

_COMPARING = (
    "move.rank_forward",
    "move.rank_backward",
    "move.rival_forward",
    "move.rival_backward",
)
"""Features that compare a move with others: here most others are alternatives of the same move."""
_EXCLUDE = (
    "answers about cells in {} exclude each other: two cells that were said to exist share pixels; "
    "take one of these answers back"
)

PER_CELL = 4.0
"""Candidates among which to choose, for every cell."""
TRUST = 1.5
"""Factor of region scores relative to the scores of events."""
BIAS = -0.5
"""Subtracted from the score of every region, so that two small regions do not win over a large one
by having two events."""

_LIMITS = SolverLimits(gap=1e-4)
"""In a colony all candidates of a window are connected: the best choice would take ten minutes, one
that is worse by less than this share takes seconds."""
WINDOW, OVERLAP = 8, 3
"""Frames that are decided together, and how many of these are decided again with the next ones."""


@dataclass(frozen=True)
class Candidates:
    """Candidate regions of one frame, measured and scored, and those among them that are cells."""

    frame: int  # its number
    regions: Regions  # their pixels
    table: pd.DataFrame  # their measurements, one row each (`measure_regions`)
    scores: Array  # how likely each is one cell, as log-odds, shape (R,)
    pinned: Mask  # regions that a person said exist, shape (R,)
    chosen: Mask  # which exist: a guess by this frame alone until it is decided, shape (R,)
    read: NDArray[np.int32] | None = None  # labels of the built-in method, see `Described`

    @property
    def cells(self) -> Candidates:
        """Those that were chosen, now with certainty."""
        table = self.table[self.chosen].reset_index(drop=True)
        sure = np.ones(len(table), dtype=bool)
        regions, scores = self.regions.select(self.chosen), self.scores[self.chosen]
        return Candidates(self.frame, regions, table, scores, sure, sure)


def measure_regions(
    regions: Regions, image: NDArray[np.generic] | None, scale: tuple[float, ...]
) -> pd.DataFrame:
    """Measure the candidates of one frame as if each were a cell, in the order of the regions.

    `image` has intensities, shape (C, [Z,] Y, X), or is None; `scale` is the size of a pixel.
    """
    if not len(regions):
        return pd.DataFrame({"label": np.zeros(0, dtype=np.int64)})
    t = int(regions.frame[0])
    parts = [measure_frame(layer, image, scale) for layer in layers(regions, t)]
    return pd.concat(parts, ignore_index=True).sort_values("label", ignore_index=True)


def region_events(
    regions: Regions, detections: Detections, likely: Mask
) -> tuple[Events, FeatureMatrix]:
    """Possible events of candidate regions of consecutive frames from 0, with their features.

    `likely` is a first choice of them, shape (R,), by which motion is estimated.
    """
    evidence = alternative_evidence(detections, regions, likely)
    events = propose_alternatives(evidence, regions.overlaps)
    # A region is surrounded by its own alternatives, so that every two of them are one in another.
    cells = describe_cells(evidence, alternatives=True)
    return events, FeatureMatrix(evidence, events, default_features(), cells=cells)


def _program(regions: Regions, detections: Detections, events: Events) -> Problem:
    """Slots are the active fates and histories, then the atoms, which may stay free."""
    active, n = active_slots(detections), len(detections)
    slots, covered = events.covering(active), events.incidence(active)
    # The fate of a region stands for the region; in the last frame only histories are left.
    last = detections.frame == detections.geometry.n_frames - 1
    named = covered[:, :n] + covered[:, n:].multiply(last)
    exist = named.multiply((events.event != Event.FALSE)[:, None])
    atoms = sp.csr_matrix(exist) @ exclusions(regions).T.astype(np.float64)
    free = np.arange(slots.shape[1] + atoms.shape[1]) >= slots.shape[1]
    return Problem(sp.csr_matrix(sp.hstack([slots, atoms])), free)


def choose_jointly(
    candidates: Iterator[Candidates],
    geometry: Geometry,
    channels: tuple[str, ...],
    model: Model,
    window: int = WINDOW,
    overlap: int = OVERLAP,
) -> Generator[Progress | Candidates, None, None]:
    """Choose regions together with what happens to them, a window of frames at a time.

    `candidates` are those of every frame of the movie, in order, measured in its `channels`; some
    frames at the end of a window are decided again with the next ones (`overlap`). Every frame is
    given in order, as soon as it is decided.

    Raises an `InputError` where answers about regions exclude each other.
    """
    n, first, held = geometry.n_frames, 0, list[Candidates]()
    while first < n:
        last = min(first + window, n)
        for t in range(held[-1].frame + 1 if held else 0, last):
            yield Progress("Finding candidates", t / n)
            held.append(next(candidates))
        yield (choosing := Progress("Choosing masks", last / n))
        if n == 1 or not any(len(one.chosen) for one in held):
            held = [_alone(one) for one in held]
        else:
            held = yield from _together(held, geometry, channels, model, choosing)
        stop = n if last == n else last - min(overlap, window - 1)
        yield from (one for one in held if first <= one.frame < stop)
        # The last decided frame links the next window to the past: only its chosen regions remain.
        past, *held = (one for one in held if one.frame >= stop - 1)
        held, first = [past.cells, *held], stop


def _alone(one: Candidates) -> Candidates:
    """A movie of one frame, and frames without any candidate, have no events."""
    regions, there, worth = one.regions, one.pinned, TRUST * one.scores - BIAS
    atoms = exclusions(regions)
    taken = atoms @ there.astype(np.int64)
    if (taken > 1).any():
        raise InputError(_EXCLUDE.format(f"frame {one.frame}"))
    closed = there | (atoms.T @ taken > 0)
    chosen = choose_by_frame(regions, np.where(closed, -1.0, worth)) | there
    return replace(one, chosen=chosen)


def _together(
    window: list[Candidates],
    geometry: Geometry,
    channels: tuple[str, ...],
    model: Model,
    told: Progress,
) -> Steps[list[Candidates]]:
    """Decide about successive frames, of which the present choice is a guess."""
    frames = [np.full(len(one.regions), k, dtype=np.int64) for k, one in enumerate(window)]
    pairs = zip(window, frames, strict=True)
    regions = concatenate([replace(one.regions, frame=frame) for one, frame in pairs])
    table = pd.concat([one.table for one in window], ignore_index=True)
    table = table.assign(frame=regions.frame).astype({"label": np.int64})
    detections = Detections(table, replace(geometry, n_frames=len(window)), channels)
    likely = np.concatenate([one.chosen for one in window])
    events, matrix = region_events(regions, detections, likely)
    weights = model.aligned(matrix.features).copy()
    weights[[matrix.features.keys.index(key) for key in _COMPARING]] = 0.0
    scores, allowed = matrix.scores(weights), np.ones(len(events), dtype=bool)
    # A region that exists earns its score less the bias. That is the same for every choice as
    # charging it to the event *no cell*, of which there is one for each region.
    absent = events.of(Event.FALSE)
    region = events.sources[absent, 0]
    scores[absent] = BIAS - TRUST * np.concatenate([one.scores for one in window])[region]
    allowed[absent] = ~np.concatenate([one.pinned for one in window])[region]
    work = solve_steps(_program(regions, detections, events), scores, allowed, _LIMITS)
    try:
        solution = yield from relayed(work, lambda _: told)
    except InfeasibleError as error:
        where = f"frames {window[0].frame} to {window[-1].frame}"
        raise InputError(_EXCLUDE.format(where)) from error
    exist = np.ones(len(regions), dtype=bool)
    exist[region] = ~solution.chosen[absent]
    each = np.split(exist, np.cumsum([len(frame) for frame in frames])[:-1])
    return [replace(one, chosen=chosen) for one, chosen in zip(window, each, strict=True)]
