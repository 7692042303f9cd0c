"""Reports of a training while it runs, and its result."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bridgetrack.arrays import Array
from bridgetrack.learning.risk import Risk

if TYPE_CHECKING:
    from bridgetrack.learning.bundle import Bundle


@dataclass(frozen=True)
class TrainingStep:
    """State of a training: the best point so far of a convex surrogate J~."""

    w: Array  # the point, shape (d,): the weights to keep if training is cancelled here
    objective: float  # J~ there, not below J
    # a lower bound on min J~; -inf before the first master problem, NaN for the perceptron
    lower: float
    n_bounds: int  # bounds in the master problem
    n_inferences: int  # loss-augmented inferences over all samples so far
    seconds: float  # since training began
    inference_seconds: float  # those of them spent in inference
    reason: str = ""  # why the search ended, a key of `cccp.REASONS`; empty while it runs

    @property
    def gap(self) -> float:
        """True duality gap."""
        return self.objective - self.lower


@dataclass(frozen=True)
class Stage:
    """One threshold of self-paced learning."""

    threshold: float  # 1/K
    share: float  # of the samples that took part
    w: Array  # weights after it, shape (d,)


@dataclass(frozen=True)
class TrainingResult:
    """Learned weights, and the course of the training."""

    w: Array  # weights, shape (d,)
    # J there: regulariser plus risk (an upper bound if inference is inexact); for the perceptron
    # the mean task loss
    objective: float
    gap: float  # true duality gap of the last convex problem; NaN for the perceptron
    # on the minimum of the last convex problem: for full annotation, on that of the objective
    lower_bound: float
    converged: bool  # whether the wanted precision was reached
    reason: str  # why training stopped, in words
    objectives: Array  # after each CCCP iteration, the first at the start, shape (t,)
    steps: tuple[TrainingStep, ...]  # one for each inference over all samples
    n_inferences: int  # over all samples, for P
    n_reward_inferences: int  # and for R
    inference_seconds: float  # spent in inference
    seconds: float  # spent in all
    state: Bundle | None = None  # for a later training; None for the perceptron
    stages: tuple[Stage, ...] = ()  # of the curriculum, if there was one

    @classmethod
    def of(cls, risk: Risk, steps: Sequence[TrainingStep], **found: Any) -> TrainingResult:
        """The result, with the steps of the training and their cost."""
        return cls(
            **found,
            steps=tuple(steps),
            n_inferences=risk.n_inferences,
            n_reward_inferences=risk.n_reward_inferences,
            inference_seconds=risk.seconds,
            seconds=time.perf_counter() - risk.began,
        )


Training = Generator[TrainingStep, None, TrainingResult]
