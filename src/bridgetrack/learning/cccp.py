"""Training: the concave-convex procedure with bounds recycling (001, Algorithm 1).

    J(w) = regulariser(w) + P(w) - R(w)

Iteration t replaces -R by a tangent, ``<v_t, w> + c_t``, and minimises the convex surrogate to a
gap of epsilon_t. Its best iterate becomes ``w_{t+1}`` unless J is larger there, so J never
increases. With full annotation R is linear, v_t is constant, and the same loop is BMRM.

The tangent touches R a little beyond w_t, where the last move was going (see `schedule`); the loop
ends only where the tangent at w_t itself leads nowhere either.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from bridgetrack.generators import finish
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.curriculum import paced
from bridgetrack.learning.learners import learner_for
from bridgetrack.learning.losses import Loss, Treatment, find_loss
from bridgetrack.learning.model import (
    FloatArray,
    InferredBatch,
    Sample,
    StructuredModel,
    as_samples,
)
from bridgetrack.learning.options import TrainingOptions
from bridgetrack.learning.perceptron import train_perceptron
from bridgetrack.learning.record import Record
from bridgetrack.learning.recycling import first_weights, recycled_bundle, training_state
from bridgetrack.learning.regularizers import Regularizer, check_regularizer
from bridgetrack.learning.result import History, Progress, TrainingResult, TrainingState
from bridgetrack.learning.risk import Risk
from bridgetrack.learning.schedule import Schedule
from bridgetrack.learning.surrogate import Surrogate

PERCEPTRON_EPOCHS = 15
PERCEPTRON_RATE = 0.1
"""Step of the perceptron, which has no lambda to keep it near the prior."""


def train(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    regularizer: Regularizer,
    *,
    n_annotations: float | None = None,
    loss: str | Loss = "bridge",
    treatment: Treatment = "exact",
    options: TrainingOptions | None = None,
    initial: FloatArray | None = None,
    state: TrainingState | None = None,
) -> Generator[Progress, None, TrainingResult]:
    """Learn weights; a generator that reports progress and can be closed at any time.

    Parameters
    ----------
    model
        What is learned.
    samples
        Inputs with their annotations.
    regularizer
        `L2` or `L1`, with lambda, prior and metric.
    n_annotations
        The risk is divided by this; None: the number of samples.
    loss
        One of `LOSSES`.
    treatment
        What becomes of satisfied samples, see `losses.Treatment`.
    options
        Switches and limits.
    initial
        Weights to start from; None: those of ``state``, or else the prior.
    state
        Of an earlier training with other lambda, prior, loss or annotations: whatever of it is
        still valid is used, see `TrainingState`.

    Yields
    ------
    Progress
        After each inference over all samples.

    Returns
    -------
    TrainingResult
        As the value of the generator; `fit` returns it directly.

    Raises
    ------
    InputError
        If there are no samples or no annotations, if weights, prior or metric do not fit, or if
        features or losses are not finite.
    SolverError
        If inference gives no bound or the master problem cannot be solved.
    """
    options = options or TrainingOptions()
    record = Record()
    found = as_samples(samples)
    check_regularizer(regularizer, model.n_features)
    risk = Risk(model, found, n_annotations, find_loss(loss), treatment)
    w = first_weights(model, regularizer, initial, state)
    if options.learner == "perceptron":
        return (
            yield from train_perceptron(
                model,
                found,
                n_annotations=risk.n_annotations,
                max_epochs=PERCEPTRON_EPOCHS,
                rate=PERCEPTRON_RATE,
                initial=w,
            )
        )
    if options.curriculum is not None and state is None:
        kept: dict[str, Any] = {"loss": loss, "treatment": treatment}
        return (yield from paced(train, risk, regularizer, w, options, options.curriculum, **kept))
    bundle = recycled_bundle(risk, options, state)
    learner = learner_for(bundle, regularizer)
    reward = bundle.reward(w, None)
    surrogate = tight = _linearise(bundle, regularizer, reward, w)
    schedule, objectives = Schedule(options), list[float]()
    for t in range(options.max_cccp_iterations):
        if t > 0 and not options.recycle:
            learner.forget()
        inner = learner.minimise(surrogate, w, schedule.precision)
        outcome = yield from record.follow(inner, t, bundle.counts)
        if not objectives:
            objectives.append(_value(tight, bundle, w))
        before, plain, same = w, surrogate is tight, True
        if not np.array_equal(outcome.w, w):
            completed = bundle.reward(outcome.w, reward)
            there = _linearise(bundle, regularizer, completed, outcome.w)
            if _value(there, bundle, outcome.w) <= objectives[-1]:
                same = np.array_equal(there.v, tight.v) and there.c == tight.c
                w, reward, tight = outcome.w, completed, there
        objectives.append(_value(tight, bundle, w))
        if schedule.ends(outcome.reason, same, objectives, plain=plain):
            break
        surrogate, point = tight, schedule.ahead(before, w)
        if point is not None:
            surrogate = _linearise(bundle, regularizer, bundle.reward(point, None), point)
    return TrainingResult(
        w=w.copy(),
        objective=objectives[-1],
        risk=objectives[-1] - regularizer.value(w),
        gap=outcome.gap,
        lower_bound=outcome.lower,
        converged=schedule.converged,
        reason=schedule.reason,
        objectives=np.array(objectives),
        history=History.of(record.steps),
        n_oracle_calls=risk.effort.penalty_calls,
        n_reward_calls=risk.effort.reward_calls,
        oracle_seconds=risk.effort.seconds,
        seconds=record.seconds,
        state=training_state(bundle, w),
    )


def fit(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    regularizer: Regularizer,
    *,
    callback: Callable[[Progress], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train` to its end; ``callback`` sees each `Progress`."""
    return finish(train(model, samples, regularizer, **keywords), callback)


def _linearise(
    bundle: Bundle, regularizer: Regularizer, reward: InferredBatch, w: FloatArray
) -> Surrogate:
    """Surrogate that touches J at ``w``, where the reward was found."""
    half = bundle.half(reward, w)
    return Surrogate(regularizer, half.v, half.c, half.reward)


def _value(surrogate: Surrogate, bundle: Bundle, w: FloatArray) -> float:
    """Surrogate at an iterate; where it touches, the objective J (an upper bound on it)."""
    penalty = np.array([bundle.penalty_at(w)])
    return float(surrogate.values(w[None, :], penalty)[0])
