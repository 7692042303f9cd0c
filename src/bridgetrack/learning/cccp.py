"""CCCP with bounds recycling (001, Algorithm 1).

    J(w) = regulariser(w; lambda, w0, M) + P(w) - R(w)

P and R are those of `risk`, the regulariser is one of `regularizers`; docs/method.md has all
equations. Iteration t replaces -R by its tangent ``<v_t, w> + c_t`` at w_t and minimises the convex
surrogate J~ to a gap of epsilon_t. With full annotation and the hinge or
bridge loss R is linear, v_t is constant, and the same loop is BMRM.

Every surrogate bounds J from above and touches it at w_t. Its best point becomes the next w unless
J is larger there, as inexact inference allows, so J never increases.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError
from bridgetrack.learning import cutting_plane
from bridgetrack.learning.bundle import Bundle, Incumbent
from bridgetrack.learning.cutting_plane import Search
from bridgetrack.learning.online import FrankWolfe, Subgradient
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L2, Regularizer
from bridgetrack.learning.result import Training, TrainingResult, TrainingStep
from bridgetrack.learning.risk import Risk
from bridgetrack.progress import relayed

REASONS = {
    "converged": "the wanted precision was reached",
    "inexact": "bounds cannot get tighter: inference is inexact, or satisfied samples are left out",
    "limit": "the limit of inference calls was reached",
    "iterations": "the limit of CCCP iterations was reached",
}

MAX_SLACKS = 40
"""A master problem's time grows steeply with its slacks, the inferences saved do not."""


def cccp(
    risk: Risk,
    regularizer: Regularizer,
    options: LearningOptions,
    w: Array,
    state: Bundle | None = None,
) -> Training:
    """001, Algorithm 1; its lines 6 to 12 are the inner loop, `cutting_plane.minimise`."""
    start, steps = time.perf_counter(), list[TrainingStep]()

    def report(best: Incumbent) -> TrainingStep:
        # every surrogate bounds the objective from above, so the least value so far does
        upper = min([best.upper, *(step.objective for step in steps[-1:])])
        seconds, calls = time.perf_counter() - start, risk.n_inferences
        steps.append(
            TrainingStep(upper, best.gap, len(bundle.planes), calls, seconds, risk.seconds, best.w)
        )
        return steps[-1]

    bundle, minimise = _learner_for(risk, regularizer, options)
    if state is not None:
        bundle.take_over(state)
    bundle.aim(risk.tangent(w), w)  # line 4 for t = 0
    objectives: list[float] = []
    epsilon, reason = options.first_precision, "iterations"
    for t in range(options.max_cccp_iterations):  # line 3
        if t and not options.recycle:
            bundle.forget()
        if bundle.known_penalty(w) is None:  # at t = 0, or without recycling
            bundle.add_planes_at(w, 0.0)
            yield report(bundle.incumbent(-np.inf))
        if not objectives:  # J(w_0), which the first step must not exceed
            objectives.append(bundle.value(w))
        found = yield from relayed(minimise(epsilon), report)  # lines 6-12
        old, new = bundle.tangent, risk.tangent(found.w, bundle.tangent)  # line 4 for t + 1
        bundle.aim(new, found.w)
        value = bundle.value(found.w)
        if value <= objectives[-1]:
            w = found.w  # line 13
        else:  # refused, as after inexact inference: w stays, and so do J and the tangent
            bundle.aim(old, w)
            new, value = old, objectives[-1]
        objectives.append(value)
        same = bool(np.array_equal(new.v, old.v)) and new.c == old.c
        settled = same or objectives[-2] - value <= options.precision  # line 15, eta
        if found.reason == "limit" or (settled and epsilon <= options.precision):
            reason = found.reason
            break
        epsilon = max(options.precision_rate * epsilon, options.precision)  # line 5
    bundle.w = w.copy()
    return TrainingResult(
        w=bundle.w,
        objective=objectives[-1],
        gap=found.gap,
        lower_bound=found.lower,
        converged=reason == "converged",
        reason=REASONS[reason],
        objectives=np.array(objectives),
        steps=tuple(steps),
        n_inferences=risk.n_inferences,
        n_reward_inferences=risk.n_reward_inferences,
        inference_seconds=risk.seconds,
        seconds=time.perf_counter() - start,
        state=bundle,
    )


def _learner_for(
    risk: Risk, regularizer: Regularizer, options: LearningOptions
) -> tuple[Bundle, Callable[[float], Search]]:
    """What is known of P, and the learner that minimises surrogates to a gap."""
    quickest = "n-slack" if isinstance(regularizer, L2) and not risk.literal else "1-slack"
    name = options.learner or quickest
    n_groups = min(len(risk.samples), MAX_SLACKS) if name == "n-slack" else 1
    bundle = Bundle(risk, regularizer, n_groups, options.max_bounds, options.cache)
    if name != "1-slack" and not isinstance(regularizer, L2):
        raise InputError(f"the learner {name!r} needs the l2 regulariser; choose 1-slack for l1")
    if name in ("1-slack", "n-slack"):
        return bundle, partial(cutting_plane.minimise, bundle, options)
    if risk.literal:
        raise InputError(
            f"the learner {name!r} cannot leave satisfied samples out; choose the treatment "
            "'exact', or the learner 1-slack"
        )
    online = FrankWolfe if name == "frank-wolfe" else Subgradient
    return bundle, online(bundle, options).minimise
