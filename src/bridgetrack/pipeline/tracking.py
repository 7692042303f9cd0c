"""Track a prepared movie with a model, and honour new annotations in it at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from bridgetrack.annotations.anchor import Anchored
from bridgetrack.annotations.annotation import Kind
from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import ContradictionError, InfeasibleError, plural
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.solve import resolve, solve, solve_steps
from bridgetrack.io.results import write_results
from bridgetrack.models.model import Model, shipped_model
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps, begin, relayed
from bridgetrack.tracks.build import build_tracks
from bridgetrack.tracks.table import track_table, with_fates, with_verified
from bridgetrack.tracks.tracks import Tracks, lineage_graph

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Tables:
    """The tables of a result."""

    nodes: pd.DataFrame  # one row per cell and frame, see `Tracks`
    edges: pd.DataFrame  # one row per link
    events: pd.DataFrame  # one row per event
    tracks: pd.DataFrame  # one row per track, see `track_table`


@dataclass(frozen=True)
class Windows:
    """Facts about a movie that was tracked a few frames at a time."""

    count: int  # of windows
    frames: int  # of the longest one
    hypotheses: int  # of all windows, each counted once


@dataclass(frozen=True)
class Tracking:
    """A tracked movie.

    Parameters
    ----------
    scene
        The movie that was tracked.
    model
        The weights.
    scores
        Score of every hypothesis, shape (H,).
    solution
        The chosen hypotheses, with bound and prices.
    margins
        Lower bound on the margin of every chosen hypothesis, NaN for others, shape (H,).
    tracks
        The result.
    windows
        The windows in which the movie was tracked, if any; the hypotheses of the scene are then the
        chosen ones alone, and the gap of the solution bounds the loss by the windows.
    """

    scene: Scene
    model: Model
    scores: Array
    solution: Solution
    margins: Array
    tracks: Tracks
    windows: Windows | None = None

    def __repr__(self) -> str:
        tracks = self.tracks
        divisions = int((tracks.events["event"] == Event.DIVIDE.key).sum())
        size = plural(len(tracks.nodes), "cell"), plural(tracks.geometry.n_frames, "frame")
        found = plural(tracks.n_tracks, "track"), plural(divisions, "division")
        return f"Tracking({' in '.join(size)}: {', '.join(found)}, model {self.model.name!r})"

    @property
    def proposed(self) -> int:
        """Number of events proposed."""
        return len(self.scene.hypotheses) if self.windows is None else self.windows.hypotheses

    @property
    def graph(self) -> nx.DiGraph:
        """Detections as nodes and links as edges from earlier to later, with all their columns.

        A node is named by its ``id`` in the tables.
        """
        return lineage_graph(self.tracks)

    @property
    def tables(self) -> Tables:
        """``nodes``, ``edges``, ``events`` and ``tracks``, pandas tables."""
        tracks = self.tracks
        return Tables(tracks.nodes, tracks.edges, tracks.events, track_table(tracks))

    def save(self, out: Path | str, formats: Sequence[str] = ("csv",)) -> tuple[str, ...]:
        """Write the result, and how it was made; returns and raises as `write_results`."""
        from bridgetrack.pipeline.report import methods_text

        methods = methods_text(self)
        return write_results(self.tracks, self.scene.labels, out, formats, methods=methods)


def track_scene(scene: Scene, model: Model | None = None) -> Steps[Tracking]:
    """Choose the best events of a prepared movie and join them into tracks.

    Annotated events are honoured.

    Raises
    ------
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    model = model or shipped_model(scene.matrix.features)
    scores = scene.matrix.scores(model.aligned(scene.matrix.features))
    allowed = scene.constraints.allowed
    solution = yield from choose_events(scene, scores, allowed)
    margins = margin_bounds(scene.problem, scores, solution, allowed)
    yield begin("Joining tracks")
    return tracked(scene, model, scores, solution, margins)


def known_solution(tracking: Tracking | None, scene: Scene, weights: Array) -> Solution | None:
    """The solution of weights (d,) in a scene if it was tracked with them already; else None."""
    if tracking is None or tracking.scene.hypotheses is not scene.hypotheses:
        return None
    same = tracking.scene.anchored.annotations is scene.anchored.annotations
    features = scene.matrix.features
    if same and np.array_equal(tracking.model.aligned(features), weights):
        return tracking.solution
    return None


