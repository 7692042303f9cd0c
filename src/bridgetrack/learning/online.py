"""Learners that look at one block of samples at a time: Frank-Wolfe, subgradient, perceptron (003).

The surrogate and, for multipliers that choose a mean output of every sample with sums ``a`` of
phi / n and ``b`` of Delta / n over all samples, its lower bound are

    J~(w) = lambda/2 (w - w0)' M (w - w0) + 1/n sum_i max_y [ <phi_iy, w> + Delta_iy ] + <v, w> + c
    D     = lambda/2 (w - w0)' M (w - w0) + <a + v, w> + b + c      at  w = w0 - M^-1 (a + v)/lambda

*Frank-Wolfe* moves the multipliers of one sample at a time (Lacoste-Julien et al. 2013),
*subgradient* the weights themselves. The perceptron knows no objective.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.cutting_plane import Search
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L2, centre
from bridgetrack.learning.result import Training, TrainingResult, TrainingStep
from bridgetrack.learning.risk import SATISFIED, checked
from bridgetrack.learning.structured_model import (
    Inferred,
    IntArray,
    Sample,
    StructuredModel,
    as_samples,
    checked_weights,
)

SWEEPS = 60
"""Sweeps over known outputs between two inferences, at most."""

CHECKED = 5
"""Passes after which Frank-Wolfe computes the duality gap at the latest."""

RARER = 1.2
"""The subgradient's mean is judged after epoch 1, 2, ... and then at so many times the epochs."""


class Dual:
    """A dual feasible point of the surrogates of one penalty: a mean output of every sample.

    Parameters
    ----------
    bundle
        Aimed at a surrogate; the multipliers begin with the outputs of its tangent.

    Attributes
    ----------
    features, losses
        phi and Delta of the mean outputs, shapes (n, d) and (n,).
    w
        The weights that belong to them, shape (d,).
    """

    def __init__(self, bundle: Bundle) -> None:
        assert isinstance(bundle.regularizer, L2)
        self._bundle = bundle
        self._l2 = bundle.regularizer
        self._n = bundle.risk.n_annotations
        self.features = bundle.tangent.reward.features.copy()
        self.losses = bundle.tangent.reward.losses.copy()
        self.w = np.zeros(self.features.shape[1])
        self._inverse = self._l2.inverse(len(self.w))

    def step(self, slope: Array) -> Array:
        """Where the regulariser plus ``<slope, w - w0>`` is least, less w0."""
        inverse = self._inverse
        return np.asarray(-inverse * slope if inverse.ndim == 1 else -inverse @ slope)

    def refresh(self) -> None:
        """Compute w anew: for another tangent, and without the rounding of many small steps."""
        slope = self._bundle.tangent.v + self.features.sum(axis=0) / self._n
        self.w = centre(self._l2, len(self.w)) + self.step(slope)

    def value(self) -> float:
        """D: a lower bound on the minimum of the surrogate."""
        mean = float((self.features @ self.w + self.losses).sum()) / self._n
        return float(self._l2.value(self.w)) + mean + self._bundle.tangent.at(self.w)

    def move(self, i: int, feature: Array, loss: float) -> float:
        """Move the multipliers of sample ``i`` towards one output, as far as D rises most.

        Along ``alpha_i + eta (e_y - alpha_i)`` D changes by ``eta g - eta^2/2 d' M^-1 d/(lambda
        n^2)`` with ``d = phi_iy - phi_i`` and the sample's gap ``g = (<d, w> + Delta_iy -
        Delta_i)/n``. Returns this gap; where it is not positive nothing is changed.
        """
        direction = feature - self.features[i]
        gap = (float(direction @ self.w) + loss - float(self.losses[i])) / self._n
        if gap <= 0:
            return gap
        step = self.step(direction) / self._n
        steep = -float(direction @ step) / self._n
        eta = 1.0 if gap >= steep else gap / steep
        self.features[i] += eta * direction
        self.losses[i] += eta * (loss - self.losses[i])
        self.w = self.w + eta * step
        return gap


