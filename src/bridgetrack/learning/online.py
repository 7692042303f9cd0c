"""Learners that use one block of samples at a time: Frank-Wolfe, subgradient, perceptron (003).

The surrogate and, for multipliers that choose a mean output of every sample with sums ``a`` of
phi / n and ``b`` of Delta / n over all samples, its lower bound are

    J~(w) = lambda/2 (w - w0)' M (w - w0) + 1/n sum_i max_y [ <phi_iy, w> + Delta_iy ] + <v, w> + c
    D     = lambda/2 (w - w0)' M (w - w0) + <a + v, w> + b + c      at  w = w0 - M^-1 (a + v)/lambda

*Frank-Wolfe* moves the multipliers of one sample at a time (Lacoste-Julien et al. 2013),
*subgradient* the weights themselves. The perceptron has no objective.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.learning.bundle import Bundle, Search
from bridgetrack.learning.regularizers import L2
from bridgetrack.learning.result import Training, TrainingResult, TrainingStep
from bridgetrack.learning.risk import SATISFIED, Risk
from bridgetrack.learning.structured_model import Inferred

SWEEPS = 60
"""Sweeps over known outputs between two inferences, at most."""

CHECKED = 5
"""Most passes before Frank-Wolfe computes the duality gap."""

RARER = 1.2
"""The subgradient's mean is judged at epochs 1, 2, ..., then at ones that grow by this factor."""


class Dual:
    """A dual feasible point of the surrogates of one penalty: a mean output of every sample.

    Learners move it, one block of samples after another in random order.

    Parameters
    ----------
    bundle
        The penalty, and the limits.

    Attributes
    ----------
    features, losses
        phi and Delta of the mean outputs, shapes (n, d) and (n,).
    w
        The weights that belong to them, shape (d,).
    """

    def __init__(self, bundle: Bundle) -> None:
        assert isinstance(bundle.regularizer, L2)
        self.bundle, self.l2 = bundle, bundle.regularizer
        self.n, d = bundle.risk.n_annotations, bundle.risk.model.n_features
        self.features, self.losses, self.w = np.zeros((0, d)), np.zeros(0), np.zeros(d)
        self._rng = np.random.default_rng(0)
        self._blocks = list(bundle.risk.model.blocks(bundle.risk.samples))

    def aim(self) -> None:
        """Use the bundle's surrogate; the first time, begin with the outputs of its tangent."""
        if not len(self.losses):
            reward = self.bundle.tangent.reward
            self.features, self.losses = reward.features.copy(), reward.losses.copy()
        self.refresh()

    def refresh(self) -> None:
        """Compute w again: for another tangent, and without the rounding of many small steps."""
        slope = self.bundle.tangent.v + self.features.sum(axis=0) / self.n
        self.w = self.l2.centre(len(self.w)) + self.l2.least(slope)

    def value(self) -> float:
        """D: a lower bound on the minimum of the surrogate."""
        mean = float((self.features @ self.w + self.losses).sum()) / self.n
        return float(self.l2.value(self.w)) + mean + self.bundle.tangent.at(self.w)

    def move(self, i: int, feature: Array, loss: float) -> float:
        """Move the multipliers of sample ``i`` towards one output, to where D is largest.

        Along ``alpha_i + gamma (e_y - alpha_i)`` D changes by ``gamma g - gamma^2/2 d' M^-1
        d/(lambda n^2)`` with ``d = phi_iy - phi_i`` and the sample's gap ``g = (<d, w> + Delta_iy -
        Delta_i)/n``. Returns this gap; if it is not positive, nothing is changed.
        """
        direction = feature - self.features[i]
        gap = (float(direction @ self.w) + loss - float(self.losses[i])) / self.n
        if gap <= 0:
            return gap
        step = self.l2.least(direction) / self.n
        steep = -float(direction @ step) / self.n
        gamma = 1.0 if gap >= steep else gap / steep
        self.features[i] += gamma * direction
        self.losses[i] += gamma * (loss - self.losses[i])
        self.w = self.w + gamma * step
        return gap

    def _shuffled(self) -> Iterator[Index]:
        for number in self._rng.permutation(len(self._blocks)):
            yield self._blocks[int(number)]

    def _ended(self, lower: float, precision: float) -> str:
        """Why the search ends here; empty if it continues."""
        if self.bundle.incumbent(lower).gap <= precision:
            return "converged"
        spent = self.bundle.risk.n_inferences >= self.bundle.options.max_inferences
        return "limit" if spent else ""


