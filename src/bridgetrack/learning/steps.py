"""Where the bundle method looks next: at the minimiser of its model, or near it.

With L2 the minimiser of the master problem is a good next point. With L1 it leaps from corner to
corner; so the next point is pulled towards the best one so far, and the linear problem is solved
only for its lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from bridgetrack.learning.l1 import solve_l1_master, solve_l1_proximal
from bridgetrack.learning.l2 import solve_l2_master
from bridgetrack.learning.master import Master
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.options import TrainingOptions
from bridgetrack.learning.regularizers import L1, L2, Regularizer


@dataclass(frozen=True)
class Enclosed:
    """The best point so far, and what the minimum lies between."""

    best: FloatArray
    lower: float
    upper: float


class Steps(Protocol):
    """Chooses the next point from bounds ``<a_k, w> + b_k``, the last of slope zero."""

    def propose(
        self, slopes: FloatArray, offsets: FloatArray, enclosed: Enclosed, precision: float
    ) -> Master:
        """Next point, and the lower bound that its multipliers prove."""
        ...

    def certify(self, slopes: FloatArray, offsets: FloatArray) -> float:
        """Lower bound on the minimum, where `propose` gives only a weak one; else -inf."""
        ...

    def judge(self, raised: bool) -> bool:
        """Take note of whether the last point raised the model there; False: it is useless."""
        ...


def steps_for(regularizer: Regularizer, options: TrainingOptions) -> Steps:
    """Steps for a regulariser."""
    if isinstance(regularizer, L1):
        return ProximalSteps(regularizer)
    return DirectSteps(regularizer, options)


class DirectSteps:
    """The minimiser of the master problem (L2)."""

    def __init__(self, regularizer: L2, options: TrainingOptions) -> None:
        self.regularizer = regularizer
        self.options = options

    def propose(
        self, slopes: FloatArray, offsets: FloatArray, enclosed: Enclosed, precision: float
    ) -> Master:
        """Minimiser of the master problem."""
        return solve_l2_master(
            slopes,
            offsets,
            self.regularizer,
            form=self.options.form,
            backend=self.options.backend,
            tolerance=1e-3 * precision,
        )

    def certify(self, slopes: FloatArray, offsets: FloatArray) -> float:
        """Nothing to add."""
        return -np.inf

    def judge(self, raised: bool) -> bool:
        """Useless once the model is exact at its own minimiser."""
        return raised


class ProximalSteps:
    """The minimiser pulled towards the best point (L1).

    In units of the objective, a gap spread evenly over d weights is d steps of ``gap / d``, and
    the pull at which these cost as much as they can gain is of the order of ``d / gap``.
    """

    def __init__(self, regularizer: L1, strength: float = 10.0) -> None:
        self.regularizer = regularizer
        self.strength = strength
        self._direct = False
        self._asked = False
        self._upper = np.inf

    def propose(
        self, slopes: FloatArray, offsets: FloatArray, enclosed: Enclosed, precision: float
    ) -> Master:
        """Minimiser of the master problem with a pull, or without once that is exhausted."""
        self._adapt(enclosed.upper)
        found = None
        if not self._direct:
            span = min(max(enclosed.upper - enclosed.lower, precision), 1.0)
            pull = self.strength * slopes.shape[1] / span
            found = solve_l1_proximal(slopes, offsets, self.regularizer, enclosed.best, pull)
        return solve_l1_master(slopes, offsets, self.regularizer) if found is None else found

    def certify(self, slopes: FloatArray, offsets: FloatArray) -> float:
        """Minimum of the linear problem."""
        return solve_l1_master(slopes, offsets, self.regularizer).dual

    def judge(self, raised: bool) -> bool:
        """Where the model is exact already, go further; useless if that was the minimiser."""
        self._asked = True
        if raised:
            self._direct = False
            return True
        useless, self._direct = self._direct, True
        self.strength *= 0.3
        return not useless

    def _adapt(self, upper: float) -> None:
        """Pull less after a point that was better, more after one that was not."""
        if self._asked:
            better = upper < self._upper
            self.strength = float(np.clip(self.strength * (0.5 if better else 1.5), 0.5, 50.0))
            self._asked = False
        self._upper = upper
