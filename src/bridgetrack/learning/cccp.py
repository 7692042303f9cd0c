"""CCCP with bounds recycling (001, Algorithm 1).

    J(w) = regulariser(w; lambda, w0, M) + P(w) - R(w)

P and R are those of `risk`, the regulariser is one of `regularizers`; docs/method.md has all
equations. Iteration t replaces -R by its tangent ``<v_t, w> + c_t`` at w_t and minimises the convex
surrogate J~ to a gap of epsilon_t. With full annotation and the hinge or
bridge loss R is linear, v_t is constant, and the same loop is BMRM.

J never increases: every surrogate bounds it from above and touches it at w_t, and the next w is
the best point of all at which P was computed, w_t among them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.learning.bundle import Bundle, Search
from bridgetrack.learning.result import Training, TrainingResult, TrainingStep
from bridgetrack.progress import relayed

REASONS = {
    "converged": "the wanted precision was reached",
    "inexact": "bounds cannot get tighter: inference is inexact, or satisfied samples are left out",
    "limit": "the limit of inference calls was reached",
    "iterations": "the limit of CCCP iterations was reached",
}

FIRST_PRECISION, RATE = 0.1, 0.3
"""Epsilon and rho of adaptive precision: epsilon_t = max(rho epsilon_{t-1}, epsilon_min)."""


def cccp(bundle: Bundle, minimise: Callable[[float], Search], w: Array) -> Training:
    """Minimise J from weights ``w``; ``minimise`` brings a surrogate's gap below epsilon."""
    risk, options = bundle.risk, bundle.options
    steps, objectives, reason = list[TrainingStep](), list[float](), "iterations"

    def noted(step: TrainingStep) -> TrainingStep:
        steps.append(step)
        return step

    bundle.set_tangent(risk.tangent(w), w)  # line 4 for t = 0
    epsilon = max(FIRST_PRECISION if options.adaptive else 0.0, options.precision)
    for t in range(options.max_cccp_iterations):  # line 3
        if t and not options.recycle:
            bundle.forget()
        if bundle.value(w) == np.inf:  # at t = 0, or without recycling
            bundle.add_planes_at(w, 0.0)
            yield noted(bundle.incumbent(-np.inf))
        if not objectives:
            objectives.append(bundle.value(w))  # J at the first weights
        found = yield from relayed(minimise(epsilon), noted)  # lines 6-12
        w, old = found.w, bundle.tangent  # line 13
        bundle.set_tangent(risk.tangent(w, old), w)  # line 4 for t + 1
        objectives.append(bundle.value(w))
        same = bundle.tangent.equals(old)
        settled = same or objectives[-2] - objectives[-1] <= options.precision  # line 15, eta
        if found.reason == "limit" or (settled and epsilon <= options.precision):
            reason = found.reason
            break
        epsilon = max(RATE * epsilon, options.precision)  # line 5
    bundle.w = w
    return TrainingResult.of(
        risk,
        steps,
        w=w,
        objective=objectives[-1],
        gap=found.gap,
        lower_bound=found.lower,
        converged=reason == "converged",
        reason=REASONS[reason],
        objectives=np.array(objectives),
        state=bundle,
    )
