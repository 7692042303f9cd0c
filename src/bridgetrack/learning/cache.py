"""Outputs that inference has found before, and the bounds they give without any inference.

For every output y of sample n, ``<phi(x_n, y), w> + Delta(y_n*, y)`` is a lower bound on what
loss-augmented inference would find there, at any w. The largest of these for each sample,
summed, is a cheap bound on P (the inference cache of 003). After annotations were added, the
outputs of the samples that did not change still serve.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.model import FloatArray, InferredBatch

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class CachedOutputs:
    """Rows of a cache, to be carried over to another training."""

    rows: IntArray  # sample of each output, shape (r,)
    # features, losses: shapes (r, d) and (r,)
    features: FloatArray
    losses: FloatArray
    outputs: tuple[Any, ...]  # the outputs, or None where the model keeps none


class OutputCache:
    """Outputs found so far, per sample; above ``limit`` those not best for longest are dropped."""

    def __init__(self, n_samples: int, n_features: int, limit: int = 40_000) -> None:
        self.n_samples = n_samples
        self.limit = max(limit, 4 * n_samples)
        self._rows: IntArray = np.zeros(0, dtype=np.intp)
        self._features = np.zeros((0, n_features))
        self._losses = np.zeros(0)
        self._used: IntArray = np.zeros(0, dtype=np.intp)
        self._outputs: list[Any] = []
        self._size = 0
        self._clock = 0

    def __len__(self) -> int:
        return self._size

    def add(self, found: InferredBatch, w: FloatArray) -> None:
        """Add one output for each sample, where it beats those known at ``w``."""
        best, _ = self._best(w)
        values = found.values(w, 1)
        new = np.flatnonzero(values > best + 1e-10 * (1 + np.abs(values)))
        outputs = (
            [None] * len(new) if found.outputs is None else [found.outputs[int(i)] for i in new]
        )
        self.extend(CachedOutputs(new, found.features[new], found.losses[new], tuple(outputs)))

    def extend(self, more: CachedOutputs) -> None:
        """Add outputs without looking for doubles."""
        start, stop = self._size, self._size + len(more.rows)
        self._reserve(stop)
        self._rows[start:stop] = more.rows
        self._features[start:stop] = more.features
        self._losses[start:stop] = more.losses
        self._used[start:stop] = self._clock
        self._outputs.extend(more.outputs)
        self._size = stop
        if self._size > self.limit:
            self._evict()

    def best(self, w: FloatArray) -> InferredBatch | None:
        """The best known output of each sample at ``w`` (of f + Delta), or None if one has none."""
        best, winner = self._best(w)
        if not np.isfinite(best).all():
            return None
        self._clock += 1
        self._used[winner] = self._clock
        return InferredBatch(self._features[winner], self._losses[winner], best)

    def snapshot(self) -> CachedOutputs:
        """A copy of all outputs."""
        n = self._size
        return CachedOutputs(
            self._rows[:n].copy(),
            self._features[:n].copy(),
            self._losses[:n].copy(),
            tuple(self._outputs),
        )

    def _best(self, w: FloatArray) -> tuple[FloatArray, IntArray]:
        rows = self._rows[: self._size]
        values = self._features[: self._size] @ w + self._losses[: self._size]
        best = np.full(self.n_samples, -np.inf)
        np.maximum.at(best, rows, values)
        winner: IntArray = np.zeros(self.n_samples, dtype=np.intp)
        reached = np.flatnonzero(values >= best[rows])
        winner[rows[reached]] = reached
        return best, winner

    def _reserve(self, size: int) -> None:
        if size <= len(self._rows):
            return
        grow = max(size, 2 * len(self._rows)) - len(self._rows)
        self._rows = np.concatenate([self._rows, np.zeros(grow, dtype=np.intp)])
        self._features = np.vstack([self._features, np.zeros((grow, self._features.shape[1]))])
        self._losses = np.concatenate([self._losses, np.zeros(grow)])
        self._used = np.concatenate([self._used, np.zeros(grow, dtype=np.intp)])

    def _evict(self) -> None:
        """Keep the half used last, and the last used of each sample in any case."""
        n = self._size
        order = np.argsort(self._used[:n], kind="stable")
        last: IntArray = np.zeros(self.n_samples, dtype=np.intp)
        last[self._rows[order]] = order
        keep = np.zeros(n, dtype=bool)
        keep[order[n - self.limit // 2 :]] = True
        keep[last[np.unique(self._rows[:n])]] = True
        kept = np.flatnonzero(keep)
        for name in ("_rows", "_features", "_losses", "_used"):
            setattr(self, name, getattr(self, name)[kept])
        self._outputs = [self._outputs[i] for i in kept]
        self._size = len(kept)
