"""How precisely CCCP solves each of its convex problems, where from, and when it ends.

Precision and end are those of 001, Algorithm 1. Where the next problem touches is not: at the
minimiser of one surrogate the completions it was made of are often exactly tied with others, which
it kept from getting any better than them. The tangent of R made of the old ones leads nowhere from
there, that of the others does. A small step further in the direction of the last move breaks the
ties in favour of the others.

The loop of the concave-convex procedure, whatever its surrogates are made of.

Every surrogate bounds the objective J from above and touches it somewhere. Its best point becomes
the next w unless J is larger there, so J never increases. Surrogates touch J a little beyond w,
where the last move was going (see `schedule`); the loop ends only where the one that touches at w
itself leads nowhere either.

The learners: ways of minimising one convex surrogate, all behind one boundary (003).

    J~(w) = lambda/2 (w - w0)' M (w - w0) + 1/N sum_i max_y [ <phi(x_i, y), w> + Delta_i(y) ]
            + <v, w> + c

CCCP is a short loop around any of them. All leave what they learn about P (bounds, points,
outputs) in the same `Bundle`, so that a later training may go on with another learner.

Training: the concave-convex procedure with bounds recycling (001, Algorithm 1).

    J(w) = regulariser(w) + P(w) - R(w)

Iteration t replaces -R by a tangent, ``<v_t, w> + c_t``, and minimises the convex surrogate to a
gap of epsilon_t (see `descent`). With full annotation R is linear, v_t is constant, and the same
loop is BMRM.

Joint training over domains with partial annotations (000, eq. 1.9).

    J = lambda/2 |w - w0|^2 + rho/2 sum_d |w^d - w|^2 + sum_d [ P^d(w^d) - R^d(w^d) ]

CCCP as in `cccp`: iteration t replaces every -R^d by its tangent at w^d_t and minimises the
convex surrogate, with bounds on every P^d of its own. With one domain it is plain training with
``lambda' = tau = rho lambda / (rho + lambda)``; for lambda = inf training of each domain on its
own with rho; for rho = inf training on the union, on the sum of the domains' risks, with lambda.

A source predictor that stays as it is, and a learned delta function (004).

    f_target(x, y) = f_source(x, y) + <delta, Psi(x, y)>,      min  lambda/2 |delta|^2 + risk

by the cutting-plane algorithm of 004 (Algorithm 1): each cutting plane is a bound on the risk's
penalty, and 1/lambda is its C. In terms of the target model's joint feature phi, which holds what
the source uses and what the delta uses, ``f_source = <w_source, phi>`` and Psi are the *free*
features. With the same features on both sides this is training with the prior w_source. Features
that only the target has get weight 0 in w_source; a source that is no linear function of phi
enters as one more feature, its score, with weight 1 and not free.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.learning.curriculum import paced
from bridgetrack.learning.cutting_planes import Bundle, JointBundle, NSlack
from bridgetrack.learning.frank_wolfe import FrankWolfe
from bridgetrack.learning.losses import Loss, Treatment, find_loss
from bridgetrack.learning.model import (
    FloatArray,
    Sample,
    StructuredModel,
    as_samples,
)
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.perceptron import train_perceptron
from bridgetrack.learning.recycling import first_weights, recycled_bundle, training_state
from bridgetrack.learning.regularizers import (
    L2,
    Coupling,
    Regularizer,
    centre,
    check_coupling,
    check_regularizer,
)
from bridgetrack.learning.result import (
    Counts,
    Domain,
    History,
    Record,
    Step,
    TrainingResult,
    TrainingState,
)
from bridgetrack.learning.risk import Risk
from bridgetrack.learning.subgradient import Subgradient
from bridgetrack.learning.surrogate import Incumbent, Surrogate
from bridgetrack.progress import run as finish

S = TypeVar("S")


REASONS = {
    "converged": "the wanted precision was reached",
    "inexact": "bounds cannot get tighter: inference is inexact, or satisfied samples are left out",
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

    def __init__(self, options: LearningOptions) -> None:
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


class Objective(Protocol[S]):
    """What can be bounded by convex surrogates of type S. Weights have the shape (d,) or (D, d)."""

    def touching(self, w: FloatArray, near: S | None) -> S:
        """The surrogate that touches at ``w``, made of outputs no worse there than another's."""
        ...

    def value(self, surrogate: S, w: FloatArray) -> float:
        """A surrogate where inference was asked; where it touches, J (an upper bound on it)."""
        ...

    def same(self, one: S, other: S) -> bool:
        """Whether two surrogates are equal everywhere."""
        ...

    def minimise(
        self, surrogate: S, w: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise a surrogate to a duality gap, starting from ``w``."""
        ...

    def counts(self) -> Counts:
        """Bounds and inferences so far."""
        ...


@dataclass(frozen=True)
class Descent(Generic[S]):
    """Where the loop ended.

    Parameters
    ----------
    w
        The last weights.
    surrogate
        The one that touches there.
    outcome
        Of the last surrogate that was minimised.
    objectives
        J at the start and after every iteration.
    schedule
        Says why it ended.
    """

    w: FloatArray
    surrogate: S
    outcome: Incumbent
    objectives: FloatArray
    schedule: Schedule


def descend(
    objective: Objective[S], w: FloatArray, options: LearningOptions, record: Record
) -> Generator[Step, None, Descent[S]]:
    """Go down from ``w`` to where no surrogate leads any further."""
    surrogate = tight = objective.touching(w, None)
    schedule, values = Schedule(options), list[float]()
    for t in range(options.max_cccp_iterations):
        inner = objective.minimise(surrogate, w, schedule.precision)
        outcome = yield from record.follow(inner, t, objective.counts)
        if not values:
            values.append(objective.value(tight, w))
        before, plain, same = w, surrogate is tight, True
        if not np.array_equal(outcome.w, w):
            there = objective.touching(outcome.w, tight)
            if objective.value(there, outcome.w) <= values[-1]:
                same = objective.same(there, tight)
                w, tight = outcome.w, there
        values.append(objective.value(tight, w))
        if schedule.ends(outcome.reason, same, values, plain=plain):
            break
        point = schedule.ahead(before, w)
        surrogate = tight if point is None else objective.touching(point, None)
    return Descent(w, tight, outcome, np.array(values), schedule)


class Learner(Protocol):
    """Minimises surrogates of one objective, one after the other."""

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise to a given duality gap, starting from ``w``.

        Yields
        ------
        Incumbent
            After each inference over all samples.

        Returns
        -------
        Incumbent
            The best point, with a true lower bound on the minimum.
        """
        ...

    def forget(self) -> None:
        """Drop everything learned about P (training from scratch)."""
        ...


MADE_BY: dict[str, Callable[[Bundle, L2], Learner]] = {
    "n-slack": NSlack,
    "frank-wolfe": FrankWolfe,
    "subgradient": Subgradient,
}


def learner_for(bundle: Bundle, regularizer: Regularizer) -> Learner:
    """The learner that the options of a bundle name.

    Raises
    ------
    InputError
        If it cannot minimise this objective.
    """
    name = bundle.options.learner
    if name == "bundle":
        return bundle
    if not isinstance(regularizer, L2):
        raise InputError(f"the learner {name!r} needs the l2 regulariser; choose bundle for l1")
    if bundle.risk.literal:
        raise InputError(
            f"the learner {name!r} cannot leave satisfied samples out; choose the treatment "
            "'exact', or the learner bundle"
        )
    return MADE_BY[name](bundle, regularizer)


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
    options: LearningOptions | None = None,
    initial: FloatArray | None = None,
    state: TrainingState | None = None,
) -> Generator[Step, None, TrainingResult]:
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
    Step
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
        weights=end.w[None, :].copy(),
        objective=float(end.objectives[-1]),
        risks=np.array([float(end.objectives[-1]) - regularizer.value(end.w)]),
        gap=end.outcome.gap,
        lower_bound=end.outcome.lower,
        converged=end.schedule.converged,
        reason=end.schedule.reason,
        objectives=end.objectives,
        history=History.of(record.steps),
        n_inferences=risk.effort.penalty_calls,
        n_reward_inferences=risk.effort.reward_calls,
        inference_seconds=risk.effort.seconds,
        seconds=record.seconds,
        states=(training_state(bundle, end.w),),
    )


