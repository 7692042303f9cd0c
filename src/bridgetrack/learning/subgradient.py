"""The stochastic subgradient method, Pegasos-like, with a prior and a certificate (003).

Step t looks at one of K blocks of samples, ``u <- (1 - 1/t) u - (v' + K g_t) / (lambda t)`` with
``g_t`` the subgradient of that block's penalty. Every epoch visits each block once, so that after
an epoch u is what dual multipliers give that choose the outputs of all epochs equally often: a
dual feasible point, and with it a true lower bound. The weighted mean of the iterates is judged.
"""

from __future__ import annotations

from collections.abc import Generator

from bridgetrack.learning.block_dual import BlockDual, BlockLearner
from bridgetrack.learning.model import FloatArray, IntArray
from bridgetrack.learning.surrogate import Incumbent, Surrogate

RARER = 1.2
"""The mean is judged after epoch 1, 2, ... and then each time at so many times the epochs."""


class Subgradient(BlockLearner):
    """Stochastic subgradient descent on the surrogate; parameters as in `BlockLearner`."""

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise a surrogate to a given gap."""
        bundle = self.bundle
        if self._dual is None:
            n = bundle.risk.n_annotations
            self._dual = BlockDual(self.regularizer, n, surrogate.reward)
        self._dual.aim(surrogate)
        lower = self._dual.value
        if bundle.iterates.find(w) is None:
            bundle.evaluate(surrogate, w)
            yield bundle.step(surrogate, lower)
        walk, judged = _Walk(self._dual), 1.0
        while True:
            best, upper = bundle.best(surrogate)
            if upper - lower <= precision:
                return Incumbent(best, upper, lower, "converged")
            if bundle.risk.effort.penalty_calls >= bundle.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            self._epoch(walk)
            lower = max(lower, walk.lower)
            if walk.epochs >= judged:
                judged = max(judged + 1, RARER * judged)
                bundle.evaluate(surrogate, self._dual.weights(walk.mean))
                yield bundle.step(surrogate, lower)

    def _epoch(self, walk: _Walk) -> None:
        """Visit all blocks in random order."""
        for rows in self._shuffled():
            found = self.bundle.risk.penalty_of(rows, walk.dual.weights(walk.u))
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