def choose_events(scene: Scene, scores: Array, allowed: Mask) -> Steps[Solution]:
    """Solve the problem of a scene; raises as `track_scene`."""
    yield begin("Choosing events")
    work = solve_steps(scene.problem, scores, allowed)
    try:
        return (yield from relayed(work, partial(Progress, "Choosing events")))
    except InfeasibleError as error:
        raise explain_contradiction(scene) from error


def _named(anchored: Anchored) -> dict[int, str]:
    """Named causes of ends and beginnings, by the rows of their cells."""
    said: dict[int, list[str]] = {}
    for answer in anchored.listed:
        if answer.named is not None and answer.kind == Kind.CONFIRM:
            said.setdefault(anchored.rows[answer.cells[0]], []).append(answer.named)
    return {row: " ".join(names) for row, names in said.items()}


def tracked(
    scene: Scene,
    model: Model,
    scores: Array,
    solution: Solution,
    margins: Array,
    windows: Windows | None = None,
) -> Tracking:
    """The tracks of chosen events; those confirmed entirely by answers are marked as verified."""
    chosen, anchored = solution.chosen, scene.anchored
    given = scene.detections, scene.hypotheses, chosen, scores, margins
    tracks = build_tracks(*given, merges=scene.kinds.merges)
    said = np.array([a.kind == Kind.CONFIRM for a in anchored.listed], dtype=bool)[anchored.owner]
    if said.any():
        found = scene.hypotheses.find(anchored.events.take(said))
        rows = np.flatnonzero(chosen)
        tracks = with_verified(tracks, scene.hypotheses.take(rows), np.isin(rows, found))
    tracks = with_fates(tracks, _named(anchored))
    return Tracking(scene, model, scores, solution, margins, tracks, windows)


def resolve_steps(tracking: Tracking, scene: Scene) -> Steps[Tracking]:
    """Track again under other annotations, solving only the parts that they affect.

    The objective is that of a full solve. The scene is that of the same movie with all annotations
    that hold now (`annotate`), not only the new ones. Raises a `ContradictionError` where
    annotations exclude each other; the message names them.
    """
    yield Progress("Applying your answer", 0.0)
    old, model = tracking.scene, tracking.model
    scores = scene.matrix.scores(model.aligned(scene.matrix.features))
    allowed = scene.constraints.allowed
    chosen = tracking.solution.chosen
    if scene.hypotheses is not old.hypotheses:
        found = scene.hypotheses.find(old.hypotheses.take(chosen))
        chosen = np.zeros(len(scene.hypotheses), dtype=bool)
        chosen[found[found >= 0]] = True
    try:
        solution, _ = resolve(scene.problem, scores, allowed, chosen, tracking.solution)
    except InfeasibleError as error:
        raise explain_contradiction(scene) from error
    margins = margin_bounds(scene.problem, scores, solution, allowed)
    yield Progress("Applying your answer", 0.5)
    return tracked(scene, model, scores, solution, margins)


def explain_contradiction(scene: Scene) -> ContradictionError:
    """The error for a scene whose annotations leave no choice of events.

    It names annotations none of which can be left out of the contradiction. Annotations that
    exclude each other at a cell are found without a solver when they are compiled. What is left
    are circles, such as two cells that may not appear and have only one cell to come from.
    """
    rows = scene.constraints.annotation[_culprits(scene)].tolist()
    return ContradictionError(
        "annotations contradict each other: these cannot all be true: ",
        [scene.anchored.listed[a] for a in rows],
        ". Remove or change one of them",
    )


def _culprits(scene: Scene) -> Index:
    """A smallest set of constraints that leaves no choice: none of them can be spared."""
    # the last row of the shortest run that leaves no choice is one; the search goes on before it
    core: list[int] = []
    rest = np.arange(len(scene.constraints))
    while _possible(scene, np.asarray(core, dtype=np.int64)):
        low, high = 0, len(rest)
        while low + 1 < high:
            middle = (low + high) // 2
            if _possible(scene, np.append(rest[:middle], core).astype(np.int64)):
                low = middle
            else:
                high = middle
        core.append(int(rest[high - 1]))
        rest = rest[: high - 1]
    return np.sort(np.asarray(core, dtype=np.int64))


def _possible(scene: Scene, rows: Index) -> bool:
    allowed = scene.constraints.take(rows).allowed
    try:
        solve(scene.problem, np.zeros(len(allowed)), allowed)
    except InfeasibleError:
        return False
    return True
