"""Joint training over domains with partial annotations (000, eq. 1.9).

    J = lambda/2 |w - w0|^2 + rho/2 sum_d |w^d - w|^2 + sum_d [ P^d(w^d) - R^d(w^d) ]

CCCP as in `cccp`: iteration t replaces every -R^d by its tangent at w^d_t and minimises the
convex surrogate, with bounds on every P^d of its own. With one domain it is plain training with
``lambda' = tau = rho lambda / (rho + lambda)``; for lambda = inf training of each domain on its
own with rho; for rho = inf training on the union, on the sum of the domains' risks, with lambda.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.generators import finish
from bridgetrack.learning.coupling import Coupling, check_coupling
from bridgetrack.learning.descent import descend
from bridgetrack.learning.domains import Domain, JointResult
from bridgetrack.learning.joint_bundle import JointBundle
from bridgetrack.learning.losses import Loss, Treatment, find_loss
from bridgetrack.learning.model import FloatArray, as_samples
from bridgetrack.learning.options import TrainingOptions
from bridgetrack.learning.record import Record
from bridgetrack.learning.recycling import recycled_bundle, training_state
from bridgetrack.learning.regularizers import L2, centre
from bridgetrack.learning.result import History, Progress, TrainingState
from bridgetrack.learning.risk import Risk


def train_joint(
    domains: Sequence[Domain],
    coupling: Coupling,
    *,
    loss: str | Loss = "bridge",
    treatment: Treatment = "exact",
    options: TrainingOptions | None = None,
    initial: FloatArray | None = None,
    states: Sequence[TrainingState | None] | None = None,
) -> Generator[Progress, None, JointResult]:
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
    Progress
        After each inference over all samples; ``weights`` has the shape (D, d).

    Returns
    -------
    JointResult
        As the value of the generator; `fit_joint` returns it directly.

    Raises
    ------
    InputError
        If there are no domains or a domain has no samples or other features than the first; if
        lambda, rho, prior, metric or initial weights do not fit.
    SolverError
        If inference gives no bound or the master problem cannot be solved.
    """
    options = options or TrainingOptions()
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
    return JointResult(
        shared=coupling.shared(end.w),
        weights=end.w.copy(),
        objective=float(end.objectives[-1]),
        risks=bundle.risks_at(end.surrogate, end.w),
        gap=end.outcome.gap,
        lower_bound=end.outcome.lower,
        converged=end.schedule.converged,
        reason=end.schedule.reason,
        objectives=end.objectives,
        history=History.of(record.steps),
        n_oracle_calls=bundle.n_calls,
        n_reward_calls=max(risk.effort.reward_calls for risk in risks),
        oracle_seconds=sum(risk.effort.seconds for risk in risks),
        seconds=record.seconds,
        states=tuple(training_state(p, w) for p, w in zip(parts, end.w, strict=True)),
    )


def fit_joint(
    domains: Sequence[Domain],
    coupling: Coupling,
    *,
    callback: Callable[[Progress], None] | None = None,
    **keywords: Any,
) -> JointResult:
    """Run `train_joint` to its end; ``callback`` sees each `Progress`."""
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
