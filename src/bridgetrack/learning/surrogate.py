"""A convex surrogate of the objective, and what minimising it reports (001, section 4.3).

J~(w) = regulariser(w) + P(w) + <v, w> + c,      <v, w> + c >= -R(w), equal at w_t
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.regularizers import Regularizer


@dataclass(frozen=True)
class Half:
    """The linear upper bound ``<v, w> + c`` on -R, and the outputs it is made of."""

    v: FloatArray
    c: float
    reward: InferredBatch


@dataclass(frozen=True)
class Surrogate:
    """A convex upper bound on the objective.

    Parameters
    ----------
    regularizer
        Its first term.
    v, c, reward
        As in `Half`.
    """

    regularizer: Regularizer
    v: FloatArray
    c: float
    reward: InferredBatch

    def values(self, points: FloatArray, penalties: FloatArray) -> FloatArray:
        """J~ at some points (k, d) where P is known (k,)."""
        kept = np.array([self.regularizer.value(w) for w in points])
        total: FloatArray = kept + penalties + points @ self.v + self.c
        return total


@dataclass(frozen=True)
class Incumbent:
    """The best point so far, J~ there, a lower bound on min J~, and why the search ended.

    ``w`` has the shape (d,), or (D, d) for D domains; ``reason`` is a key of `cccp.REASONS`, empty
    while the search goes on.
    """

    w: FloatArray
    objective: float
    lower: float
    reason: str = ""

    @property
    def gap(self) -> float:
        """True duality gap."""
        return self.objective - self.lower
