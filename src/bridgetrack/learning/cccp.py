"""Training: the concave-convex procedure with bounds recycling (001, Algorithm 1).

    J(w) = regulariser(w) + sum_d [ P^d(w^d) - R^d(w^d) ]

Iteration t replaces every -R^d by a tangent, ``<v_t, w> + c_t``, and minimises the convex surrogate
to a gap of epsilon_t. With full annotation R is linear, v_t is constant, and the same loop is BMRM.

Every surrogate bounds J from above and touches it somewhere. Its best point becomes the next w
unless J is larger there, so J never increases. Precision and end are those of Algorithm 1.

Plain training has one domain. Joint training (000, eq. 1.9) has several, held together by a
`Coupling`: with one domain it is plain training with ``lambda' = tau = rho lambda / (rho +
lambda)``; for lambda = inf training of each domain on its own with rho; for rho = inf training on
the union, on the sum of the domains' risks, with lambda.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.learning.block_learners import FrankWolfe, Subgradient
from bridgetrack.learning.bounds import Penalty, recycled_penalty, training_state
from bridgetrack.learning.curriculum import paced
from bridgetrack.learning.cutting_planes import CuttingPlanes
from bridgetrack.learning.learner import Halves, Incumbent, Learner
from bridgetrack.learning.losses import Loss, Treatment, find_loss
from bridgetrack.learning.model import (
    FloatArray,
    Sample,
    StructuredModel,
    as_samples,
    checked_weights,
)
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.perceptron import train_perceptron
from bridgetrack.learning.regularizers import L2, Coupling, Regularizer, centre, check_regularizer
from bridgetrack.learning.result import TrainingHistory, TrainingResult, TrainingState, TrainingStep
from bridgetrack.learning.risk import Risk
from bridgetrack.progress import relayed, run

PERCEPTRON_EPOCHS = 15
PERCEPTRON_RATE = 0.1
"""Step of the perceptron, which has no lambda to keep it near the prior."""

REASONS = {
    "converged": "the wanted precision was reached",
    "inexact": "bounds cannot get tighter: inference is inexact, or satisfied samples are left out",
    "limit": "the limit of inference calls was reached",
    "iterations": "the limit of CCCP iterations was reached",
}

Training = Generator[TrainingStep, None, TrainingResult]


@dataclass(frozen=True)
class Domain:
    """One of several annotated data sets.

    Parameters
    ----------
    model
        What is learned there; all domains have the same features.
    samples
        Its inputs with their annotations.
    n_annotations
        The domain's risk, a sum over its samples, is divided by this. None: the number of its
        samples, so that every domain counts alike. The same number for all domains makes every
        annotation count alike, whichever domain it is in, as in eq. 1.9; with the number of
        annotations of the domain of interest, lambda and rho are on the scale of training that
        domain alone.
    """

    model: StructuredModel
    samples: Sequence[Sample | tuple[Any, Any]]
    n_annotations: float | None = None


def train(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    regularizer: Regularizer,
    *,
    n_annotations: float | None = None,
    loss: str | Loss = "bridge",
    treatment: Treatment = "exact",
    options: LearningOptions | None = None,
    initial: FloatArray | None = None,
    state: TrainingState | None = None,
) -> Training:
    """Learn weights; a generator that reports progress and can be closed at any time.

    Parameters
    ----------
    model
        What is learned.
    samples
        Inputs with their annotations.
    regularizer
        `L2` or `L1`, with lambda, prior and metric; see also `delta_regularizer`.
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
    TrainingStep
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
    options = options or LearningOptions()
    found = as_samples(samples)
    check_regularizer(regularizer, model.n_features)
    risk = Risk(model, found, n_annotations, find_loss(loss), treatment)
    w = state.w if initial is None and state is not None else initial
    d = model.n_features
    w = centre(regularizer, d) if w is None else checked_weights(w, d)
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
    return (yield from _learn([risk], regularizer, w[None, :], [state], options))


def train_joint(
    domains: Sequence[Domain],
    coupling: Coupling,
    *,
    loss: str | Loss = "bridge",
    treatment: Treatment = "exact",
    options: LearningOptions | None = None,
    initial: FloatArray | None = None,
    states: Sequence[TrainingState | None] | None = None,
) -> Training:
    """Learn the weights of several domains (000, eq. 1.9); a generator that reports progress.

    Parameters
    ----------
    domains
        Data sets with partial or full annotations.
    coupling
        lambda, rho, prior and metric.
    loss, treatment, options
        As in `train`; there is always one slack for each domain, whatever the learner.
    initial
        Weights to start from, shape (D, d); None: those of ``states``, or else the prior.
    states
        Of an earlier training of each domain (None where there is none), with other lambda, rho,
        companions or annotations: whatever of it is still valid is used.

    Yields
    ------
    TrainingStep
        After each inference over all samples; ``weights`` has the shape (D, d).

    Returns
    -------
    TrainingResult
        As the value of the generator; `fit_joint` returns it directly.

    Raises
    ------
    InputError
        If there are no domains or a domain has no samples or other features than the first; if
        lambda, rho, prior, metric or initial weights do not fit.
    SolverError
        If inference gives no bound or the master problem cannot be solved.
    """
    options, kind = options or LearningOptions(), find_loss(loss)
    if not domains:
        raise InputError("there is nothing to learn from: no domain was given")
    sizes = [domain.model.n_features for domain in domains]
    if len(set(sizes)) > 1:
        raise InputError(
            f"the domains have {', '.join(map(str, sizes))} features; joint training needs the "
            "same features in all of them"
        )
    d = sizes[0]
    check_regularizer(coupling, d)
    states = [None] * len(domains) if states is None else list(states)
    risks = [
        Risk(x.model, as_samples(x.samples), x.n_annotations, kind, treatment) for x in domains
    ]
    if initial is None:
        w0 = centre(coupling, d)
        initial = np.array([w0 if s is None or s.w.shape != (d,) else s.w for s in states])
    weights = coupling.project(checked_weights(initial, len(domains), d))
    return (yield from _learn(risks, coupling, weights, states, options))


