"""Training: the concave-convex procedure with bounds recycling (001, Algorithm 1).

    J(w) = regulariser(w) + P(w) - R(w)

Iteration t replaces -R by a tangent, ``<v_t, w> + c_t``, and minimises the convex surrogate to a
gap of epsilon_t (see `descent`). With full annotation R is linear, v_t is constant, and the same
loop is BMRM.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Any

import numpy as np

from bridgetrack.generators import finish
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.curriculum import paced
from bridgetrack.learning.descent import descend
from bridgetrack.learning.learners import Learner, learner_for
from bridgetrack.learning.losses import Loss, Treatment, find_loss
from bridgetrack.learning.model import (
    FloatArray,
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
from bridgetrack.learning.surrogate import Outcome, Step, Surrogate

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
    objective = _Objective(bundle, learner, regularizer)
    end = yield from descend(objective, w, options, record)
    return TrainingResult(
        w=end.w.copy(),
        objective=float(end.objectives[-1]),
        risk=float(end.objectives[-1]) - regularizer.value(end.w),
        gap=end.outcome.gap,
        lower_bound=end.outcome.lower,
        converged=end.schedule.converged,
        reason=end.schedule.reason,
        objectives=end.objectives,
        history=History.of(record.steps),
        n_oracle_calls=risk.effort.penalty_calls,
        n_reward_calls=risk.effort.reward_calls,
        oracle_seconds=risk.effort.seconds,
        seconds=record.seconds,
        state=training_state(bundle, end.w),
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


class _Objective:
    """J, bounded by surrogates that a learner minimises."""

    def __init__(self, bundle: Bundle, learner: Learner, regularizer: Regularizer) -> None:
        self.counts = bundle.counts
        self._bundle, self._learner, self._regularizer = bundle, learner, regularizer
        self._begun = False

    def touching(self, w: FloatArray, near: Surrogate | None) -> Surrogate:
        reward = self._bundle.reward(w, None if near is None else near.reward)
        half = self._bundle.half(reward, w)
        return Surrogate(self._regularizer, half.v, half.c, half.reward)

    def value(self, surrogate: Surrogate, w: FloatArray) -> float:
        penalty = np.array([self._bundle.penalty_at(w)])
        return float(surrogate.values(w[None, :], penalty)[0])

    def same(self, one: Surrogate, other: Surrogate) -> bool:
        return np.array_equal(one.v, other.v) and one.c == other.c

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Step, None, Outcome]:
        if self._begun and not self._bundle.options.recycle:
            self._learner.forget()
        self._begun = True
        return self._learner.minimise(surrogate, w, precision)
