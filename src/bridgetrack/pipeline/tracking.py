"""Track a prepared movie with a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import pins
from bridgetrack.detections.table import Detections
from bridgetrack.errors import InfeasibleError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.solution import Solution
from bridgetrack.inference.solve import Limits, solve_steps
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.contradiction import explain_contradiction
from bridgetrack.pipeline.progress import Progress, Steps, run
from bridgetrack.pipeline.scene import Scene, prepare
from bridgetrack.tracks.build import build_tracks
from bridgetrack.tracks.tracks import Tracks

Array = NDArray[np.float64]


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
