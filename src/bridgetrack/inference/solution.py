"""A choice of columns, which can check itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import SolverError
from bridgetrack.inference.problem import Problem

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """Chosen columns with the evidence for their optimality.

    Parameters
    ----------
    chosen
        Whether each column is chosen, shape (H,).
    value
        Objective of the choice.
    bound
        No feasible choice is better than this.
    duals
        Prices of the slots with ``C' duals >= scores`` for every allowed column, shape (S,).
    slack
        Per slot, how far the relaxation of the slot's component lies above the choice,
        shape (S,); 0 where the relaxation is whole.
    component
        Number of the slot's component among the undominated columns, shape (S,).
    """

    chosen: NDArray[np.bool_]
    value: float
    bound: float
    duals: Array
    slack: Array
    component: NDArray[np.int64]

    @property
    def gap(self) -> float:
        """How much better an unknown choice could be; 0 for a proven optimum."""
        return max(0.0, self.bound - self.value)

    def check(self, problem: Problem, scores: Array, tolerance: float = 1e-6) -> None:
        """Verify the choice from scratch.

        Raises
        ------
        SolverError
            Where a slot is not covered exactly once, or the objective or bound is wrong.
        """
        covered = problem.by_slot @ self.chosen.astype(np.float64)
        wrong = np.flatnonzero(covered != 1)
        if len(wrong):
            raise SolverError(
                f"slot {int(wrong[0])} is covered {int(covered[wrong[0]])} times instead of once"
            )
        scale = tolerance * max(1.0, abs(self.value))
        value = float(scores[self.chosen].sum())
        if abs(value - self.value) > scale:
            raise SolverError(f"the objective is {value}, not {self.value} as reported")
        if self.bound < self.value - scale:
            raise SolverError(f"the bound {self.bound} is below the objective {self.value}")
