"""Learners that look at one block of samples at a time, and the dual that certifies both (003).

In coordinates ``u = L'(w - w0)``, ``M = L L'``, the surrogate is

    lambda/2 ||u||^2 + 1/N sum_i max_y [ <psi_iy, u> + b_iy ] + <v', u> + c'
    psi = L^-1 phi,   b = Delta + <phi, w0>,   v' = L^-1 v,   c' = c + <v, w0>

and for multipliers alpha_iy >= 0 that sum to 1 for each sample, with ``psi_i = sum_y alpha_iy
psi_iy`` and ``b_i`` likewise, ``u = -(v' + 1/N sum_i psi_i) / lambda`` gives the lower bound

    D = -lambda/2 ||u||^2 + 1/N sum_i b_i + c'

*Frank-Wolfe* moves the multipliers of one sample at a time, *subgradient* the weights themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bridgetrack.learning.bounds import Half, Penalty
from bridgetrack.learning.learner import Halves, Incumbent, Learner, Search
from bridgetrack.learning.model import FloatArray, InferredBatch, IntArray, blocks_of
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L2, centre, unwhiten, whiten


class BlockDual:
    """A dual feasible point, kept across surrogates of the same penalty; n divides the risk.

    The multipliers begin with the outputs of ``start``, one for each sample.
    """

    def __init__(self, regularizer: L2, n_annotations: float, start: InferredBatch) -> None:
        self.regularizer = regularizer
        self.n = n_annotations
        self.w0 = centre(regularizer, start.features.shape[1])
        self.psi, self.b = self.whitened(start)
        self.u = np.zeros_like(self.w0)
        self._v = np.zeros_like(self.w0)
        self._c = 0.0

    def whitened(self, found: InferredBatch) -> tuple[FloatArray, FloatArray]:
        """``psi`` and ``b`` of some outputs, shapes (k, d) and (k,)."""
        rows = whiten(self.regularizer.metric, found.features)
        return np.array(rows), found.losses + found.features @ self.w0

    def aim(self, half: Half) -> None:
        """Take another linear term; the multipliers stay feasible."""
        self._v = whiten(self.regularizer.metric, half.v[None, :])[0]
        self._c = half.c + float(half.v @ self.w0)
        self.refresh()

    def refresh(self) -> None:
        """Compute u anew from the multipliers, without the rounding of many small steps."""
        self.u = -(self._v + self.psi.sum(axis=0) / self.n) / self.regularizer.weight

    @property
    def value(self) -> float:
        """D: a lower bound on the minimum of the surrogate."""
        kept = -0.5 * self.regularizer.weight * float(self.u @ self.u)
        return kept + float(self.b.sum()) / self.n + self._c

    def value_of(self, psi: FloatArray, b: float) -> float:
        """D of other multipliers, given by their sums ``psi`` (d,) and ``b`` over all samples."""
        u = -(self._v + psi / self.n) / self.regularizer.weight
        return -0.5 * self.regularizer.weight * float(u @ u) + b / self.n + self._c

    @property
    def linear(self) -> FloatArray:
        """``v'``, shape (d,)."""
        return self._v

    def weights(self, u: FloatArray) -> FloatArray:
        """w of a point u."""
        return np.asarray(self.w0 + unwhiten(self.regularizer.metric, u))

    def step(self, i: int, psi: FloatArray, b: float) -> float:
        """Move the multipliers of sample ``i`` towards one output, as far as D rises most.

        Along ``alpha_i + eta (e_y - alpha_i)`` D changes by ``eta g - eta^2/2 ||d||^2/(lambda
        N^2)`` with ``d = psi_iy - psi_i`` and the block's gap ``g = (<d, u> + b_iy - b_i) / N``.
        Returns this gap; where it is not positive nothing is changed.
        """
        direction = psi - self.psi[i]
        gap = (float(direction @ self.u) + b - float(self.b[i])) / self.n
        if gap <= 0:
            return gap
        steep = float(direction @ direction) / (self.regularizer.weight * self.n**2)
        eta = 1.0 if gap >= steep else gap / steep
        self.psi[i] += eta * direction
        self.b[i] += eta * (b - self.b[i])
        self.u -= direction * (eta / (self.regularizer.weight * self.n))
        return gap


class BlockLearner(Learner):
    """A learner that looks at one block of samples at a time: blocks in random order (003)."""

    def __init__(self, penalty: Penalty, regularizer: L2, options: LearningOptions) -> None:
        super().__init__([penalty], regularizer, options)
        self.penalty = penalty
        self._l2 = regularizer
        self._rng = np.random.default_rng(0)
        risk = penalty.risk
        self._blocks: Sequence[IntArray] = blocks_of(risk.model, risk.samples)

    def _dual_of(self, half: Half) -> BlockDual:
        """A dual whose multipliers choose the outputs of a reward term."""
        return BlockDual(self._l2, self.penalty.risk.n_annotations, half.reward)

    def _shuffled(self) -> Iterator[IntArray]:
        """All blocks, in random order."""
        for number in self._rng.permutation(len(self._blocks)):
            yield self._blocks[int(number)]


