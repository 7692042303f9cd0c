"""What joint training is given and hands back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bridgetrack.learning.model import FloatArray, Sample, StructuredModel
from bridgetrack.learning.result import History, TrainingResult, TrainingState


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


@dataclass(frozen=True)
class JointResult:
    """Learned weights of all domains and how they came about.

    Parameters
    ----------
    shared
        w, shape (d,): for a further domain without annotations.
    weights
        w^d, shape (D, d).
    objective
        J there (an upper bound where inference is inexact).
    risks
        Risk of each domain, shape (D,).
    gap, lower_bound
        Of the last convex problem, see `TrainingResult`.
    converged, reason
        Whether the wanted precision was reached, and why training stopped, in words.
    objectives
        Objective after each CCCP iteration, the first at the start.
    history
        One row per inference over all samples; ``n_oracle_calls`` is the most of any domain.
    n_oracle_calls, n_reward_calls
        The most of any domain, and the CCCP iterations.
    oracle_seconds, seconds
        Spent in inference, and in all.
    states
        One for each domain, for a later training, joint or not.
    """

    shared: FloatArray
    weights: FloatArray
    objective: float
    risks: FloatArray
    gap: float
    lower_bound: float
    converged: bool
    reason: str
    objectives: FloatArray
    history: History
    n_oracle_calls: int
    n_reward_calls: int
    oracle_seconds: float
    seconds: float
    states: tuple[TrainingState, ...]

    def of(self, domain: int) -> TrainingResult:
        """The result seen from one domain; objective and gap are those of all."""
        return TrainingResult(
            w=self.weights[domain].copy(),
            objective=self.objective,
            risk=float(self.risks[domain]),
            gap=self.gap,
            lower_bound=self.lower_bound,
            converged=self.converged,
            reason=self.reason,
            objectives=self.objectives,
            history=self.history,
            n_oracle_calls=self.n_oracle_calls,
            n_reward_calls=self.n_reward_calls,
            oracle_seconds=self.oracle_seconds,
            seconds=self.seconds,
            state=self.states[domain],
        )
