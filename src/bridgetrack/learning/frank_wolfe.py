"""Block-coordinate Frank-Wolfe on the dual (003; Lacoste-Julien et al. 2013).

One sample's multipliers at a time move towards the output that loss-augmented inference finds at
the present weights, by an exact line search, so that the dual never decreases. Between inferences
the same steps are made towards outputs found before, as long as these still promise a good part
of the gap: a cache of outputs whose tolerance adapts.
"""

from __future__ import annotations

import numpy as np

from bridgetrack.learning.block_dual import BlockDual, BlockLearner
from bridgetrack.learning.bounds import Half, Penalty
from bridgetrack.learning.learner import Halves, Incumbent, Search
from bridgetrack.learning.model import FloatArray, InferredBatch, IntArray
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L2

SWEEPS = 60
"""Sweeps over known outputs between two inferences, at most."""

CHECKED = 5
"""Passes after which the duality gap is computed at the latest."""

OUTPUTS = 20
"""Different outputs kept per sample; above that the one unused for longest goes."""


class FrankWolfe(BlockLearner):
    """Block-coordinate Frank-Wolfe with duality-gap stopping and weighted averaging."""

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