class FrankWolfe(Dual):
    """Block-coordinate Frank-Wolfe on the dual.

    One sample's multipliers at a time move towards the output that loss-augmented inference finds
    at the present weights, by an exact line search, so that the dual never decreases. Between
    inferences the same steps are made towards outputs found before, as long as these still promise
    a good part of the gap (the inference cache of 003).
    """

    def minimise(self, precision: float) -> Search:
        """Minimise the surrogate that the bundle is aimed at to a gap."""
        self.aim()
        bundle, lower, passes = self.bundle, self.value(), 0
        mean, steps = self.w, 0
        while True:
            self._sweep(precision)
            lower = max(lower, self.value())
            if ended := self._ended(lower, precision):
                return bundle.incumbent(lower, ended)
            passes, promised = passes + 1, 0.0
            if len(self._blocks) > 1:
                for rows in self._shuffled():
                    promised += self._learn(bundle.risk.penalty(self.w, rows), rows)
                    steps += 1
                    mean = mean + 2.0 / (steps + 2.0) * (self.w - mean)
                self.refresh()
            if promised <= precision or passes % CHECKED == 0:
                w = min((self.w, mean), key=self._known_value)
                if bundle.value(w) < np.inf:
                    return bundle.incumbent(max(lower, self.value()), "inexact")
                self._learn(bundle.infer(w), np.arange(len(self.losses)))
                self.refresh()
                yield bundle.incumbent(max(lower, self.value()))

    def _learn(self, found: Inferred, rows: Index) -> float:
        """One step of some samples towards the outputs found; returns the sum of their gaps."""
        self.bundle.keep_outputs(found, self.w, rows)
        pairs = zip(rows.tolist(), found.features, found.losses, strict=True)
        return sum(max(self.move(i, phi, float(loss)), 0.0) for i, phi, loss in pairs)

    def _sweep(self, precision: float) -> None:
        """Steps towards known outputs until they gain little compared with the first ones."""
        outputs, enough = self.bundle.outputs, 0.0
        if outputs is None:
            return
        mine = [np.flatnonzero(outputs.owner == i) for i in range(outputs.n_owners)]
        for _ in range(SWEEPS):
            best = self.bundle.best_known(self.w)
            if best is None:
                return
            mean = self.features @ self.w + self.losses
            gap = float(np.maximum(best.bounds - mean, 0.0).sum()) / self.n
            enough = enough or max(0.3 * precision, 0.03 * gap)
            if gap <= enough:
                break
            for i in self._rng.permutation(len(mean)).tolist():
                known = outputs.slopes[mine[i]] @ self.w + outputs.offsets[mine[i]]
                k = mine[i][known.argmax()]
                self.move(i, outputs.slopes[k], float(outputs.offsets[k]))
        self.refresh()

    def _known_value(self, w: Array) -> float:
        """The surrogate at a point by the known outputs: a lower bound."""
        best = self.bundle.best_known(w)
        above = 0.0 if best is None else float(best.bounds.sum()) / self.n
        return float(self.l2.value(w)) + self.bundle.tangent.at(w) + above


