"""What training reports while it runs and hands back at the end."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from bridgetrack.arrays import Array
from bridgetrack.learning.bundle import Bundle


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
    """Learned weights and how they came about.

    Parameters
    ----------
    w
        Weights, shape (d,).
    objective
        J there: regulariser plus risk (an upper bound where inference is inexact); for the
        perceptron the mean task loss.
    risk
        The objective without the regulariser.
    gap
        True duality gap of the last convex problem; NaN for the perceptron.
    lower_bound
        Lower bound on the minimum of the last convex problem: for full annotation, on the
        minimum of the objective.
    converged
        Whether the wanted precision was reached.
    reason
        Why training stopped, in words.
    objectives
        Objective after each CCCP iteration, the first at the start, shape (t,).
    steps
        One for each inference over all samples.
    n_inferences, n_reward_inferences
        Inferences over all samples for P and for R.
    inference_seconds, seconds
        Spent in inference, and in all.
    state
        For a later training; None of the perceptron.
    stages
        Of the curriculum, if there was one.
    """

    w: Array
    objective: float
    risk: float
    gap: float
    lower_bound: float
    converged: bool
    reason: str
    objectives: Array
    steps: tuple[TrainingStep, ...]
    n_inferences: int
    n_reward_inferences: int
    inference_seconds: float
    seconds: float
    state: Bundle | None = None
    stages: tuple[Stage, ...] = ()


Training = Generator[TrainingStep, None, TrainingResult]
