"""Outputs per sample in the coordinates of a block dual: the working sets of Frank-Wolfe."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.block_dual import BlockDual
from bridgetrack.learning.model import FloatArray


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
