"""What training reports while it runs and hands back at the end."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from bridgetrack.arrays import Array
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.risk import Risk


@dataclass(frozen=True)
class TrainingStep:
    """Where training stands; one after each call of the inference over all samples."""

    objective: float  # smallest upper bound on the objective so far
    # duality gap of the current convex problem; inf before the first master problem, NaN where
    # there is none (perceptron)
    gap: float
    n_bounds: int  # bounds in the master problem
    n_inferences: int  # loss-augmented inferences over all samples so far
    seconds: float  # since training began
    inference_seconds: float  # those of them spent in inference
    weights: Array  # best so far, shape (d,): what to keep if training is cancelled here


@dataclass(frozen=True)
class Stage:
    """One threshold of self-paced learning."""

    threshold: float  # 1/K
    share: float  # of the samples that took part
    w: Array  # weights after it, shape (d,)


@dataclass(frozen=True)
class TrainingResult:
    """Learned weights and how they came about."""

    w: Array  # weights, shape (d,)
    # J there: regulariser plus risk (an upper bound where inference is inexact); for the perceptron
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
    state: Bundle | None = None  # for a later training; None of the perceptron
    stages: tuple[Stage, ...] = ()  # of the curriculum, if there was one


Training = Generator[TrainingStep, None, TrainingResult]


class Record:
    """The steps of a training so far, and what they cost."""

    def __init__(self, risk: Risk) -> None:
        self._risk, self._steps = risk, list[TrainingStep]()
        self._start = time.perf_counter()

    def step(self, w: Array, upper: float, gap: float, n_bounds: int) -> TrainingStep:
        """Note the best point so far, with an upper bound on the objective there."""
        # every surrogate bounds the objective from above, so the least value so far does
        upper = min([upper, *(step.objective for step in self._steps[-1:])])
        calls, spent = self._risk.n_inferences, self._risk.seconds
        seconds = time.perf_counter() - self._start
        self._steps.append(TrainingStep(upper, gap, n_bounds, calls, seconds, spent, w))
        return self._steps[-1]

    def result(self, **found: Any) -> TrainingResult:
        """What was found, with the steps and costs that led there."""
        return TrainingResult(
            **found,
            steps=tuple(self._steps),
            n_inferences=self._risk.n_inferences,
            n_reward_inferences=self._risk.n_reward_inferences,
            inference_seconds=self._risk.seconds,
            seconds=time.perf_counter() - self._start,
        )
