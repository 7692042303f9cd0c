"""A movie made ready for inference: detections, hypotheses, features and the problem."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.anchor import anchor
from bridgetrack.annotations.anchored import Anchored
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.compile import compile_constraints, find_hypotheses, required_events
from bridgetrack.annotations.constraints import Constraints
from bridgetrack.detections.intensities import refuse_image
from bridgetrack.detections.measure import assemble, check_extents, measure_frames
from bridgetrack.detections.table import Detections
from bridgetrack.errors import BridgetrackWarning
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureSet
from bridgetrack.features.matrix import FeatureMatrix, compute_features
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import generate_hypotheses
from bridgetrack.hypotheses.hypotheses import Hypotheses
from bridgetrack.inference.problem import Problem
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.progress import Progress, Steps

Index = NDArray[np.int64]


@dataclass(frozen=True)
class Scene:
    """Everything that inference, learning and annotation need of one movie.

    Parameters
    ----------
    labels
        The label movie; None where the cells came from a table.
    evidence
        Detections, motion and overlaps.
    hypotheses
        Candidate events.
    matrix
        Their features.
    problem
        The set-partitioning problem over the active slots.
    slots
        Number in `Hypotheses` of every slot of the problem, shape (S,).
    anchored, constraints
        The annotations, tied to detections and to hypotheses.
    """

    labels: Movie | None
    evidence: Evidence
    hypotheses: Hypotheses
    matrix: FeatureMatrix
    problem: Problem
    slots: Index
    anchored: Anchored
    constraints: Constraints

    @property
    def detections(self) -> Detections:
        """The cells."""
        return self.evidence.detections


def prepare(
    source: Movie | Detections,
    image: Movie | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
) -> Steps[Scene]:
    """Measure a movie and propose its events.

    Parameters
    ----------
    source
        Label movie, or a table of detections (then cells are taken for discs).
    image
        Intensities, of the extent of the labels; without it intensity features are 0. They are
        measured inside masks, so a table of detections goes without (with a warning).
    annotations
        Annotations; the events they name are always among the hypotheses.
    features
        The features; the built-in ones where None.

    Yields
    ------
    Progress

    Returns
    -------
    Scene

    Raises
    ------
    InputError
        Where labels, image or annotations do not fit each other.
    """
    labels = source if isinstance(source, Movie) else None
    detections = yield from measure(source, image)
    evidence = None
    yield Progress("Comparing frames", 0.0)
    for step in gather_evidence(detections, labels):
        if isinstance(step, Evidence):
            evidence = step
        else:
            yield Progress("Comparing frames", (step + 1) / detections.geometry.n_frames)
    assert evidence is not None
    yield Progress("Proposing events", 0.0)
    return propose(evidence, labels, annotations, features)


def measure(source: Movie | Detections, image: Movie | None = None) -> Steps[Detections]:
    """The table of detections of a label movie; a table is given back as it is.

    Raises
    ------
    InputError
        Where labels and image do not fit each other, or the labels cannot be used.
    """
    if not isinstance(source, Movie):
        if image is not None:
            warnings.warn(
                f"the cells come from a table, so intensities of {image.source} are not measured; "
                "give a label movie to use them",
                BridgetrackWarning,
                stacklevel=2,
            )
        return source
    check_extents(source, image)
    refuse_image(source)
    if source.n_frames == 1:
        warnings.warn(
            f"{source.source}: there is only one frame, so no cell has anywhere to go; tracking "
            "needs a movie: give the folder of all frames or the whole stack, or say the axis "
            "order if time is another axis (--axes, e.g. TYX)",
            BridgetrackWarning,
            stacklevel=2,
        )
    tables = []
    yield Progress("Measuring cells", 0.0)
    for t, table in measure_frames(source, image):
        tables.append(table)
        yield Progress("Measuring cells", (t + 1) / source.n_frames)
    return assemble(tables, source, image)


def propose(
    evidence: Evidence,
    labels: Movie | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
) -> Scene:
    """Propose events and compute their features; see `prepare`."""
    annotations = annotations or AnnotationSet(evidence.detections.geometry)
    anchored = anchor(annotations, evidence.detections, labels)
    hypotheses = generate_hypotheses(evidence, required_events(anchored))
    matrix = compute_features(evidence, hypotheses, features or default_features())
    slots = np.flatnonzero(hypotheses.active)
    problem = Problem(hypotheses.incidence()[:, slots].tocsr())
    constraints = compile_constraints(anchored, hypotheses)
    return Scene(labels, evidence, hypotheses, matrix, problem, slots, anchored, constraints)


def annotate(scene: Scene, annotations: AnnotationSet) -> Scene:
    """The same movie with other annotations; hypotheses are made anew only where needed."""
    anchored = anchor(annotations, scene.detections, scene.labels)
    wanted = required_events(anchored)
    found = find_hypotheses(scene.hypotheses, wanted.event, wanted.sources, wanted.targets)
    if (found < 0).any():
        return propose(scene.evidence, scene.labels, annotations, scene.matrix.features)
    constraints = compile_constraints(anchored, scene.hypotheses)
    return replace(scene, anchored=anchored, constraints=constraints)
