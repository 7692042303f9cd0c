"""What a training takes over from an earlier one, and leaves for a later one."""

from __future__ import annotations

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.learning.bounds import Bounds, Iterates
from bridgetrack.learning.cache import CachedOutputs, OutputCache, carry_over, match_samples
from bridgetrack.learning.cutting_planes import Bundle
from bridgetrack.learning.model import FloatArray, StructuredModel
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import Regularizer, centre
from bridgetrack.learning.result import TrainingState
from bridgetrack.learning.risk import Risk

MAX_POINTS = 200
"""Points handed on; more would only slow down the search for the best of them."""


def first_weights(
    model: StructuredModel,
    regularizer: Regularizer,
    initial: FloatArray | None,
    state: TrainingState | None,
) -> FloatArray:
    """Weights to start from: those given, those of the state, or the prior.

    Raises
    ------
    InputError
        If they do not fit the model.
    """
    w = state.w if initial is None and state is not None else initial
    d = model.n_features
    if w is None:
        return centre(regularizer, d)
    w = np.array(w, dtype=float)
    if w.shape != (d,) or not np.isfinite(w).all():
        raise InputError(
            f"the initial weights have shape {w.shape} and must be {d} finite numbers, one for "
            "each feature"
        )
    return w


def recycled_bundle(risk: Risk, options: LearningOptions, state: TrainingState | None) -> Bundle:
    """Bundle with whatever of a state is still valid for this risk."""
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
    return Bundle(risk, bounds, iterates, cache, options)


def same_penalty(risk: Risk, state: TrainingState) -> bool:
    """Whether P is the same function (but for its normalisation)."""
    pairs = match_samples(state.samples, risk.samples)
    return (
        len(pairs) == len(state.samples) == len(risk.samples)
        and len(set(pairs.values())) == len(pairs)
        and all(state.samples[i].same_annotation(risk.samples[j]) for i, j in pairs.items())
    )


def training_state(bundle: Bundle, w: FloatArray) -> TrainingState:
    """State for a later training."""
    risk, d, known = bundle.risk, len(w), bundle.iterates
    last = slice(-MAX_POINTS, None)
    nothing = CachedOutputs(np.zeros(0, dtype=np.intp), np.zeros((0, d)), np.zeros(0), ())
    return TrainingState(
        samples=risk.samples,
        n_annotations=risk.n_annotations,
        slopes=bundle.bounds.slopes.copy(),
        offsets=bundle.bounds.offsets.copy(),
        points=known.weights[last].copy(),
        values=known.values[last].copy(),
        uppers=known.uppers[last].copy(),
        cached=nothing if bundle.cache is None else bundle.cache.snapshot(),
        w=w.copy(),
    )
