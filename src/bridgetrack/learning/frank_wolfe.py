"""Outputs per sample in the coordinates of a block dual: the working sets of Frank-Wolfe.

Block-coordinate Frank-Wolfe on the dual (003; Lacoste-Julien et al. 2013).

One sample's multipliers at a time move towards the output that loss-augmented inference finds at
the present weights, by an exact line search, so that the dual never decreases. Between inferences
the same steps are made towards outputs found before, as long as these still promise a good part
of the gap: a cache of outputs whose tolerance adapts.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.block_dual import BlockDual, BlockLearner
from bridgetrack.learning.cutting_planes import Bundle
from bridgetrack.learning.model import FloatArray, InferredBatch, IntArray
from bridgetrack.learning.regularizers import L2
from bridgetrack.learning.surrogate import Incumbent, Surrogate


class Planes:
    """The last few different outputs of each sample.

    Parameters
    ----------
    n_samples, n_features
        Size of the problem.
    limit
        Outputs kept per sample; above that the one unused for longest goes.
    """

    def __init__(self, n_samples: int, n_features: int, limit: int = 20) -> None:
        self.psi = np.zeros((n_samples, limit, n_features))
        self.b = np.full((n_samples, limit), -np.inf)
        self.used = np.zeros((n_samples, limit), dtype=np.int64)
        self._clock = 0

    def add(self, i: int, psi: FloatArray, b: float) -> None:
        """Add an output unless it is known."""
        self._clock += 1
        same = (self.b[i] == b) & (self.psi[i] == psi).all(axis=1)
        k = int(np.argmax(same)) if same.any() else int(np.argmin(self.used[i]))
        self.psi[i, k], self.b[i, k], self.used[i, k] = psi, b, self._clock

    def gap(self, dual: BlockDual) -> float:
        """Duality gap as far as the known outputs tell: never above the true one."""
        best = (self.psi @ dual.u + self.b).max(axis=1)
        inner = dual.psi @ dual.u + dual.b
        return float(np.maximum(best - inner, 0.0).sum()) / dual.n

    def penalty(self, dual: BlockDual, u: FloatArray) -> float:
        """Lower bound on ``P + <v, .> + c`` at a point, from the known outputs."""
        best = (self.psi @ u + self.b).max(axis=1)
        return float(best.sum()) / dual.n + float(dual.linear @ u)

    def sweep(self, dual: BlockDual, order: NDArray[np.intp]) -> None:
        """One step of each sample towards its best known output."""
        self._clock += 1
        for i in order:
            values = self.psi[i] @ dual.u + self.b[i]
            k = int(np.argmax(values))
            if dual.step(int(i), self.psi[i, k], float(self.b[i, k])) > 0:
                self.used[i, k] = self._clock


SWEEPS = 60
"""Sweeps over known outputs between two inferences, at most."""

CHECKED = 5
"""Passes after which the duality gap is computed at the latest."""


class FrankWolfe(BlockLearner):
    """Block-coordinate Frank-Wolfe with duality-gap stopping and weighted averaging.

    Parameters as in `BlockLearner`.
    """

    def __init__(self, bundle: Bundle, regularizer: L2, seed: int = 0) -> None:
        super().__init__(bundle, regularizer, seed)
        self._planes: Planes | None = None
        self._mean = np.zeros(0)
        self._steps = 0

    def forget(self) -> None:
        """Drop everything learned about P."""
        super().forget()
        self._planes = None

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise a surrogate to a given gap."""
        bundle = self.bundle
        dual, planes = self._aimed(surrogate)
        if bundle.iterates.find(w) is None:
            self._learn(bundle.evaluate(surrogate, w))
            yield bundle.step(surrogate, dual.value)
        lower, passes = dual.value, 0
        while True:
            self._sweeps(precision, planes.gap(dual))
            lower = max(lower, dual.value)
            best, upper = bundle.best(surrogate)
            if upper - lower <= precision:
                return Incumbent(best, upper, lower, "converged")
            if bundle.risk.effort.penalty_calls >= bundle.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            passes += 1
            promised = self._pass() if len(self._blocks) > 1 else 0.0
            if promised <= precision or passes % CHECKED == 0:
                point = self._promising()
                if bundle.iterates.find(point) is not None:
                    return Incumbent(best, upper, max(lower, dual.value), "inexact")
                self._learn(bundle.evaluate(surrogate, point))
                yield bundle.step(surrogate, max(lower, dual.value))

    def _aimed(self, surrogate: Surrogate) -> tuple[BlockDual, Planes]:
        """The dual of a surrogate, from the multipliers of the last one."""
        if self._dual is None or self._planes is None:
            risk = self.bundle.risk
            reward = surrogate.reward
            self._dual = BlockDual(self.regularizer, risk.n_annotations, reward)
            self._planes = Planes(len(risk.samples), risk.model.n_features)
            self._remember(reward)
            known = None if self.bundle.cache is None else self.bundle.cache.snapshot()
            if known is not None:
                psi, b = self._dual.whitened(
                    InferredBatch(known.features, known.losses, known.losses)
                )
                for i, p, o in zip(known.rows, psi, b, strict=True):
                    self._planes.add(int(i), p, float(o))
        else:
            self._remember(surrogate.reward)
        self._dual.aim(surrogate)
        self._mean, self._steps = self._dual.u.copy(), 0
        return self._dual, self._planes

    def _remember(self, found: InferredBatch) -> None:
        assert self._dual is not None and self._planes is not None
        psi, b = self._dual.whitened(found)
        for i in range(len(b)):
            self._planes.add(i, psi[i], float(b[i]))

    def _learn(self, found: InferredBatch, rows: IntArray | None = None) -> float:
        """One step of some samples towards what was found; the sum of their gaps."""
        dual, planes = self._dual, self._planes
        assert dual is not None and planes is not None
        psi, b = dual.whitened(found)
        rows = np.arange(len(b)) if rows is None else rows
        total = 0.0
        for k, i in enumerate(rows):
            planes.add(int(i), psi[k], float(b[k]))
            total += max(dual.step(int(i), psi[k], float(b[k])), 0.0)
        return total

    def _pass(self) -> float:
        """Visit all blocks in random order; the sum of the gaps they had when visited."""
        dual, risk, total = self._dual, self.bundle.risk, 0.0
        assert dual is not None
        for rows in self._shuffled():
            total += self._learn(risk.penalty_of(rows, dual.weights(dual.u)), rows)
            self._steps += 1
            share = 2.0 / (self._steps + 2.0)
            self._mean = (1.0 - share) * self._mean + share * dual.u
        dual.refresh()
        return total

    def _sweeps(self, precision: float, promised: float) -> None:
        """Steps towards known outputs until they promise little of what they did at first."""
        dual, planes = self._dual, self._planes
        assert dual is not None and planes is not None
        if self.bundle.cache is None:
            return
        enough = max(0.3 * precision, 0.03 * promised)
        for _ in range(SWEEPS):
            if planes.gap(dual) <= enough:
                break
            planes.sweep(dual, self._rng.permutation(len(dual.b)))
        dual.refresh()

    def _promising(self) -> FloatArray:
        """The present weights or their weighted mean, whichever looks better."""
        dual, planes = self._dual, self._planes
        assert dual is not None and planes is not None

        def looks(u: FloatArray) -> float:
            kept = 0.5 * self.regularizer.weight * float(u @ u)
            return kept + planes.penalty(dual, u)

        u = self._mean if self._steps and looks(self._mean) < looks(dual.u) else dual.u
        return dual.weights(u)
