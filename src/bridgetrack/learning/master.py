"""A solved master problem of the bundle method, with its certificate."""

from __future__ import annotations

from dataclasses import dataclass

from bridgetrack.learning.model import FloatArray


@dataclass(frozen=True)
class Master:
    """A solved master problem.

    Parameters
    ----------
    w
        Weights, shape (d,).
    alpha
        Multiplier of each bound, shape (m,): not negative, sum 1 within each group.
    primal
        Value of the master problem at ``w``.
    dual
        Certified lower bound on its minimum.
    backend
        Which form and back end found it.
    """

    w: FloatArray
    alpha: FloatArray
    primal: float
    dual: float
    backend: str

    @property
    def gap(self) -> float:
        """True duality gap, never negative up to rounding."""
        return self.primal - self.dual
