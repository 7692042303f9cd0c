"""The two convex halves P and R of the empirical risk, seen through a model's inference.

``risk(w) = P(w) - R(w)``, each a sum over samples divided by the number of annotations, so that
the weight of the regulariser keeps its meaning when annotations are added.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError, SolverError
from bridgetrack.learning.losses import Loss, Treatment
from bridgetrack.learning.model import (
    FloatArray,
    Inferred,
    InferredBatch,
    Sample,
    Sign,
    StructuredModel,
)

Batch = Callable[..., InferredBatch]

SATISFIED = 1e-9
"""A task loss below this counts as zero: the output contradicts no annotation."""


@dataclass(frozen=True)
class Tangent:
    """A linear function ``<slope, w> + offset`` that touches P or R at a point from below."""

    slope: FloatArray  # shape (d,)
    offset: float  # value at w = 0
    value: float  # value at the point
    bound: float  # upper bound on P (or R) at the point; equal to ``value`` for exact inference


@dataclass
class InferenceCost:
    """What inference has cost so far: calls for P, calls for R, seconds.

    ``partial`` counts samples of calls for P that are not complete yet.
    """

    penalty_calls: int = 0
    partial: int = 0
    reward_calls: int = 0
    seconds: float = 0.0


class Risk:
    """Penalty P and reward R of a training set, validated and counted.

    Parameters
    ----------
    model
        What is learned; its batch methods are used where it has them.
    samples
        Training set.
    n_annotations
        Divides both halves; None: the number of samples.
    loss
        Which loss.
    treatment
        What becomes of satisfied samples (max and bridge only).

    Raises
    ------
    InputError
        If ``n_annotations`` is not positive.
    """

    def __init__(
        self,
        model: StructuredModel,
        samples: Sequence[Sample],
        n_annotations: float | None,
        loss: Loss,
        treatment: Treatment = "exact",
    ) -> None:
        self.model = model
        self.samples = tuple(samples)
        self.n_annotations = float(len(self.samples) if n_annotations is None else n_annotations)
        if not self.n_annotations > 0:
            raise InputError(
                f"learning needs at least one annotation, there are {n_annotations}; annotate some"
            )
        self.loss = loss
        self.literal = treatment == "literal" and loss.penalty == "incompatible"
        self.effort = InferenceCost()

    def penalty(self, w: FloatArray) -> InferredBatch:
        """Loss-augmented inference of all samples."""
        self.effort.penalty_calls += 1
        return self._augmented(w, 1, self.samples)

    def penalty_of(self, rows: NDArray[np.intp], w: FloatArray) -> InferredBatch:
        """Loss-augmented inference of some samples; n samples count as one call."""
        whole, self.effort.partial = divmod(self.effort.partial + len(rows), len(self.samples))
        self.effort.penalty_calls += whole
        return self._augmented(w, 1, tuple(self.samples[i] for i in rows))

    def reward(self, w: FloatArray) -> InferredBatch:
        """Maximisation over the reward space, all samples."""
        self.effort.reward_calls += 1
        if self.loss.reward == "compatible":
            return self._compatible(w)
        if self.loss.minus_delta:
            return self._augmented(w, -1, self.samples)
        return self._plain(w)

    def completions(self, w: FloatArray) -> InferredBatch:
        """The best compatible outputs of all samples."""
        self.effort.reward_calls += 1
        return self._compatible(w)

    def literal_tangent(
        self, found: InferredBatch, reward: InferredBatch, w: FloatArray
    ) -> Tangent:
        """Lower bound on P (001, eq. 11-12) without the satisfied samples.

        Each contributes what ``reward`` takes away: see `losses.Treatment`.
        """
        satisfied = found.losses <= SATISFIED
        kept = InferredBatch(
            np.where(satisfied[:, None], reward.features, found.features),
            np.where(satisfied, self.loss.reward_sign * reward.losses, found.losses),
            found.bounds,
        )
        return self.tangent(kept, w, 1)

    def tangent(self, found: InferredBatch, w: FloatArray, sign: int) -> Tangent:
        """Mean of ``<phi, .> + sign * Delta`` over what was found, and its values at ``w``."""
        n = self.n_annotations
        slope = found.features.sum(axis=0) / n
        offset = sign * float(found.losses.sum()) / n
        value = float(slope @ w) + offset
        return Tangent(slope, offset, value, max(float(found.bounds.sum()) / n, value))

    def _augmented(self, w: FloatArray, sign: Sign, samples: Sequence[Sample]) -> InferredBatch:
        model = self.model

        def each(s: Sample) -> Inferred:
            return model.loss_augmented_inference(s.x, s.y_star, w, sign=sign)

        batch: Batch | None = getattr(model, "loss_augmented_batch", None)
        at_once = None if batch is None else partial(batch, samples, w, sign)
        return self._timed(at_once, each, samples, w, sign)

    def _compatible(self, w: FloatArray) -> InferredBatch:
        model = self.model

        def each(s: Sample) -> Inferred:
            return model.compatible_inference(s.x, s.y_star, w)

        batch: Batch | None = getattr(model, "compatible_batch", None)
        at_once = None if batch is None else partial(batch, self.samples, w)
        return self._timed(at_once, each, self.samples, w, 0)

    def _plain(self, w: FloatArray) -> InferredBatch:
        model = self.model

        def each(s: Sample) -> Inferred:
            found = model.inference(s.x, w)
            return replace(found, loss=model.task_loss(s.y_star, found.output))

        batch: Batch | None = getattr(model, "inference_batch", None)
        at_once = None if batch is None else partial(batch, self.samples, w)
        return self._timed(at_once, each, self.samples, w, 0)

    def _timed(
        self,
        at_once: Callable[[], InferredBatch] | None,
        each: Callable[[Sample], Inferred],
        samples: Sequence[Sample],
        w: FloatArray,
        sign: int,
    ) -> InferredBatch:
        """All samples at once where the model can, else one after another."""
        start = time.perf_counter()
        found = InferredBatch.stack([each(s) for s in samples]) if at_once is None else at_once()
        self.effort.seconds += time.perf_counter() - start
        return checked_batch(found, samples, w, sign)


def checked_batch(
    found: InferredBatch, samples: Sequence[Sample], w: FloatArray, sign: int
) -> InferredBatch:
    """The batch, with bounds that are never below what was attained."""
    n, d = len(samples), len(w)
    features = np.asarray(found.features, dtype=float)
    losses = np.asarray(found.losses, dtype=float)
    bounds = np.asarray(found.bounds, dtype=float)
    if features.shape != (n, d) or losses.shape != (n,) or bounds.shape != (n,):
        raise InputError(
            f"inference returned features {features.shape}, losses {losses.shape} and bounds "
            f"{bounds.shape} for {n} samples and {d} weights; the weights may belong to another "
            "set of features"
        )
    if not np.isfinite(features).all():
        row, column = np.argwhere(~np.isfinite(features))[0]
        raise InputError(
            f"feature {column} of training sample {_name(samples, row)} is "
            f"{features[row, column]}; features must be finite numbers"
        )
    if not (np.isfinite(losses) & (losses >= -SATISFIED)).all():
        row = int(np.argmin(np.where(np.isfinite(losses), losses, -np.inf)))
        raise InputError(
            f"the task loss of training sample {_name(samples, row)} is {losses[row]}; it must be "
            "a finite number and not negative"
        )
    if not np.isfinite(bounds).all():
        row = int(np.argwhere(~np.isfinite(bounds))[0, 0])
        raise SolverError(
            f"inference gave no finite bound for training sample {_name(samples, row)} "
            f"({bounds[row]}); raise its limits or use the relaxed model"
        )
    values = features @ w + sign * losses
    return InferredBatch(features, losses, np.maximum(bounds, values), found.outputs)


def _name(samples: Sequence[Sample], row: Any) -> str:
    key = samples[int(row)].key
    return str(int(row)) if key is None else f"{int(row)} ({key})"
