"""The frames around the one in view, made ready before the rest of a large movie."""

from __future__ import annotations

import pandas as pd

from bridgetrack.annotations.annotation_set import AnnotationSet
from bridgetrack.detections.labels import checked_labels
from bridgetrack.detections.measure import assemble, measure_frame
from bridgetrack.hypotheses.evidence import gather_evidence
from bridgetrack.hypotheses.kinds import EVERYTHING, EventKinds
from bridgetrack.movie.movie import Movie
from bridgetrack.pipeline.scene import Scene, annotate, propose
from bridgetrack.progress import Progress, Steps

AROUND = 3
"""Frames before and after the one in view; gaps are no longer."""

LARGE = 20_000
"""Cells of a movie from which on looking at all of them takes longer than people like to wait."""


def prepare_near(
    labels: Movie,
    image: Movie | None,
    frame: int,
    annotations: AnnotationSet | None = None,
    kinds: EventKinds = EVERYTHING,
    large: int = LARGE,
) -> Steps[Scene | None]:
    """Measure the frames around one and propose their events, as `prepare` does for all.

    Returns
    -------
    Scene or None
        Its detections are those of these frames, with the numbers of the whole movie, and what
        leads out of them is left open. None where the movie is too small for this to be of use.
    """
    first = min(max(frame - AROUND, 0), labels.n_frames)
    frames = range(first, min(frame + AROUND + 1, labels.n_frames))
    if labels.n_frames <= 2 * len(frames):
        return None
    tables = [pd.DataFrame() for _ in range(labels.n_frames)]
    count = 0
    for k, t in enumerate(frames, 1):
        yield Progress("Measuring the frames in view", k / (len(frames) + 1))
        pixels = None if image is None else image.frame(t)
        tables[t] = measure_frame(checked_labels(labels, t), pixels, labels.geometry.scale)
        count += len(tables[t])
        if count * labels.n_frames < large * k:
            return None
    evidence = yield from gather_evidence(assemble(tables, labels, image), labels)
    scene = propose(evidence, labels, None, None, kinds, frames)
    return scene if annotations is None else annotate(scene, annotations)
