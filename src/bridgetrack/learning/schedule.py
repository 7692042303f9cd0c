"""How precisely CCCP solves each of its convex problems, and when it ends (001, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

from bridgetrack.learning.options import TrainingOptions

REASONS = {
    "converged": "the wanted precision was reached",
    "oracle": "bounds cannot get tighter: inference is inexact, or satisfied samples are left out",
    "limit": "the limit of inference calls was reached",
    "iterations": "the limit of CCCP iterations was reached",
}


class Schedule:
    """The precision of the present iteration, and why the procedure ended.

    Parameters
    ----------
    options
        Precisions and the smallest gain worth going on.
    """

    def __init__(self, options: TrainingOptions) -> None:
        self.precision = options.first_precision
        self._options = options
        self._reason = "iterations"

    @property
    def converged(self) -> bool:
        """Whether the wanted precision was reached."""
        return self._reason == "converged"

    @property
    def reason(self) -> str:
        """Why the procedure ended, in words."""
        return REASONS[self._reason]

    def ends(self, reason: str, same: bool, objectives: Sequence[float]) -> bool:
        """Whether an iteration was the last; if it was not, the next is more precise.

        Parameters
        ----------
        reason
            Why its inner loop ended, a key of `REASONS`.
        same
            Whether the surrogate is the same where it was linearised anew.
        objectives
            Objective after each iteration so far, the first at the start.
        """
        options = self._options
        gained = objectives[-2] - objectives[-1]
        settled = self.precision <= options.precision and (same or gained <= options.enough)
        if settled or reason == "limit":
            self._reason = reason
            return True
        if options.adaptive:
            self.precision = max(options.precision_rate * self.precision, options.precision)
        return False