class _Online:
    """What both learners share: blocks of samples in random order."""

    def __init__(self, bundle: Bundle, options: LearningOptions) -> None:
        self.bundle = bundle
        self.options = options
        self._dual: Dual | None = None
        self._rng = np.random.default_rng(0)
        self._blocks = list(bundle.risk.model.blocks(bundle.risk.samples))

    def _aimed(self) -> Dual:
        """The multipliers of the last surrogate, for the present one."""
        dual = self._dual = self._dual or Dual(self.bundle)
        dual.refresh()
        return dual

    def _shuffled(self) -> Iterator[IntArray]:
        for number in self._rng.permutation(len(self._blocks)):
            yield self._blocks[int(number)]

    def _spent(self) -> bool:
        return self.bundle.risk.n_inferences >= self.options.max_inferences


class FrankWolfe(_Online):
    """Block-coordinate Frank-Wolfe on the dual.

    One sample's multipliers at a time move towards the output that loss-augmented inference finds
    at the present weights, by an exact line search, so that the dual never decreases. Between
    inferences the same steps are made towards outputs found before, as long as these still promise
    a good part of the gap (the inference cache of 003).
    """

    def minimise(self, precision: float) -> Search:
        """Minimise the surrogate that the bundle is aimed at to a gap."""
        bundle, dual = self.bundle, self._aimed()
        lower, passes = dual.value(), 0
        mean, steps = dual.w, 0
        while True:
            self._sweep(dual, precision)
            lower = max(lower, dual.value())
            best = bundle.incumbent(lower)
            if best.gap <= precision:
                return bundle.incumbent(lower, "converged")
            if self._spent():
                return bundle.incumbent(lower, "limit")
            passes, promised = passes + 1, 0.0
            if len(self._blocks) > 1:
                for rows in self._shuffled():
                    found = bundle.risk.penalty(dual.w, rows)
                    promised += self._learn(dual, found, rows)
                    steps += 1
                    mean = mean + 2.0 / (steps + 2.0) * (dual.w - mean)
                dual.refresh()
            if promised <= precision or passes % CHECKED == 0:
                w = min((dual.w, mean), key=self._known_value)
                if bundle.penalty(w) is not None:
                    return bundle.incumbent(max(lower, dual.value()), "inexact")
                self._learn(dual, bundle.infer(w), np.arange(len(dual.losses)))
                dual.refresh()
                yield bundle.incumbent(max(lower, dual.value()))

    def _learn(self, dual: Dual, found: Inferred, rows: IntArray) -> float:
        """One step of some samples towards what was found; the sum of their gaps."""
        self.bundle.keep_outputs(found, dual.w, rows)
        pairs = zip(rows.tolist(), found.features, found.losses, strict=True)
        return sum(max(dual.move(i, phi, float(loss)), 0.0) for i, phi, loss in pairs)

    def _sweep(self, dual: Dual, precision: float) -> None:
        """Steps towards known outputs until they promise little of what they did at first."""
        outputs, n = self.bundle.outputs, self.bundle.risk.n_annotations
        if outputs is None:
            return
        mine = [np.flatnonzero(outputs.owner == i) for i in range(outputs.n_owners)]
        enough = 0.0
        for _ in range(SWEEPS):
            best = self.bundle.best_known(dual.w)
            if best is None:
                return
            mean = dual.features @ dual.w + dual.losses
            gap = float(np.maximum(best.bounds - mean, 0.0).sum()) / n
            enough = enough or max(0.3 * precision, 0.03 * gap)
            if gap <= enough:
                break
            for i in self._rng.permutation(len(mean)).tolist():
                known = outputs.slopes[mine[i]] @ dual.w + outputs.offsets[mine[i]]
                k = mine[i][known.argmax()]
                dual.move(i, outputs.slopes[k], float(outputs.offsets[k]))
        dual.refresh()

    def _known_value(self, w: Array) -> float:
        """The surrogate at a point as far as the known outputs tell: a lower bound."""
        bundle = self.bundle
        best = bundle.best_known(w)
        above = 0.0 if best is None else float(best.bounds.sum()) / bundle.risk.n_annotations
        return float(bundle.regularizer.value(w)) + bundle.tangent.at(w) + above


