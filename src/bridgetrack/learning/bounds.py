"""What is known of a penalty P: lower bounds, points where it was computed, outputs found.

All three depend on the training samples and their annotations alone: not on lambda, the prior, the
regulariser or the linearisation of R. That is why a training can take them over from an earlier
one, and leave them for a later one (001, section 4.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.cache import CachedOutputs, OutputCache
from bridgetrack.learning.model import FloatArray, InferredBatch, Sample, StructuredModel
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.result import TrainingState
from bridgetrack.learning.risk import Risk, Tangent

MAX_POINTS = 200
"""Points kept, and handed on; more would only slow down the search for the best of them."""


class Bounds:
    """Bounds ``P(w) >= <a_k, w> + b_k``, slopes (m, d) and offsets (m,), at most about ``limit``.

    Above that, bounds that are no longer active are dropped and, if need be, active ones collapse
    into their weighted mean, which keeps the value of the last master problem and with it
    convergence (000, section 1.4.3, after Do and Artieres 2012).
    """

    def __init__(self, slopes: FloatArray, offsets: FloatArray, limit: int) -> None:
        self.slopes = slopes
        self.offsets = offsets
        self.limit = max(int(limit), 2)
        self._idle: NDArray[np.intp] = np.zeros(len(offsets), dtype=np.intp)

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, slope: FloatArray, offset: float) -> None:
        """Add one bound."""
        self.slopes = np.vstack([self.slopes, slope])
        self.offsets = np.append(self.offsets, offset)
        self._idle = np.append(self._idle, 0)

    def clear(self) -> None:
        """Forget all bounds."""
        self._keep(np.zeros(len(self), dtype=bool))

    def prune(self, alpha: FloatArray) -> None:
        """Take note of which bounds are active, shape (m,), and drop some if there are many."""
        self._idle = np.where(alpha > 0, 0, self._idle + 1)
        if len(self) <= self.limit:
            return
        order = np.lexsort((-alpha, self._idle))
        keep = np.zeros(len(self), dtype=bool)
        keep[order[: self.limit // 2]] = True
        weight = float(alpha.sum())
        if weight > 0 and alpha[~keep].any():
            slope, offset = self.slopes.T @ alpha / weight, float(self.offsets @ alpha) / weight
            self._keep(keep)
            self.add(slope, offset)
        else:
            self._keep(keep)

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        self.slopes = self.slopes[keep]
        self.offsets = self.offsets[keep]
        self._idle = self._idle[keep]


class Iterates:
    """The last points (k, d) where P was computed, its values and upper bounds there (k,)."""

    def __init__(self, weights: FloatArray, values: FloatArray, uppers: FloatArray) -> None:
        self.weights = weights
        self.values = values
        self.uppers = uppers

    def add(self, w: FloatArray, tangent: Tangent) -> None:
        """Add a point."""
        last = slice(-2 * MAX_POINTS, None)
        self.weights = np.vstack([self.weights, w])[last]
        self.values = np.append(self.values, tangent.value)[last]
        self.uppers = np.append(self.uppers, tangent.bound)[last]

    def find(self, w: FloatArray) -> int | None:
        """Row of exactly these weights, or None."""
        rows = np.flatnonzero((self.weights == w).all(axis=1))
        return int(rows[-1]) if len(rows) else None

    def clear(self) -> None:
        """Forget all points."""
        self.weights, self.values, self.uppers = self.weights[:0], self.values[:0], self.uppers[:0]


@dataclass(frozen=True)
class Half:
    """The linear upper bound ``<v, w> + c`` on -R, and the outputs it is made of."""

    v: FloatArray
    c: float
    reward: InferredBatch


class Penalty:
    """What is known of the penalty of one domain, and how more is learned of it.

    Without a cache of outputs there are no cheap bounds.
    """

    def __init__(
        self, risk: Risk, bounds: Bounds, iterates: Iterates, cache: OutputCache | None
    ) -> None:
        self.risk = risk
        self.bounds = bounds
        self.iterates = iterates
        self.cache = cache

    def half(self, w: FloatArray, near: Half | None) -> Half:
        """Upper bound on -R that touches at ``w`` (001, eq. 8 and 10, with the missing sign).

        It is made of outputs that are no worse there than those of ``near``.
        """
        sign = self.risk.loss.reward_sign
        found = self.risk.reward(w)
        if near is not None:
            found = _better_of(found, near.reward, w, sign)
        if self.cache is not None:
            self.cache.add(found, w)
        tangent = self.risk.tangent(found, w, sign)
        return Half(-tangent.slope, -tangent.offset, found)

    def touch(self, half: Half, w: FloatArray) -> tuple[InferredBatch, Tangent, Tangent]:
        """Compute P at ``w``: what was found, the bound that was added, and the tangent of P."""
        found = self.risk.penalty(w)
        bound = tangent = self.risk.tangent(found, w, 1)
        if self.risk.literal:
            bound = self.risk.literal_tangent(found, half.reward, w)
        self.bounds.add(bound.slope, bound.offset)
        self.iterates.add(w, tangent)
        if self.cache is not None:
            self.cache.add(found, w)
        return found, bound, tangent

    def lower_bound_at(self, half: Half, w: FloatArray) -> float:
        """The largest known bound on P at ``w``, ``P >= R >= -<v, .> - c`` among them."""
        value = float((self.bounds.slopes @ w + self.bounds.offsets).max(initial=-np.inf))
        return max(value, -float(half.v @ w) - half.c)

    def forget(self) -> None:
        """Drop everything (training from scratch)."""
        self.bounds.clear()
        self.iterates.clear()
        if self.cache is not None:
            self.cache = OutputCache(len(self.risk.samples), self.risk.model.n_features)


def _better_of(
    found: InferredBatch, previous: InferredBatch, w: FloatArray, sign: int
) -> InferredBatch:
    """Sample by sample the output of higher value: inexact inference may have got worse."""
    worse = previous.values(w, sign) > found.values(w, sign)
    outputs = None
    if found.outputs is not None and previous.outputs is not None:
        pairs = zip(worse, previous.outputs, found.outputs, strict=True)
        outputs = [old if bad else new for bad, old, new in pairs]
    return InferredBatch(
        np.where(worse[:, None], previous.features, found.features),
        np.where(worse, previous.losses, found.losses),
        np.maximum(found.bounds, previous.values(w, sign)),
        outputs,
    )


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