SWEEPS = 60
"""Sweeps over known outputs between two inferences, at most."""

CHECKED = 5
"""Passes after which the duality gap is computed at the latest."""

OUTPUTS = 20
"""Different outputs kept per sample; above that the one unused for longest goes."""


class FrankWolfe(BlockLearner):
    """Block-coordinate Frank-Wolfe on the dual (003; Lacoste-Julien et al. 2013).

    One sample's multipliers at a time move towards the output that loss-augmented inference finds
    at the present weights, by an exact line search, so that the dual never decreases. Between
    inferences the same steps are made towards outputs found before, as long as these still promise
    a good part of the gap: a cache of outputs whose tolerance adapts.
    """

    def __init__(self, penalty: Penalty, regularizer: L2, options: LearningOptions) -> None:
        super().__init__(penalty, regularizer, options)
        self._ascent: _Ascent | None = None

    def forget(self) -> None:
        """Drop everything learned about P."""
        super().forget()
        self._ascent = None

    def minimise(self, halves: Halves, weights: FloatArray, precision: float) -> Search:
        """Minimise a surrogate to a given gap."""
        ascent = self._aimed(halves[0])
        dual = ascent.dual
        self.trim(halves, weights)
        if not self.knows(weights):
            ascent.learn(self.ask(halves, weights)[0])
            yield self.incumbent(halves, dual.value)
        lower, passes = dual.value, 0
        while True:
            self._sweep(ascent, precision)
            lower = max(lower, dual.value)
            best, upper = self.best(halves)
            if upper - lower <= precision:
                return Incumbent(best, upper, lower, "converged")
            if self.n_inferences >= self.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            passes += 1
            promised = self._pass(ascent) if len(self._blocks) > 1 else 0.0
            if promised <= precision or passes % CHECKED == 0:
                point = dual.weights(ascent.promising())[None, :]
                if self.knows(point):
                    return Incumbent(best, upper, max(lower, dual.value), "inexact")
                ascent.learn(self.ask(halves, point)[0])
                yield self.incumbent(halves, max(lower, dual.value))

    def _aimed(self, half: Half) -> _Ascent:
        """The dual of a surrogate, from the multipliers of the last one."""
        if self._ascent is None:
            self._ascent = _Ascent(self._dual_of(half))
            self._ascent.remember(half.reward)
            if self.penalty.cache is not None:
                known = self.penalty.cache.snapshot()
                found = InferredBatch(known.features, known.losses, known.losses)
                self._ascent.remember(found, known.rows)
        else:
            self._ascent.remember(half.reward)
        self._ascent.aim(half)
        return self._ascent

    def _pass(self, ascent: _Ascent) -> float:
        """Visit all blocks in random order; the sum of the gaps they had when visited."""
        dual, total = ascent.dual, 0.0
        for rows in self._shuffled():
            found = self.penalty.risk.penalty_of(rows, dual.weights(dual.u))
            total += ascent.learn(found, rows)
            ascent.average()
        dual.refresh()
        return total

    def _sweep(self, ascent: _Ascent, precision: float) -> None:
        """Steps towards known outputs until they promise little of what they did at first."""
        if self.penalty.cache is None:
            return
        enough = max(0.3 * precision, 0.03 * ascent.gap)
        for _ in range(SWEEPS):
            if ascent.gap <= enough:
                break
            ascent.sweep(self._rng.permutation(len(ascent.dual.b)))
        ascent.dual.refresh()


class _Ascent:
    """A dual on its way up, the weighted mean of its points, and outputs known of each sample."""

    def __init__(self, dual: BlockDual) -> None:
        self.dual = dual
        n, d = dual.psi.shape
        self.psi = np.zeros((n, OUTPUTS, d))
        self.b = np.full((n, OUTPUTS), -np.inf)
        self.used = np.zeros((n, OUTPUTS), dtype=np.int64)
        self._clock = 0

    def aim(self, half: Half) -> None:
        """Take another surrogate."""
        self.dual.aim(half)
        self._mean, self._steps = self.dual.u.copy(), 0

    def remember(self, found: InferredBatch, rows: IntArray | None = None) -> None:
        """Add outputs of some samples (None: of all) unless they are known."""
        psi, b = self.dual.whitened(found)
        for k, i in enumerate(np.arange(len(b)) if rows is None else rows):
            self._add(int(i), psi[k], float(b[k]))

    def learn(self, found: InferredBatch, rows: IntArray | None = None) -> float:
        """One step of some samples towards what was found; the sum of their gaps."""
        psi, b = self.dual.whitened(found)
        total = 0.0
        for k, i in enumerate(np.arange(len(b)) if rows is None else rows):
            self._add(int(i), psi[k], float(b[k]))
            total += max(self.dual.step(int(i), psi[k], float(b[k])), 0.0)
        return total

    def sweep(self, order: IntArray) -> None:
        """One step of each sample towards its best known output."""
        self._clock += 1
        for i in order:
            values = self.psi[i] @ self.dual.u + self.b[i]
            k = int(np.argmax(values))
            if self.dual.step(int(i), self.psi[i, k], float(self.b[i, k])) > 0:
                self.used[i, k] = self._clock

    @property
    def gap(self) -> float:
        """Duality gap as far as the known outputs tell: never above the true one."""
        dual = self.dual
        best = (self.psi @ dual.u + self.b).max(axis=1)
        return float(np.maximum(best - (dual.psi @ dual.u + dual.b), 0.0).sum()) / dual.n

    def average(self) -> None:
        """Take note of the present point."""
        self._steps += 1
        share = 2.0 / (self._steps + 2.0)
        self._mean = (1.0 - share) * self._mean + share * self.dual.u

    def promising(self) -> FloatArray:
        """The present point or the weighted mean, whichever looks better."""
        better = self._steps and self._looks(self._mean) < self._looks(self.dual.u)
        return self._mean if better else self.dual.u

    def _looks(self, u: FloatArray) -> float:
        """The surrogate at a point as far as the known outputs tell: a lower bound."""
        dual = self.dual
        best = (self.psi @ u + self.b).max(axis=1)
        kept = 0.5 * dual.regularizer.weight * float(u @ u)
        return kept + (float(best.sum()) / dual.n + float(dual.linear @ u))

    def _add(self, i: int, psi: FloatArray, b: float) -> None:
        self._clock += 1
        same = (self.b[i] == b) & (self.psi[i] == psi).all(axis=1)
        k = int(np.argmax(same)) if same.any() else int(np.argmin(self.used[i]))
        self.psi[i, k], self.b[i, k], self.used[i, k] = psi, b, self._clock