class Subgradient(_Online):
    """Stochastic subgradient descent, Pegasos-like, with a prior and a certificate.

    Step t looks at one of K blocks and goes a share 1/t of the way to where the regulariser is
    least with the subgradient of this block in place of P's. Every epoch visits each block once, so
    that after an epoch w is what multipliers give that choose the outputs of all epochs equally
    often: a dual feasible point, and with it a true lower bound. The weighted mean of the iterates
    is judged.
    """

    def minimise(self, precision: float) -> Search:
        """Minimise the surrogate that the bundle is aimed at to a gap."""
        bundle, dual = self.bundle, self._aimed()
        v, n = bundle.tangent.v, bundle.risk.n_annotations
        w0, w, mean, lower = (
            centre(bundle.regularizer, len(v)),
            dual.w.copy(),
            dual.w.copy(),
            dual.value(),
        )
        features, losses, steps, epochs, judged = dual.features, dual.losses, 0, 0, 1.0
        while True:
            best = bundle.incumbent(lower)
            if best.gap <= precision:
                return bundle.incumbent(lower, "converged")
            if self._spent():
                return bundle.incumbent(lower, "limit")
            features, losses = features.copy(), losses.copy()
            for rows in self._shuffled():
                found = bundle.risk.penalty(w, rows)
                steps += 1
                slope = v + len(self._blocks) * found.features.sum(axis=0) / n
                w = w + (w0 + dual.step(slope) - w) / (len(self._blocks) + steps)
                mean = mean + 2.0 / (steps + 2.0) * (w - mean)
                features[rows] += found.features
                losses[rows] += found.losses
            epochs += 1
            dual.features, dual.losses = features / (epochs + 1), losses / (epochs + 1)
            dual.refresh()
            lower = max(lower, dual.value())
            if epochs >= judged:
                judged = max(judged + 1, RARER * judged)
                bundle.infer(mean)
                yield bundle.incumbent(lower)


def train_perceptron(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    n_annotations: float | None = None,
    *,
    initial: Array | None = None,
    rate: float = 0.1,
    max_epochs: int = 15,
    patience: int = 5,
    seed: int = 0,
) -> Training:
    """The averaged structured perceptron from partial annotations (Fernandes and Brefeld 2011).

    ``w <- w + rate (phi(x, y~) - phi(x, y^))`` where the prediction y^ contradicts an annotation
    and y~ is the best compatible output. An epoch visits all samples in random order, starting from
    ``initial`` or zero. Training ends when an epoch makes no mistake, or when the task loss has not
    improved for ``patience`` epochs. The mean of the weights after each sample is judged after each
    epoch, and the best is kept. The objective is the mean task loss, the gap NaN, and there is no
    state; the rate takes the place of a lambda that would keep weights near the prior.
    """
    start, inference = time.perf_counter(), 0.0
    found, d = as_samples(samples), model.n_features
    total = float(len(found) if n_annotations is None else n_annotations)
    if not total > 0:
        raise InputError(f"learning needs at least one annotation, there are {n_annotations}")
    w = np.zeros(d) if initial is None else checked_weights(initial, d)
    rng, summed, visited = np.random.default_rng(seed), np.zeros(d), 0
    best, steps, since, reason = w, list[TrainingStep](), 0, "the limit of epochs"
    losses = [float(model.inference(found, w).losses.sum()) / total]
    for epoch in range(max_epochs):
        mistakes, since_epoch = 0, time.perf_counter()
        for i in rng.permutation(len(found)):
            one = [found[i]]
            predicted = checked(model.inference(one, w), one, w, 0)
            if predicted.losses[0] > SATISFIED:
                mistakes += 1
                wanted = checked(model.compatible_inference(one, w), one, w, 0)
                w = w + rate * (wanted.features[0] - predicted.features[0])
            summed, visited = summed + w, visited + 1
        mean = summed / visited
        losses.append(float(model.inference(found, mean).losses.sum()) / total)
        inference += time.perf_counter() - since_epoch
        since += 1
        if losses[-1] < min(losses[:-1]) or (epoch == 0 and losses[1] == losses[0]):
            best, since = mean, 0
        step = TrainingStep(
            objective=min(losses),
            gap=float("nan"),
            n_bounds=0,
            n_inferences=2 * (epoch + 1) + 1,
            seconds=time.perf_counter() - start,
            inference_seconds=inference,
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
        objective=min(losses),
        risk=min(losses),
        gap=float("nan"),
        lower_bound=float("nan"),
        converged=reason != "the limit of epochs",
        reason=reason,
        objectives=np.array(losses),
        steps=tuple(steps),
        n_inferences=2 * len(steps) + 1,
        n_reward_inferences=0,
        inference_seconds=inference,
        seconds=time.perf_counter() - start,
    )