class Subgradient(Dual):
    """Stochastic subgradient descent, Pegasos-like, with a prior and a certificate.

    Step t takes one of K blocks and goes a share 1/t of the way to the minimiser of the surrogate
    in which the subgradient of this block replaces P. Every epoch visits each block once, so that
    afterwards w belongs to multipliers that choose the outputs of all epochs equally often: a dual
    feasible point, and with it a true lower bound. The weighted mean of the iterates is judged.
    """

    def minimise(self, precision: float) -> Search:
        """Minimise the surrogate that the bundle is aimed at to a gap."""
        self.aim()
        bundle, v, w0 = self.bundle, self.bundle.tangent.v, self.l2.centre(len(self.w))
        w, mean, lower, n_blocks = self.w, self.w, self.value(), len(self._blocks)
        features, losses, steps, epochs, judged = self.features, self.losses, 0, 0, 1.0
        while True:
            if ended := self._ended(lower, precision):
                return bundle.incumbent(lower, ended)
            features, losses = features.copy(), losses.copy()
            for rows in self._shuffled():
                found = bundle.risk.penalty(w, rows)
                steps += 1
                slope = v + n_blocks * found.features.sum(axis=0) / self.n
                w = w + (w0 + self.l2.least(slope) - w) / (n_blocks + steps)
                mean = mean + 2.0 / (steps + 2.0) * (w - mean)
                features[rows] += found.features
                losses[rows] += found.losses
            epochs += 1
            self.features, self.losses = features / (epochs + 1), losses / (epochs + 1)
            self.refresh()
            lower = max(lower, self.value())
            if epochs >= judged:
                judged = max(judged + 1, RARER * judged)
                bundle.infer(mean)
                yield bundle.incumbent(lower)


def train_perceptron(
    risk: Risk,
    w: Array,
    *,
    rate: float = 0.1,
    max_epochs: int = 15,
    patience: int = 5,
    seed: int = 0,
) -> Training:
    """The averaged structured perceptron from partial annotations (Fernandes and Brefeld 2011).

    ``w <- w + rate (phi(x, y~) - phi(x, y^))`` if the prediction y^ contradicts an annotation and
    y~ is the best compatible output. An epoch visits all samples in random order, starting from
    ``w``. Training ends when an epoch makes no mistake, or when the task loss has not improved for
    ``patience`` epochs. The mean of the weights after each sample is judged after each epoch, and
    the best is kept. The objective is the mean task loss, the gap NaN, and there is no state; the
    rate takes the place of a lambda that would keep weights near the prior.
    """
    steps, nothing = list[TrainingStep](), float("nan")
    rng, summed, visited = np.random.default_rng(seed), np.zeros(len(w)), 0
    best, since, reason = w, 0, "the limit of epochs"

    def task_loss(w: Array) -> float:
        return float(risk.predictions(w).losses.sum()) / risk.n_annotations

    losses = [task_loss(w)]
    for epoch in range(max_epochs):
        mistakes = 0
        for row in rng.permutation(len(risk.samples))[:, None]:
            predicted = risk.predictions(w, row)
            if predicted.losses[0] > SATISFIED:
                mistakes += 1
                wanted = risk.completions(w, row)
                w = w + rate * (wanted.features[0] - predicted.features[0])
            summed, visited = summed + w, visited + 1
        mean = summed / visited
        losses.append(task_loss(mean))
        since += 1
        if losses[-1] < min(losses[:-1]) or (epoch == 0 and losses[1] == losses[0]):
            best, since = mean, 0
        seconds = time.perf_counter() - risk.began
        found = best, min(losses), nothing, 0, risk.n_inferences, seconds, risk.seconds
        steps.append(TrainingStep(*found))
        yield steps[-1]
        if mistakes == 0:
            reason = "an epoch without a mistake"
            break
        if since >= patience:
            reason = "the task loss stopped improving"
            break
    return TrainingResult.of(
        risk,
        steps,
        w=best,
        objective=min(losses),
        gap=nothing,
        lower_bound=nothing,
        converged=reason != "the limit of epochs",
        reason=reason,
        objectives=np.array(losses),
    )