def fit(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    regularizer: Regularizer,
    *,
    callback: Callable[[TrainingStep], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train` to its end; ``callback`` sees each `TrainingStep`."""
    return run(train(model, samples, regularizer, **keywords), callback)


def fit_joint(
    domains: Sequence[Domain],
    coupling: Coupling,
    *,
    callback: Callable[[TrainingStep], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train_joint` to its end; ``callback`` sees each `TrainingStep`."""
    return run(train_joint(domains, coupling, **keywords), callback)


def learner_for(
    penalties: Sequence[Penalty], regularizer: Regularizer | Coupling, options: LearningOptions
) -> Learner:
    """The learner that the options name."""
    name = options.learner
    if name is None or name == "bundle" or isinstance(regularizer, Coupling):
        return CuttingPlanes(penalties, regularizer, options)
    if not isinstance(regularizer, L2):
        raise InputError(f"the learner {name!r} needs the l2 regulariser; choose bundle for l1")
    if penalties[0].risk.literal:
        raise InputError(
            f"the learner {name!r} cannot leave satisfied samples out; choose the treatment "
            "'exact', or the learner bundle"
        )
    if name == "n-slack":
        return CuttingPlanes(penalties, regularizer, options)
    block = FrankWolfe if name == "frank-wolfe" else Subgradient
    return block(penalties[0], regularizer, options)


def _learn(
    risks: Sequence[Risk],
    regularizer: Regularizer | Coupling,
    weights: FloatArray,
    states: Sequence[TrainingState | None],
    options: LearningOptions,
) -> Training:
    """Go down from some weights (D, d) to where no surrogate leads any further."""
    log = _Log(isinstance(regularizer, Coupling))
    pairs = zip(risks, states, strict=True)
    penalties = [recycled_penalty(risk, options, state) for risk, state in pairs]
    learner = learner_for(penalties, regularizer, options)
    surrogate = learner.touching(weights, None)
    schedule, values = Schedule(options), list[float]()
    for t in range(options.max_cccp_iterations):
        if t and not options.recycle:
            learner.forget()
        found = yield from log.follow(learner, surrogate, weights, schedule.precision, t)
        if not values:
            values.append(learner.value(surrogate, weights))
        same = True
        if not np.array_equal(found.weights, weights):
            there = learner.touching(found.weights, surrogate)
            if learner.value(there, found.weights) <= values[-1]:
                same = _equal(there, surrogate)
                weights, surrogate = found.weights, there
        values.append(learner.value(surrogate, weights))
        if schedule.ends(found.reason, same, values):
            break
    return TrainingResult(
        w=regularizer.shared(weights) if isinstance(regularizer, Coupling) else weights[0].copy(),
        weights=weights.copy(),
        objective=values[-1],
        risks=learner.risks(surrogate, weights),
        gap=found.gap,
        lower_bound=found.lower,
        converged=schedule.converged,
        reason=schedule.reason,
        objectives=np.array(values),
        history=TrainingHistory.of(log.steps),
        n_inferences=learner.n_inferences,
        n_reward_inferences=max(risk.effort.reward_calls for risk in risks),
        inference_seconds=learner.inference_seconds,
        seconds=log.seconds,
        states=tuple(training_state(p, w) for p, w in zip(penalties, weights, strict=True)),
    )


def _equal(one: Halves, other: Halves) -> bool:
    """Whether two surrogates are equal everywhere."""
    pairs = zip(one, other, strict=True)
    return all(np.array_equal(a.v, b.v) and a.c == b.c for a, b in pairs)


class _Log:
    """Tells where the minimisations of surrogates stand, and remembers it."""

    def __init__(self, joint: bool) -> None:
        self.steps: list[TrainingStep] = []
        self._joint = joint
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since training began."""
        return time.perf_counter() - self._start

    def follow(
        self, learner: Learner, halves: Halves, weights: FloatArray, precision: float, t: int
    ) -> Generator[TrainingStep, None, Incumbent]:
        """Minimise the surrogate of CCCP iteration t.

        Every surrogate bounds the objective from above, so the least value so far does.
        """

        def told(best: Incumbent) -> TrainingStep:
            last = self.steps[-1].objective if self.steps else math.inf
            step = TrainingStep(
                iteration=len(self.steps) + 1,
                cccp_iteration=t,
                objective=min(best.objective, last),
                gap=best.gap,
                n_bounds=learner.n_bounds,
                n_inferences=learner.n_inferences,
                seconds=self.seconds,
                weights=(best.weights if self._joint else best.weights[0]).copy(),
                inference_seconds=learner.inference_seconds,
            )
            self.steps.append(step)
            return step

        return relayed(learner.minimise(halves, weights, precision), told)


class Schedule:
    """How precise the present iteration is, and when it all ends."""

    def __init__(self, options: LearningOptions) -> None:
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

        ``reason``: why its inner loop ended; ``same``: its surrogate is the same where it was
        linearised anew.
        """
        options = self._options
        idle = same or objectives[-2] - objectives[-1] <= options.enough
        settled = idle and self.precision <= options.precision
        if settled or reason == "limit":
            self._reason = reason
            return True
        if options.adaptive:
            self.precision = max(options.precision_rate * self.precision, options.precision)
        return False
