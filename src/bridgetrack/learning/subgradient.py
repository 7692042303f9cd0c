"""The stochastic subgradient method, Pegasos-like, with a prior and a certificate (003).

Step t looks at one of K blocks of samples, ``u <- (1 - 1/t) u - (v' + K g_t) / (lambda t)`` with
``g_t`` the subgradient of that block's penalty. Every epoch visits each block once, so that after
an epoch u is what dual multipliers give that choose the outputs of all epochs equally often: a
dual feasible point, and with it a true lower bound. The weighted mean of the iterates is judged.
"""

from __future__ import annotations

from bridgetrack.learning.block_dual import BlockDual, BlockLearner
from bridgetrack.learning.bounds import Penalty
from bridgetrack.learning.learner import Halves, Incumbent, Search
from bridgetrack.learning.model import FloatArray, IntArray
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L2

RARER = 1.2
"""The mean is judged after epoch 1, 2, ... and then each time at so many times the epochs."""


class Subgradient(BlockLearner):
    """Stochastic subgradient descent on the surrogate."""

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
