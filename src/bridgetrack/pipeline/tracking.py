"""Annotations that only together leave no choice of events.

Track a prepared movie with a model.

Honour new annotations in a tracked movie at once, solving again only what they touch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import pins
from bridgetrack.annotations.words import describe
from bridgetrack.detections.table import Detections
from bridgetrack.errors import ContradictionError, InfeasibleError, InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Solution
from bridgetrack.inference.resolve import resolve
from bridgetrack.inference.solve import Limits, solve, solve_steps
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import Scene, annotate, prepare
from bridgetrack.progress import Progress, Steps, run
from bridgetrack.tracks.build import build_tracks
from bridgetrack.tracks.tracks import Tracks

Index = NDArray[np.int64]
Array = NDArray[np.float64]


def explain_contradiction(scene: Scene) -> ContradictionError:
    """The error for a movie whose annotations leave no choice of events.

    Annotations that exclude each other at a cell are found without a solver when they are
    compiled. What is left are circles, such as two cells that may not appear and have only one
    cell to come from.

    Parameters
    ----------
    scene
        A prepared movie, whose problem has no solution under its constraints.

    Returns
    -------
    ContradictionError
        Naming annotations none of which can be left out of the contradiction.
    """
    rows = _culprits(scene)
    annotations = [scene.anchored.listed[a] for a in scene.constraints.annotation[rows].tolist()]
    named = "; ".join(f"{describe(a)} ({a.id})" for a in annotations)
    return ContradictionError(
        f"annotations contradict each other: these cannot all be true: {named}. "
        "Remove or change one of them"
    )


def _culprits(scene: Scene) -> Index:
    """A smallest set of constraints that leaves no choice: none of them can be spared.

    The last row of the shortest run of rows that leaves no choice belongs to it; the search
    goes on before that row, with it taken as given.
    """
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
    allowed = np.ones(len(scene.hypotheses), dtype=bool)
    allowed[scene.constraints.take(rows).left_out] = False
    try:
        solve(scene.problem, np.zeros(len(scene.hypotheses)), allowed)
    except InfeasibleError:
        return False
    return True


@dataclass(frozen=True)
class Tracking:
    """A tracked movie.

    Parameters
    ----------
    scene
        What was tracked.
    model
        With which weights.
    scores
        Score of every hypothesis, shape (H,).
    solution
        The chosen hypotheses, with bound and prices.
    margins
        Lower bound on the margin of every chosen hypothesis, NaN for others, shape (H,).
    tracks
        The result.
    """

    scene: Scene
    model: Model
    scores: Array
    solution: Solution
    margins: Array
    tracks: Tracks


def allowed_by(scene: Scene) -> NDArray[np.bool_]:
    """Hypotheses that no annotation excludes, shape (H,)."""
    allowed = np.ones(len(scene.hypotheses), dtype=bool)
    _, forbidden = pins(scene.constraints)
    allowed[forbidden] = False
    return allowed


def track_scene(
    scene: Scene, model: Model | None = None, limits: Limits | None = None
) -> Steps[Tracking]:
    """Choose the best events of a prepared movie and join them into tracks.

    Annotated events are honoured.

    Yields
    ------
    Progress

    Returns
    -------
    Tracking

    Raises
    ------
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    model = model or shipped_model(scene.matrix.features)
    scores = scene.matrix.scores(model.aligned(scene.matrix.features))
    allowed = allowed_by(scene)
    solution: Solution | None = None
    yield Progress("Choosing events", 0.0)
    try:
        for step in solve_steps(scene.problem, scores, allowed, limits):
            if isinstance(step, Solution):
                solution = step
            else:
                yield Progress("Choosing events", step)
    except InfeasibleError as error:
        raise explain_contradiction(scene) from error
    assert solution is not None
    margins = margin_bounds(scene.problem, scores, solution, allowed)
    yield Progress("Joining tracks", 0.0)
    tracks = build_tracks(scene.detections, scene.hypotheses, solution.chosen, scores, margins)
    return Tracking(scene, model, scores, solution, margins, tracks)


def track_steps(
    source: Movie | Detections,
    image: Movie | None = None,
    model: Model | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
) -> Steps[Tracking]:
    """As `track`, step by step."""
    scene = yield from prepare(source, image, annotations, features)
    return (yield from track_scene(scene, model))


def track(
    source: Movie | Detections,
    image: Movie | None = None,
    model: Model | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
) -> Tracking:
    """Track the cells of a movie.

    Parameters
    ----------
    source
        Label movie (see `open_labels`), or a table of detections.
    image
        Intensities; optional.
    model
        Weights; those of the shipped model where None.
    annotations
        Events that must or must not hold; optional.
    features
        The features; the built-in ones where None.

    Raises
    ------
    BridgetrackError
        Where the input cannot be used; the message says why and what to do.
    """
    return run(track_steps(source, image, model, annotations, features))


@dataclass(frozen=True)
class Correction:
    """A tracking after new annotations.

    Parameters
    ----------
    tracking
        The new tracking.
    touched
        How many fates and histories were decided again.
    """

    tracking: Tracking
    touched: int


def correct(tracking: Tracking, annotations: AnnotationSet) -> Correction:
    """Track again under other annotations; equals a full solve in objective.

    Parameters
    ----------
    tracking
        The tracked movie.
    annotations
        All annotations that hold now, not only the new ones.

    Raises
    ------
    ContradictionError
        Where annotations exclude each other.
    """
    return resolve_tracking(tracking, annotate(tracking.scene, annotations))


def resolve_tracking(tracking: Tracking, scene: Scene) -> Correction:
    """As `correct`, for a scene that was annotated already.

    Raises
    ------
    InputError
        Where the scene has other detections than the tracking.
    ContradictionError
        Where annotations exclude each other; the message names them.
    """
    old = tracking.scene
    if not np.array_equal(old.slots, scene.slots):
        raise InputError("the cells have changed since this movie was tracked; track it again")
    scores = scene.matrix.scores(tracking.model.aligned(scene.matrix.features))
    allowed = allowed_by(scene)
    carried = _carried_over(tracking, scene)
    try:
        solution, touched = resolve(scene.problem, scores, allowed, carried, tracking.solution)
    except InfeasibleError as error:
        raise explain_contradiction(scene) from error
    margins = margin_bounds(scene.problem, scores, solution, allowed)
    tracks = build_tracks(scene.detections, scene.hypotheses, solution.chosen, scores, margins)
    renewed = Tracking(scene, tracking.model, scores, solution, margins, tracks)
    return Correction(renewed, touched)


def _carried_over(tracking: Tracking, scene: Scene) -> np.ndarray:
    """The old choice among the present hypotheses, shape (H,)."""
    if scene.hypotheses is tracking.scene.hypotheses:
        return tracking.solution.chosen.copy()
    old = tracking.scene.hypotheses
    rows = np.flatnonzero(tracking.solution.chosen)
    found = scene.hypotheses.find(old.take(rows))
    chosen = np.zeros(len(scene.hypotheses), dtype=bool)
    chosen[found[found >= 0]] = True
    return chosen