def fit(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    regularizer: Regularizer,
    *,
    callback: Callable[[Step], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train` to its end; ``callback`` sees each `Step`."""
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
    ) -> Generator[Incumbent, None, Incumbent]:
        if self._begun and not self._bundle.options.recycle:
            self._learner.forget()
        self._begun = True
        return self._learner.minimise(surrogate, w, precision)


def train_joint(
    domains: Sequence[Domain],
    coupling: Coupling,
    *,
    loss: str | Loss = "bridge",
    treatment: Treatment = "exact",
    options: LearningOptions | None = None,
    initial: FloatArray | None = None,
    states: Sequence[TrainingState | None] | None = None,
) -> Generator[Step, None, TrainingResult]:
    """Learn the weights of several domains; a generator that reports progress.

    Parameters
    ----------
    domains
        Data sets with partial or full annotations.
    coupling
        lambda, rho, prior and metric.
    loss, treatment, options
        As in `cccp.train`.
    initial
        Weights to start from, shape (D, d); None: those of ``states``, or else the prior.
    states
        Of an earlier training of each domain (None where there is none), with other lambda, rho,
        companions or annotations: whatever of it is still valid is used.

    Yields
    ------
    Step
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
    options = options or LearningOptions()
    d = _check(domains, coupling)
    states = [None] * len(domains) if states is None else list(states)
    kind, record = find_loss(loss), Record()
    risks = [
        Risk(x.model, as_samples(x.samples), x.n_annotations, kind, treatment) for x in domains
    ]
    parts = [recycled_bundle(r, options, s) for r, s in zip(risks, states, strict=True)]
    bundle = JointBundle(parts, coupling, options)
    weights = _first_weights(coupling, d, initial, states)
    end = yield from descend(bundle, weights, options, record)
    return TrainingResult(
        w=coupling.shared(end.w),
        weights=end.w.copy(),
        objective=float(end.objectives[-1]),
        risks=bundle.risks_at(end.surrogate, end.w),
        gap=end.outcome.gap,
        lower_bound=end.outcome.lower,
        converged=end.schedule.converged,
        reason=end.schedule.reason,
        objectives=end.objectives,
        history=History.of(record.steps),
        n_inferences=bundle.n_calls,
        n_reward_inferences=max(risk.effort.reward_calls for risk in risks),
        inference_seconds=sum(risk.effort.seconds for risk in risks),
        seconds=record.seconds,
        states=tuple(training_state(p, w) for p, w in zip(parts, end.w, strict=True)),
    )


def fit_joint(
    domains: Sequence[Domain],
    coupling: Coupling,
    *,
    callback: Callable[[Step], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train_joint` to its end; ``callback`` sees each `Step`."""
    return finish(train_joint(domains, coupling, **keywords), callback)


def _check(domains: Sequence[Domain], coupling: Coupling) -> int:
    """Number of features d, after checking that all fits."""
    if not domains:
        raise InputError("there is nothing to learn from: no domain was given")
    sizes = [domain.model.n_features for domain in domains]
    if len(set(sizes)) > 1:
        raise InputError(
            f"the domains have {', '.join(map(str, sizes))} features; joint training needs the "
            "same features in all of them"
        )
    check_coupling(coupling, sizes[0])
    return sizes[0]


def _first_weights(
    coupling: Coupling,
    d: int,
    initial: FloatArray | None,
    states: Sequence[TrainingState | None],
) -> FloatArray:
    """Weights to start from, shape (D, d)."""
    if initial is None:
        w0 = centre(L2(1.0, coupling.prior), d)
        weights = np.array([w0 if s is None or s.w.shape != (d,) else s.w for s in states])
    else:
        weights = np.array(initial, dtype=float)
    if weights.shape != (len(states), d) or not np.isfinite(weights).all():
        raise InputError(
            f"the initial weights have shape {weights.shape} and must be finite, {d} for each of "
            f"{len(states)} domains"
        )
    return coupling.project(weights)


def delta_regularizer(
    weight: float,
    source: FloatArray,
    *,
    free: NDArray[np.bool_] | None = None,
    metric: FloatArray | None = None,
) -> L2:
    """``lambda/2 delta' M delta`` for ``delta = w - source``, delta zero where it is not free.

    Parameters
    ----------
    weight
        lambda > 0.
    source
        w_source in the target's features, shape (d,).
    free
        Which features belong to Psi, shape (d,); None: all.
    metric
        M, see `L2`; a full matrix only where all features are free.

    Raises
    ------
    InputError
        If the shapes do not fit, no feature is free, or a full matrix meets features that are not.
    """
    d = len(source)
    if free is None or bool(np.all(free)):
        return L2(weight, source, metric)
    free = np.asarray(free, dtype=bool)
    if free.shape != (d,) or not free.any():
        raise InputError(
            f"the free features have shape {free.shape}; {d} are needed, at least one of them free"
        )
    if metric is not None and np.ndim(metric) != 1:
        raise InputError("a full metric needs all features to be free; give its diagonal")
    factor = np.ones(d) if metric is None else np.asarray(metric, dtype=float)
    return L2(weight, source, np.where(free, factor, np.inf))


def train_delta(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    source: FloatArray,
    weight: float,
    *,
    free: NDArray[np.bool_] | None = None,
    metric: FloatArray | None = None,
    **keywords: Any,
) -> Generator[Step, None, TrainingResult]:
    """Learn a delta on the target; ``keywords`` as in `cccp.train`.

    Returns
    -------
    TrainingResult
        ``w`` is that of the whole predictor, ``w - source`` the delta.

    Raises
    ------
    InputError
        As `delta_regularizer` and `cccp.train`.
    """
    regularizer = delta_regularizer(weight, source, free=free, metric=metric)
    return (yield from train(model, samples, regularizer, **keywords))


def fit_delta(
    model: StructuredModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    source: FloatArray,
    weight: float,
    *,
    callback: Callable[[Step], None] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train_delta` to its end; ``callback`` sees each `Step`."""
    return finish(train_delta(model, samples, source, weight, **keywords), callback)
