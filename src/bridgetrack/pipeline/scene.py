"""A movie made ready for inference: detections, hypotheses, features and the problem."""

from __future__ import annotations

import zlib
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridgetrack.annotations.anchor import Anchored, anchor
from bridgetrack.annotations.annotation import Kind
from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.annotations.constraints import Constraints, compile_constraints, required_events
from bridgetrack.arrays import Index, Mask
from bridgetrack.detections.measure import (
    assemble,
    assemble_anew,
    measure_frame,
    measure_frames,
    with_slice_distance,
)
from bridgetrack.detections.table import Detections
from bridgetrack.errors import ContradictionError, InputError, warn
from bridgetrack.features.default import default_features
from bridgetrack.features.feature import FeatureMatrix, FeatureSet
from bridgetrack.hypotheses.events import EVERYTHING, EventKinds, Events, active_slots, kind_words
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.hypotheses.generate import generate_hypotheses
from bridgetrack.inference.problem import Problem
from bridgetrack.movie.movie import Movie, check_labels, check_same_extent, label_frame
from bridgetrack.progress import Progress, Steps, begin


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
        Number in `Events` of every slot of the problem, shape (S,).
    anchored, constraints
        The annotations, tied to detections and to hypotheses.
    kinds
        Kinds of events that occur; the hypotheses have no others.
    """

    labels: Movie | None
    evidence: Evidence
    hypotheses: Events
    matrix: FeatureMatrix
    problem: Problem
    slots: Index
    anchored: Anchored
    constraints: Constraints
    kinds: EventKinds = EVERYTHING

    @classmethod
    def of(
        cls,
        labels: Movie | None,
        evidence: Evidence,
        hypotheses: Events,
        features: FeatureSet,
        anchored: Anchored,
        kinds: EventKinds = EVERYTHING,
        covered: Mask | None = None,
    ) -> Scene:
        """Made from candidate events, which explain the slots `covered` (2n,), None: all."""
        active = active_slots(evidence.detections) if covered is None else covered
        matrix = FeatureMatrix(evidence, hypotheses, features)
        problem = Problem(hypotheses.covering(active))
        constraints = compile_constraints(anchored, hypotheses)
        slots = np.flatnonzero(active)
        return cls(
            labels, evidence, hypotheses, matrix, problem, slots, anchored, constraints, kinds
        )

    @property
    def detections(self) -> Detections:
        """The cells."""
        return self.evidence.detections


def prepare(
    source: Movie | Detections,
    image: Movie | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
    kinds: EventKinds = EVERYTHING,
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
    kinds
        Kinds of events that occur in the movie.

    Raises
    ------
    InputError
        Where labels, image or annotations do not fit each other.
    ContradictionError
        Where an annotation names an event of a kind that does not occur.
    """
    labels = source if isinstance(source, Movie) else None
    detections = yield from measure(source, image)
    evidence = yield from gather_evidence(detections, labels)
    yield begin("Proposing events")
    return propose(evidence, labels, annotations, features, kinds)


def measure(
    source: Movie | Detections, image: Movie | None = None, client: Any = None
) -> Steps[Detections]:
    """The table of detections of a label movie; a table is given back as it is.

    Raises an `InputError` where labels and image do not fit each other, or the labels cannot be
    used.
    """
    if not isinstance(source, Movie):
        if image is not None:
            warn(
                f"the cells come from a table, so intensities of {image.source} are not measured; "
                "give a label movie to use them"
            )
        return source
    check_same_extent(image, source)
    check_labels(source)
    if source.n_frames == 1:
        warn(
            f"{source.source}: there is only one frame, so no cell has anywhere to go; tracking "
            "needs a movie: give the folder of all frames or the whole stack, or say the axis "
            "order if time is another axis (--axes, e.g. TYX)"
        )
    tables = []
    yield begin("Measuring cells")
    source = with_slice_distance(source)
    for t, table in enumerate(measure_frames(source, image, client)):
        tables.append(table)
        yield Progress("Measuring cells", (t + 1) / source.n_frames)
    return assemble(tables, source, image)


def propose(
    evidence: Evidence,
    labels: Movie | None = None,
    annotations: AnnotationSet | None = None,
    features: FeatureSet | None = None,
    kinds: EventKinds = EVERYTHING,
) -> Scene:
    """Propose events and compute their features; see `prepare`."""
    annotations = annotations or AnnotationSet(evidence.detections.geometry)
    check_kinds(annotations, kinds)
    anchored = anchor(annotations, evidence.detections, labels)
    hypotheses = generate_hypotheses(evidence, required_events(anchored), kinds=kinds)
    return Scene.of(labels, evidence, hypotheses, features or default_features(), anchored, kinds)


def check_kinds(annotations: AnnotationSet, kinds: EventKinds) -> None:
    """Refuse annotations that name events of kinds that do not occur.

    Raises a `ContradictionError` naming the first such annotation.
    """
    if not kinds.absent:
        return
    for annotation in annotations:
        named = [e.event for e in annotation.events]
        meant = annotation.kind in (Kind.CONFIRM, Kind.ONE_OF)
        if meant and kinds.absent.issuperset(named):
            name = kind_words(named[0])
            raise ContradictionError(
                "an answer says: ",
                [annotation],
                f", but {name} are excluded in this movie; delete that answer, or do not exclude "
                f"{name}",
            )


def annotate(scene: Scene, annotations: AnnotationSet) -> Scene:
    """The same movie with other annotations; hypotheses are computed again only if needed."""
    anchored = anchor(annotations, scene.detections, scene.labels)
    again = (scene.hypotheses.find(required_events(anchored)) < 0).any()
    if again:
        features = scene.matrix.features
        known = scene.evidence, scene.labels
        return propose(*known, annotations, features, scene.kinds)
    check_kinds(annotations, scene.kinds)
    constraints = compile_constraints(anchored, scene.hypotheses)
    return replace(scene, anchored=anchored, constraints=constraints)


def fingerprints(labels: Movie, frames: Collection[int] | None = None) -> Steps[dict[int, int]]:
    """A number for each of some frames (None: all) that changes when its pixels do."""
    found = {}
    wanted = range(labels.n_frames) if frames is None else sorted(frames)
    yield Progress("Looking for changes", 0.0)
    for k, t in enumerate(wanted, 1):
        found[t] = zlib.crc32(np.ascontiguousarray(labels.frame(t)).data)
        yield Progress("Looking for changes", k / len(wanted))
    return found


def remeasure(
    scene: Scene,
    labels: Movie,
    image: Movie | None,
    frames: Collection[int],
    features: FeatureSet | None = None,
) -> Steps[Scene]:
    """As `prepare` for a movie of whose segmentation some frames were changed since the scene.

    Only these frames and those beside them are read. The features are those of the scene where
    None are given. Raises an `InputError` where the segmentation has another extent than before.
    """
    old = scene.detections
    if replace(old.geometry, scale=labels.geometry.scale) != labels.geometry:
        raise InputError("the segmentation has another extent than before; measure it again")
    labels = replace(labels, geometry=old.geometry)  # slices as far apart as they were found
    anew = {}
    for k, t in enumerate(sorted(frames)):
        yield Progress("Measuring cells", k / len(frames))
        pixels = None if image is None else image.frame(t)
        anew[t] = measure_frame(label_frame(labels, t), pixels, labels.geometry.scale)
    yield Progress("Measuring cells", 1.0)
    detections = assemble_anew(old, anew, labels, image)
    evidence = yield from gather_evidence(detections, labels, (scene.evidence, frames))
    yield Progress("Proposing events", 0.0)
    return propose(evidence, labels, None, features or scene.matrix.features, scene.kinds)
