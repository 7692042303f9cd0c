"""The six losses as one, and the two convex parts of their risk, ``P(w) - R(w)``.

A loss is a penalty space, a reward space and a sign of Delta:
``L(w) = | max_{y in Y^P} [f + Delta] - max_{y in Y^R} [f - c Delta] |_+`` with c = 0 or 1
(001, eq. 6, Table 2 and section 5.3). The risk is computed by a model's inference,

    P(w) = 1/n sum_i max_{y in Y} [f + Delta],     R(w) = 1/n sum_i max_{y in Y^R} [f - c Delta]

n is the number of annotations, so that lambda keeps its meaning when annotations are added.

Because Delta vanishes exactly on Y*, replacing a loss's P-term by ``max(P-term, R-term)``, which is
the meaning of ``| |_+``, gives ``max_{y in Y} [f + Delta]`` for every row of the table. So the
penalty that is minimised is always a plain loss-augmented inference: if its maximiser contradicts
an annotation it is the maximiser over Y°, and otherwise the loss of the sample is zero. As
functions of w the six losses are three (hinge = bridge, ramp = max, ramp-delta = max-delta). With
the treatment ``exact``, the default, the two losses of a pair are the same training; only
``literal``, which applies to bridge, max and max-delta, tells them apart, see `Treatment`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.errors import InputError
from bridgetrack.learning.options import Loss, Treatment
from bridgetrack.learning.structured_model import Inferred, Sample, StructuredModel

Inference = Callable[[Sequence[Sample], Array], Inferred]

SATISFIED = 1e-9
"""A task loss below this counts as zero: the output contradicts no annotation."""


@dataclass(frozen=True)
class Tangent:
    """The linear upper bound ``<v, w> + c`` on -R, and the outputs it is made of."""

    v: Array  # slope, shape (d,): 001, eq. 8 and 10, with the minus sign that eq. 10 lacks
    c: float  # offset
    reward: Inferred  # one output of each sample

    def at(self, w: Array) -> float:
        """Value at weights ``w``."""
        return float(self.v @ w) + self.c

    def equals(self, other: Tangent) -> bool:
        """Whether it is the same function."""
        return self.c == other.c and bool(np.array_equal(self.v, other.v))


class Risk:
    """Penalty P and reward R of a training set; whatever inference returns is checked and counted.

    Parameters
    ----------
    model, samples
        The model and the samples to learn from.
    n_annotations
        Divides both parts; None: the number of samples.
    loss, treatment
        The loss, and the treatment of satisfied samples (if its penalty space is Y°).

    Attributes
    ----------
    n_reward_inferences, seconds
        Inferences over all samples for R so far, and time spent in any inference.
    began
        When it was made, by `time.perf_counter`.
    """

    def __init__(
        self,
        model: StructuredModel,
        samples: Iterable[Sample],
        n_annotations: float | None,
        loss: Loss,
        treatment: Treatment = "exact",
    ) -> None:
        self.model, self.samples, self.loss = model, tuple(samples), loss
        self.n_annotations = float(len(self.samples) if n_annotations is None else n_annotations)
        if not (self.samples and self.n_annotations > 0):
            raise InputError(
                f"there is nothing to learn from: {len(self.samples)} samples with "
                f"{self.n_annotations:g} annotations; annotate something"
            )
        self.literal = treatment == "literal" and loss.penalty_space == "incompatible"
        self.n_reward_inferences, self.seconds, self._inferred = 0, 0.0, 0
        self.began = time.perf_counter()

    @property
    def n_inferences(self) -> int:
        """Inferences over all samples for P so far; an inference of some samples counts in part."""
        return self._inferred // len(self.samples)

    def penalty(self, w: Array, rows: Index | None = None) -> Inferred:
        """Loss-augmented inference of some samples (None: all), at weights (d,) or (n, d)."""
        self._inferred += len(self.samples) if rows is None else len(rows)
        return self._ask(self.model.loss_augmented_inference, w, 1, rows)

    def predictions(self, w: Array, rows: Index | None = None) -> Inferred:
        """Plain inference of some samples (None: all), for learners that do not use P."""
        self._inferred += len(self.samples) if rows is None else len(rows)
        return self._ask(self.model.inference, w, 0, rows)

    def completions(self, w: Array, rows: Index | None = None) -> Inferred:
        """The best compatible outputs of some samples (None: all)."""
        self.n_reward_inferences += rows is None
        return self._ask(self.model.compatible_inference, w, 0, rows)

    def reward(self, w: Array) -> Inferred:
        """Maximisation over the reward space, all samples."""
        if self.loss.reward_space == "compatible":
            return self.completions(w)
        self.n_reward_inferences += 1
        if self.loss.minus_delta:
            return self._ask(partial(self.model.loss_augmented_inference, sign=-1), w, -1)
        return self._ask(self.model.inference, w, 0)

    def loss_of_each(self, w: Array) -> Array:
        """The loss of every sample at weights (d,), shape (n,)."""
        reward = self.reward(w).values(w, self.loss.reward_sign)
        return np.maximum(self.penalty(w).values(w, 1) - reward, 0.0)

    def tangent(self, w: Array, near: Tangent | None = None) -> Tangent:
        """Linear upper bound on -R that touches it at ``w``.

        With `near`, a sample keeps its earlier output if that scores higher.
        """
        found, sign = self.reward(w), self.loss.reward_sign
        if near is not None:  # inexact inference may have got worse
            worse = near.reward.values(w, sign) > found.values(w, sign)
            found = near.reward.where(worse, found)
        n = self.n_annotations
        v = -found.features.sum(axis=0) / n  # -R = -sum(f - c Delta)/n, hence + c sum Delta / n
        return Tangent(v, -sign * float(found.losses.sum()) / n, found)

    def without_satisfied(self, found: Inferred, tangent: Tangent) -> Inferred:
        """The literal treatment: a satisfied sample adds to P what the tangent subtracts."""
        taken = replace(tangent.reward, losses=self.loss.reward_sign * tangent.reward.losses)
        return taken.where(found.losses <= SATISFIED, found)

    def _ask(self, ask: Inference, w: Array, sign: int, rows: Index | None = None) -> Inferred:
        samples = self.samples if rows is None else [self.samples[i] for i in rows]
        start = time.perf_counter()
        found = ask(samples, w)
        self.seconds += time.perf_counter() - start
        _check(found)
        # a bound is never below the attained value, whatever the rounding of the solver
        return replace(found, bounds=np.maximum(found.bounds, found.values(w, sign)))


def _check(found: Inferred) -> None:
    """Raise an error if inference returned something that is no number."""
    given = {"features": found.features, "task losses": found.losses, "bounds": found.bounds}
    for name, values in given.items():
        if not np.isfinite(values).all():
            i = int(np.argwhere(~np.isfinite(values))[0, 0])
            raise InputError(
                f"the {name} of training sample {i} are not finite; check the features of its "
                "events, or raise the limits of inference"
            )
