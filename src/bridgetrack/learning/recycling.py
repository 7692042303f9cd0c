"""What a training takes over from an earlier one, and leaves for a later one (001, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bridgetrack.learning.bounds import MAX_POINTS, Bounds, Iterates, Penalty
from bridgetrack.learning.cache import CachedOutputs, OutputCache
from bridgetrack.learning.model import FloatArray, Sample, StructuredModel
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.result import TrainingState
from bridgetrack.learning.risk import Risk


def recycled_penalty(
    risk: Risk, options: LearningOptions, state: TrainingState | None = None
) -> Penalty:
    """Whatever of a state is still valid for this risk."""
    d = risk.model.n_features
    cache = OutputCache(len(risk.samples), d) if options.cache else None
    bounds = Bounds(np.zeros((0, d)), np.zeros(0), options.max_bounds)
    iterates = Iterates(np.zeros((0, d)), np.zeros(0), np.zeros(0))
    if state is not None:
        if cache is not None:
            cache.extend(carry_over(state.cached, state.samples, risk.samples, risk.model))
        if same_penalty(risk, state):
            scale = state.n_annotations / risk.n_annotations
            bounds = Bounds(state.slopes * scale, state.offsets * scale, options.max_bounds)
            iterates = Iterates(state.points, state.values * scale, state.uppers * scale)
    return Penalty(risk, bounds, iterates, cache)


def training_state(penalty: Penalty, w: FloatArray) -> TrainingState:
    """State for a later training."""
    risk, d, known = penalty.risk, len(w), penalty.iterates
    last = slice(-MAX_POINTS, None)
    nothing = CachedOutputs(np.zeros(0, dtype=np.intp), np.zeros((0, d)), np.zeros(0), ())
    return TrainingState(
        samples=risk.samples,
        n_annotations=risk.n_annotations,
        slopes=penalty.bounds.slopes.copy(),
        offsets=penalty.bounds.offsets.copy(),
        points=known.weights[last].copy(),
        values=known.values[last].copy(),
        uppers=known.uppers[last].copy(),
        cached=nothing if penalty.cache is None else penalty.cache.snapshot(),
        w=w.copy(),
    )


def same_penalty(risk: Risk, state: TrainingState) -> bool:
    """Whether P is the same function (but for its normalisation)."""
    pairs = match_samples(state.samples, risk.samples)
    return len(pairs) == len(state.samples) == len(risk.samples) and all(
        state.samples[i].same_annotation(risk.samples[j]) for i, j in pairs.items()
    )


def carry_over(
    cached: CachedOutputs, old: Sequence[Sample], new: Sequence[Sample], model: StructuredModel
) -> CachedOutputs:
    """Outputs found for one training set, made to fit another.

    Those of a sample with the same input and annotation are taken over; where the annotation
    changed, the task loss is computed anew from the output, if the model kept it.
    """
    place = np.full(len(old), -1, dtype=np.intp)
    for i, j in match_samples(old, new).items():
        place[i] = j
    same = np.array(
        [place[i] >= 0 and s.same_annotation(new[place[i]]) for i, s in enumerate(old)], dtype=bool
    )
    losses = cached.losses.copy()
    keep = same[cached.rows]
    for r in np.flatnonzero(~keep & (place[cached.rows] >= 0)):
        if cached.outputs[r] is not None:
            y_star = new[place[cached.rows[r]]].y_star
            losses[r] = model.task_loss(y_star, cached.outputs[r])
            keep[r] = True
    kept = np.flatnonzero(keep)
    return CachedOutputs(
        place[cached.rows[kept]],
        cached.features[kept],
        losses[kept],
        tuple(cached.outputs[r] for r in kept),
    )


def match_samples(old: Sequence[Sample], new: Sequence[Sample]) -> dict[int, int]:
    """Index in ``new`` of each sample of ``old`` with the same input and features.

    Samples without a key match none: an object may have changed since, or stand for another input.
    """
    by_key = {s.key: j for j, s in enumerate(new) if s.key is not None}
    return {i: by_key[s.key] for i, s in enumerate(old) if s.key in by_key}
