"""Honour new annotations in a tracked movie at once, solving again only what they touch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.compile import find_hypotheses
from bridgetrack.errors import InfeasibleError, InputError
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.resolve import resolve
from bridgetrack.pipeline.contradiction import explain_contradiction
from bridgetrack.pipeline.scene import Scene, annotate
from bridgetrack.pipeline.tracking import Tracking, allowed_by
from bridgetrack.tracks.build import build_tracks


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
    found = find_hypotheses(scene.hypotheses, old.event[rows], old.sources[rows], old.targets[rows])
    chosen = np.zeros(len(scene.hypotheses), dtype=bool)
    chosen[found[found >= 0]] = True
    return chosen
