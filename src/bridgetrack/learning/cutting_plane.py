"""The inner loop of CCCP: minimise a surrogate by cutting planes, to a certified gap.

    min_w  regulariser(w) + sum_g xi_g + <v, w> + c      s.t.  xi_g >= <a_k, w> + b_k

The minimum of this master problem over the planes known so far is a lower bound, and its minimiser
is where inference finds more planes. Planes of outputs found before are tried first; inference
follows once they would close too little of the gap.

The minimiser of a master problem with few slacks may oscillate. Once a few in a row made no real
progress over the best point, inference is done first halfway between this and the minimiser, for
the rest of the search.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.learning.bundle import Bundle, Search
from bridgetrack.learning.master_qp import solve_master
from bridgetrack.learning.result import TrainingStep

KNOWN_IN_A_ROW = 50
"""Most master problems between two inferences."""

KNOWN_RISE = 0.2
"""Share of the gap by which planes of known outputs must raise the model of P to be tried again."""

RAISED = 1e-3
"""Share of the precision by which a useful plane raises the model of P."""

FELL = 0.1
"""Share of the gap by which a point must lower it to be real progress."""

STALLED = 3
"""Minimisers in a row without real progress after which inference is done halfway to the next. On
tracking with one slack this halves the inferences; one or eight do about as well."""


def minimise(bundle: Bundle, precision: float) -> Search:
    """Minimise the surrogate of a bundle to a gap, starting from its known points.

    Yields
    ------
    TrainingStep
        After each inference over all samples.

    Returns
    -------
    TrainingStep
        The best point of all, with a true lower bound on the minimum.
    """
    tolerance, lower, stalled = RAISED * precision, -np.inf, 0
    while True:  # 001, Algorithm 1, line 6
        best = bundle.incumbent(lower)
        # Lines 9 and 10 come before 7: recycled planes may close the gap without any inference.
        query, lower = _next_point(bundle, best, precision)
        if best.objective - lower <= precision:  # line 12
            return bundle.incumbent(lower, "converged")
        if bundle.risk.n_inferences >= bundle.options.max_inferences:
            return bundle.incumbent(lower, "limit")
        # A point halfway without a new plane proves nothing: the minimiser follows.
        halfway = [0.5 * (best.w + query)] if stalled >= STALLED else []
        for point in (*halfway, query):
            risen = bundle.add_planes_at(point, tolerance) > tolerance  # lines 7 and 8
            now = bundle.incumbent(lower)
            yield now
            better = best.objective - now.objective > FELL * (best.objective - lower)
            if risen or (better and point is not query):
                break
        else:  # no plane can raise the model of P where the master problem has its minimum
            return replace(now, reason="converged" if now.gap <= precision else "inexact")
        if not halfway:
            stalled = 0 if better else stalled + 1


def _next_point(bundle: Bundle, best: TrainingStep, precision: float) -> tuple[Array, float]:
    """The next point for inference, and the lower bound on the minimum."""
    lower, tolerance = best.lower, RAISED * precision
    for _ in range(KNOWN_IN_A_ROW):
        master = solve_master(*bundle.rows(), bundle.regularizer, 1e-2 * precision)  # line 9
        bundle.prune(master.alpha)
        lower = max(lower, master.dual)
        gap = best.objective - lower  # line 10
        enough = max(0.5 * precision, KNOWN_RISE * gap)
        known = None if gap <= precision else bundle.best_known(master.w)
        if known is None or not bundle.add(known, master.w, tolerance, enough):
            break
    return master.w, lower
