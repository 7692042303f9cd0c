"""The dual of a convex surrogate, one block of multipliers per sample (003, Frank-Wolfe).

In coordinates ``u = L'(w - w0)``, ``M = L L'``, the surrogate is

    lambda/2 ||u||^2 + 1/N sum_i max_y [ <psi_iy, u> + b_iy ] + <v', u> + c'
    psi = L^-1 phi,   b = Delta + <phi, w0>,   v' = L^-1 v,   c' = c + <v, w0>

and for multipliers alpha_iy >= 0 that sum to 1 for each sample, with ``psi_i = sum_y alpha_iy
psi_iy`` and ``b_i`` likewise, ``u = -(v' + 1/N sum_i psi_i) / lambda`` gives the lower bound

    D = -lambda/2 ||u||^2 + 1/N sum_i b_i + c'

What the learners that look at one block of samples at a time have in common (003).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bridgetrack.learning.bounds import Half, Penalty
from bridgetrack.learning.learner import Learner
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
