"""Baseline: the structured perceptron from partial annotations (Fernandes and Brefeld 2011)."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.learning.model import (
    FloatArray,
    Inferred,
    InferredBatch,
    Sample,
    StructuredModel,
    as_samples,
    checked_weights,
)
from bridgetrack.learning.result import TrainingHistory, TrainingResult, TrainingStep
from bridgetrack.learning.risk import SATISFIED, checked_batch


def train_perceptron(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    *,
    n_annotations: float | None = None,
    max_epochs: int = 50,
    patience: int = 5,
    averaged: bool = True,
    rate: float = 1.0,
    initial: FloatArray | None = None,
    seed: int = 0,
) -> Generator[TrainingStep, None, TrainingResult]:
    """Learn weights by correcting one contradicting prediction after the other.

    ``w <- w + rate (phi(x, y~) - phi(x, y^))`` where the prediction y^ contradicts an annotation
    and y~ is the best compatible output. An epoch visits all samples in random order, starting from
    ``initial`` or zero. Training ends when an epoch makes no mistake, or when the task loss has not
    improved for ``patience`` epochs. Weights, or their mean after each sample where ``averaged``,
    are judged after each epoch, and the best are kept. The objective is the mean task loss, the gap
    NaN, and there is no state.
    """
    start = time.perf_counter()
    found = as_samples(samples)
    total = float(len(found) if n_annotations is None else n_annotations)
    if not total > 0:
        raise InputError(f"learning needs at least one annotation, there are {n_annotations}")
    d = model.n_features
    first = np.zeros(d) if initial is None else checked_weights(initial, d)
    walk = _Walk(model, found, first, rate)
    rng = np.random.default_rng(seed)
    judged = walk.mean if averaged else walk.w
    best, best_loss = judged.copy(), walk.task_loss(judged) / total
    losses, steps, since, reason = [best_loss], list[TrainingStep](), 0, ""
    for epoch in range(max_epochs):
        mistakes = walk.epoch(rng.permutation(len(found)))
        judged = walk.mean if averaged else walk.w
        losses.append(walk.task_loss(judged) / total)
        since += 1
        if losses[-1] < best_loss or (losses[-1] == best_loss and epoch == 0):
            best, best_loss, since = judged.copy(), losses[-1], 0
        step = TrainingStep(
            iteration=epoch + 1,
            cccp_iteration=epoch,
            objective=best_loss,
            gap=float("nan"),
            n_bounds=0,
            n_inferences=walk.passes,
            seconds=time.perf_counter() - start,
            weights=best,
        )
        steps.append(step)
        yield step
        if mistakes == 0:
            reason = "an epoch without a mistake"
            break
        if since >= patience:
            reason = "the task loss stopped improving"
            break
    return TrainingResult(
        w=best,
        weights=best[None, :],
        objective=best_loss,
        risks=np.array([best_loss]),
        gap=float("nan"),
        lower_bound=float("nan"),
        converged=reason != "",
        reason=reason or "the limit of epochs",
        objectives=np.array(losses),
        history=TrainingHistory.of(steps),
        n_inferences=walk.passes,
        n_reward_inferences=0,
        inference_seconds=walk.seconds,
        seconds=time.perf_counter() - start,
    )


class _Walk:
    """Weights on their way through the samples, and their running mean."""

    def __init__(
        self, model: StructuredModel, samples: tuple[Sample, ...], w: FloatArray, rate: float
    ) -> None:
        self.model = model
        self.samples = samples
        self.w = w
        self.rate = rate
        self.passes = 0
        self.seconds = 0.0
        self._sum = np.zeros_like(w)
        self._count = 0

    @property
    def mean(self) -> FloatArray:
        """Mean of the weights after each sample so far."""
        return self._sum / self._count if self._count else self.w

    def epoch(self, order: Iterable[int]) -> int:
        """Visit the samples; the number of mistakes."""
        mistakes = 0
        start = time.perf_counter()
        for i in order:
            sample = self.samples[i]
            predicted = self.model.inference(sample.x, self.w)
            if self.model.task_loss(sample.y_star, predicted.output) > SATISFIED:
                mistakes += 1
                wanted = self.model.compatible_inference(sample.x, sample.y_star, self.w)
                both = self._checked(sample, [wanted, predicted])
                self.w = self.w + self.rate * (both.features[0] - both.features[1])
            self._sum += self.w
            self._count += 1
        self.passes += 1
        self.seconds += time.perf_counter() - start
        return mistakes

    def task_loss(self, w: FloatArray) -> float:
        """Task loss of the predictions with weights ``w``, summed over samples."""
        start = time.perf_counter()
        batch = getattr(self.model, "inference_batch", None)
        if batch is not None:
            total = float(np.sum(batch(self.samples, w).losses))
        else:
            total = sum(
                float(self.model.task_loss(s.y_star, self.model.inference(s.x, w).output))
                for s in self.samples
            )
        self.passes += 1
        self.seconds += time.perf_counter() - start
        return total

    def _checked(self, sample: Sample, found: list[Inferred]) -> InferredBatch:
        return checked_batch(InferredBatch.stack(found), [sample] * len(found), self.w, 0)
