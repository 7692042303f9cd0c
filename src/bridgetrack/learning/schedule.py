"""How precisely CCCP solves each of its convex problems, where from, and when it ends.

Precision and end are those of 001, Algorithm 1. Where the next problem touches is not: at the
minimiser of one surrogate the completions it was made of are often exactly tied with others, which
it kept from getting any better than them. The tangent of R made of the old ones leads nowhere from
there, that of the others does. A small step further in the direction of the last move breaks the
ties in favour of the others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bridgetrack.learning.model import FloatArray
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
        self._ahead = True
        self._reason = "iterations"

    @property
    def converged(self) -> bool:
        """Whether the wanted precision was reached."""
        return self._reason == "converged"

    @property
    def reason(self) -> str:
        """Why the procedure ended, in words."""
        return REASONS[self._reason]

    def ends(
        self, reason: str, same: bool, objectives: Sequence[float], *, plain: bool = True
    ) -> bool:
        """Whether an iteration was the last; if it was not, the next is more precise.

        Parameters
        ----------
        reason
            Why its inner loop ended, a key of `REASONS`.
        same
            Whether the surrogate is the same where it was linearised anew.
        objectives
            Objective after each iteration so far, the first at the start.
        plain
            Whether its surrogate touched the objective at the weights it started from; otherwise
            it cannot be the last.
        """
        options = self._options
        idle = same or objectives[-2] - objectives[-1] <= options.enough
        settled = plain and idle and self.precision <= options.precision
        if settled or reason == "limit":
            self._reason = reason
            return True
        self._ahead = plain or not idle
        if options.adaptive:
            self.precision = max(options.precision_rate * self.precision, options.precision)
        return False

    def ahead(self, before: FloatArray, w: FloatArray) -> FloatArray | None:
        """Where the next surrogate shall touch instead of at ``w``; None for ``w`` itself.

        Parameters
        ----------
        before, w
            Weights before and after the last iteration.
        """
        step = self._options.overshoot
        if step == 0 or not self._ahead or np.array_equal(before, w):
            return None
        return np.asarray(w + step * (w - before))
