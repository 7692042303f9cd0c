"""Lower bounds on the penalty P, and the points where P has been computed.

Both depend on the training samples and their annotations alone: not on lambda, the prior, the
regulariser or the linearisation of R. That is why they can be recycled (001, section 4.2).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.risk import Tangent


class Bounds:
    """Bounds ``P(w) >= <a_k, w> + b_k``, at most about ``limit`` of them.

    Parameters
    ----------
    slopes, offsets
        Bounds to begin with, shapes (m, d) and (m,).
    limit
        Above this, bounds that are no longer active are dropped and, if need be, active ones
        collapse into their weighted mean, which keeps the value of the last master problem and
        with it convergence (000, section 1.4.3, after Do and Artieres 2012).
    """

    def __init__(self, slopes: FloatArray, offsets: FloatArray, limit: int) -> None:
        self.slopes = slopes
        self.offsets = offsets
        self.limit = max(int(limit), 2)
        self._idle: NDArray[np.intp] = np.zeros(len(offsets), dtype=np.intp)

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, slope: FloatArray, offset: float) -> None:
        """Add one bound."""
        self.slopes = np.vstack([self.slopes, slope])
        self.offsets = np.append(self.offsets, offset)
        self._idle = np.append(self._idle, 0)

    def newest_at(self, w: FloatArray) -> float:
        """Value of the bound added last."""
        return float(self.slopes[-1] @ w + self.offsets[-1])

    def clear(self) -> None:
        """Forget all bounds."""
        self._keep(np.zeros(len(self), dtype=bool))

    def prune(self, alpha: FloatArray) -> None:
        """Take note of which bounds are active, shape (m,), and drop some if there are many."""
        self._idle = np.where(alpha > 0, 0, self._idle + 1)
        if len(self) <= self.limit:
            return
        order = np.lexsort((-alpha, self._idle))
        keep = np.zeros(len(self), dtype=bool)
        keep[order[: self.limit // 2]] = True
        weight = float(alpha.sum())
        if weight > 0 and alpha[~keep].any():
            slope, offset = self.slopes.T @ alpha / weight, float(self.offsets @ alpha) / weight
            self._keep(keep)
            self.add(slope, offset)
        else:
            self._keep(keep)

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        self.slopes = self.slopes[keep]
        self.offsets = self.offsets[keep]
        self._idle = self._idle[keep]


class Iterates:
    """Points where P has been computed.

    Parameters
    ----------
    weights
        Shape (k, d).
    values, uppers
        P attained there and the upper bound on it, shapes (k,).
    """

    def __init__(self, weights: FloatArray, values: FloatArray, uppers: FloatArray) -> None:
        self.weights = weights
        self.values = values
        self.uppers = uppers

    def __len__(self) -> int:
        return len(self.values)

    def add(self, w: FloatArray, tangent: Tangent) -> None:
        """Add a point."""
        self.weights = np.vstack([self.weights, w])
        self.values = np.append(self.values, tangent.value)
        self.uppers = np.append(self.uppers, tangent.bound)

    def find(self, w: FloatArray) -> int | None:
        """Row of exactly these weights, or None."""
        rows = np.flatnonzero((self.weights == w).all(axis=1))
        return int(rows[-1]) if len(rows) else None

    def clear(self) -> None:
        """Forget all points."""
        self.weights = self.weights[:0]
        self.values = self.values[:0]
        self.uppers = self.uppers[:0]