RARER = 1.2
"""The mean is judged after epoch 1, 2, ... and then each time at so many times the epochs."""


class Subgradient(BlockLearner):
    """Stochastic subgradient descent, Pegasos-like, with a prior and a certificate (003).

    Step t looks at one of K blocks, ``u <- (1 - 1/t) u - (v' + K g_t) / (lambda t)`` with ``g_t``
    the subgradient of its penalty. Every epoch visits each block once, so that after an epoch u is
    what dual multipliers give that choose the outputs of all epochs equally often: a dual feasible
    point, and with it a true lower bound. The weighted mean of the iterates is judged.
    """

    def __init__(self, penalty: Penalty, regularizer: L2, options: LearningOptions) -> None:
        super().__init__(penalty, regularizer, options)
        self._dual: BlockDual | None = None

    def forget(self) -> None:
        """Drop everything learned about P."""
        super().forget()
        self._dual = None

    def minimise(self, halves: Halves, weights: FloatArray, precision: float) -> Search:
        """Minimise a surrogate to a given gap."""
        if self._dual is None:
            self._dual = self._dual_of(halves[0])
        self._dual.aim(halves[0])
        lower = self._dual.value
        self.trim(halves, weights)
        if not self.knows(weights):
            self.ask(halves, weights)
            yield self.incumbent(halves, lower)
        walk, judged = _Walk(self._dual), 1.0
        while True:
            best, upper = self.best(halves)
            if upper - lower <= precision:
                return Incumbent(best, upper, lower, "converged")
            if self.n_inferences >= self.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            self._epoch(walk)
            lower = max(lower, walk.lower)
            if walk.epochs >= judged:
                judged = max(judged + 1, RARER * judged)
                self.ask(halves, self._dual.weights(walk.mean)[None, :])
                yield self.incumbent(halves, lower)

    def _epoch(self, walk: _Walk) -> None:
        """Visit all blocks in random order."""
        for rows in self._shuffled():
            found = self.penalty.risk.penalty_of(rows, walk.dual.weights(walk.u))
            psi, b = walk.dual.whitened(found)
            walk.step(rows, psi, b, len(self._blocks))
        walk.close()


class _Walk:
    """The present point, its weighted mean, and the multipliers that belong to it.

    The start counts as epoch 0, which had the multipliers of ``dual``.
    """

    def __init__(self, dual: BlockDual) -> None:
        self.dual = dual
        self.u = dual.u.copy()
        self.mean = dual.u.copy()
        self.epochs = 0
        self.lower = dual.value
        self._steps = 0
        self._psi, self._b = dual.psi.copy(), dual.b.copy()

    def step(self, rows: IntArray, psi: FloatArray, b: FloatArray, n_blocks: int) -> None:
        """Take the subgradient of a block into account."""
        dual, weight = self.dual, self.dual.regularizer.weight
        self._steps += 1
        share = 1.0 / (n_blocks + self._steps)
        self.u = (1 - share) * self.u
        self.u -= (dual.linear + n_blocks * psi.sum(axis=0) / dual.n) * (share / weight)
        self._psi[rows] += psi
        self._b[rows] += b
        mixed = 2.0 / (self._steps + 2.0)
        self.mean = (1 - mixed) * self.mean + mixed * self.u

    def close(self) -> None:
        """End an epoch: the mean of what was found is dual feasible."""
        self.epochs += 1
        dual, count = self.dual, self.epochs + 1
        self.lower = dual.value_of(self._psi.sum(axis=0) / count, float(self._b.sum()) / count)
        dual.psi, dual.b = self._psi / count, self._b / count
        dual.refresh()
