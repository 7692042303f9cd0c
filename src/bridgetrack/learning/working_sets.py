"""Working sets of the n-slack method: outputs of each sample that bound its penalty."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.model import FloatArray, InferredBatch

IntArray = NDArray[np.intp]

IDLE = 10
"""Master problems without a multiplier after which an output leaves its working set."""


class WorkingSets:
    """Outputs per sample, one row each.

    Parameters
    ----------
    n_samples, n_features
        Size of the problem.
    """

    def __init__(self, n_samples: int, n_features: int) -> None:
        self.n_samples = n_samples
        self._sample: IntArray = np.zeros(0, dtype=np.intp)
        self._features = np.zeros((0, n_features))
        self._losses = np.zeros(0)
        self._idle: IntArray = np.zeros(0, dtype=np.intp)
        self._owner: IntArray = np.zeros(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self._losses)

    def clear(self) -> None:
        """Empty all sets."""
        self._keep(np.zeros(len(self), dtype=bool))

    def values(self, w: FloatArray) -> FloatArray:
        """Lower bound on each sample's penalty at ``w``, shape (n,); -inf for empty sets."""
        best = np.full(self.n_samples, -np.inf)
        np.maximum.at(best, self._sample, self._features @ w + self._losses)
        return best

    def add(self, found: InferredBatch, w: FloatArray, tolerance: float) -> int:
        """Add the outputs that raise their sample's bound at ``w``; how many did.

        Parameters
        ----------
        found
            One output per sample.
        w
            Where they are compared.
        tolerance
            Rise that counts, besides rounding.
        """
        values = found.values(w, 1)
        known = self.values(w)
        new = np.flatnonzero(values > known + tolerance + 1e-10 * (1 + np.abs(values)))
        self._sample = np.concatenate([self._sample, new])
        self._features = np.vstack([self._features, found.features[new]])
        self._losses = np.concatenate([self._losses, found.losses[new]])
        self._idle = np.concatenate([self._idle, np.zeros(len(new), dtype=np.intp)])
        return len(new)

    def rows(self, n: float, v: FloatArray, c: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Rows of the master problem, their offsets and groups.

        Samples with a single output are linear: they join the linear term ``<v, w> + c``, which
        the rows of the first group carry.
        """
        count = np.bincount(self._sample, minlength=self.n_samples)
        single = count[self._sample] == 1
        v = v + self._features[single].sum(axis=0) / n
        c = c + float(self._losses[single].sum()) / n
        self._owner = np.flatnonzero(~single)
        if not len(self._owner):
            return v[None, :], np.array([c]), np.zeros(1, dtype=np.intp)
        _, groups = np.unique(self._sample[self._owner], return_inverse=True)
        first = (groups == 0)[:, None]
        slopes = self._features[self._owner] / n + np.where(first, v, 0.0)
        offsets = self._losses[self._owner] / n + np.where(first[:, 0], c, 0.0)
        return slopes, offsets, groups.astype(np.intp)

    def prune(self, alpha: FloatArray) -> None:
        """Take note of which rows are active, and drop those that have long been idle."""
        if not len(self._owner):
            return
        active = np.zeros(len(self), dtype=bool)
        active[self._owner] = alpha > 0
        alone = np.ones(len(self), dtype=bool)
        alone[self._owner] = False
        self._idle = np.where(active | alone, 0, self._idle + 1)
        self._keep(self._idle <= IDLE)

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        for name in ("_sample", "_features", "_losses", "_idle"):
            setattr(self, name, getattr(self, name)[keep])
        self._owner = np.zeros(0, dtype=np.intp)
