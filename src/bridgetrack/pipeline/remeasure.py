"""A scene after some frames of its segmentation were touched up."""

from __future__ import annotations

import zlib
from collections.abc import Collection

import numpy as np

from bridgetrack.detections.frame import checked_labels
from bridgetrack.detections.measure import assemble, measure_frame
from bridgetrack.errors import InputError
from bridgetrack.hypotheses.evidence import Evidence, gather_evidence
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene, propose


def fingerprints(labels: Movie) -> Steps[tuple[int, ...]]:
    """A number per frame that changes when its pixels do."""
    found = []
    yield Progress("Looking for changes", 0.0)
    for t in range(labels.n_frames):
        found.append(zlib.crc32(np.ascontiguousarray(labels.frame(t)).data))
        yield Progress("Looking for changes", (t + 1) / labels.n_frames)
    return tuple(found)


def remeasure(
    scene: Scene, labels: Movie, image: Movie | None, frames: Collection[int]
) -> Steps[Scene]:
    """As `prepare`, measuring the cells of some frames only.

    Parameters
    ----------
    scene
        Made from the same movie before some frames of its segmentation were changed.
    labels, image
        The movie as it is now.
    frames
        The frames that changed.

    Raises
    ------
    InputError
        Where the segmentation has another extent than before.
    """
    old = scene.detections
    if old.geometry != labels.geometry:
        raise InputError("the segmentation has another extent than before; measure it anew")
    tables = []
    for t in range(labels.n_frames):
        if t in frames:
            yield Progress("Measuring cells", t / labels.n_frames)
            pixels = None if image is None else image.frame(t)
            tables.append(measure_frame(checked_labels(labels, t), pixels, labels.geometry.scale))
        else:
            tables.append(old.table.iloc[old.rows(t)].drop(columns="frame"))
    detections = assemble(tables, labels, image)
    evidence = None
    for step in gather_evidence(detections, labels):
        if isinstance(step, Evidence):
            evidence = step
        else:
            yield Progress("Comparing frames", (step + 1) / labels.n_frames)
    assert evidence is not None
    return propose(evidence, labels, features=scene.matrix.features)
