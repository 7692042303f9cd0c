"""What training reports while it runs and hands back at the end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.cache import CachedOutputs
from bridgetrack.learning.model import FloatArray, Sample


@dataclass(frozen=True)
class TrainingStep:
    """Where training stands; one after each call of the inference over all samples.

    Parameters
    ----------
    iteration
        Counts from 1.
    cccp_iteration
        Which linearisation of R (or epoch of the perceptron), from 0.
    objective
        Smallest upper bound on the objective so far.
    gap
        Duality gap of the current convex problem; inf before the first master problem, NaN where
        there is none (perceptron).
    n_bounds
        Bounds in the master problem.
    n_inferences
        Loss-augmented inferences over all samples so far.
    seconds
        Since training began.
    weights
        Best weights so far, shape (d,), in joint training (D, d): what to keep if training is
        cancelled here.
    inference_seconds
        Of these seconds, those spent in inference.
    """

    iteration: int
    cccp_iteration: int
    objective: float
    gap: float
    n_bounds: int
    n_inferences: int
    seconds: float
    weights: FloatArray
    inference_seconds: float = 0.0


@dataclass(frozen=True)
class TrainingHistory:
    """The `TrainingStep` of a whole training as arrays of one length, in order."""

    cccp_iteration: NDArray[np.int64]
    objective: FloatArray
    gap: FloatArray
    n_bounds: NDArray[np.int64]
    n_inferences: NDArray[np.int64]
    seconds: FloatArray
    inference_seconds: FloatArray

    @classmethod
    def of(cls, steps: list[TrainingStep]) -> TrainingHistory:
        """History of some steps."""
        return cls(
            np.array([s.cccp_iteration for s in steps], dtype=np.int64),
            np.array([s.objective for s in steps], dtype=float),
            np.array([s.gap for s in steps], dtype=float),
            np.array([s.n_bounds for s in steps], dtype=np.int64),
            np.array([s.n_inferences for s in steps], dtype=np.int64),
            np.array([s.seconds for s in steps], dtype=float),
            np.array([s.inference_seconds for s in steps], dtype=float),
        )


@dataclass(frozen=True)
class TrainingState:
    """What a later training can reuse.

    The bounds and iterates are about P alone. They hold for any lambda, prior, regulariser, loss
    and treatment, as long as the samples, their features and their
    annotations are the same; `train` checks this by the samples' keys and versions. After any
    other change they are dropped and only the cached outputs of unchanged inputs serve.

    Parameters
    ----------
    samples, n_annotations
        The training set that P belongs to.
    slopes, offsets
        Bounds on P.
    points, values, uppers
        Weights where P was computed, P attained there and upper bounds on it.
    cached
        Outputs found by inference.
    w
        Weights to start from.
    """

    samples: tuple[Sample, ...]
    n_annotations: float
    slopes: FloatArray
    offsets: FloatArray
    points: FloatArray
    values: FloatArray
    uppers: FloatArray
    cached: CachedOutputs
    w: FloatArray


@dataclass(frozen=True)
class Stage:
    """One threshold of self-paced learning.

    Parameters
    ----------
    threshold
        1/K.
    share
        Share of the samples that took part.
    of_each_kind
        The same for the samples of each kind the model knows.
    w
        Weights after it, shape (d,).
    """

    threshold: float
    share: float
    of_each_kind: tuple[float, ...]
    w: FloatArray


@dataclass(frozen=True)
class TrainingResult:
    """Learned weights and how they came about.

    Parameters
    ----------
    w
        Weights, shape (d,). In joint training the shared ones: for a further domain without
        annotations.
    weights
        Weights w^d of every domain, shape (D, d); there is one but in joint training.
    objective
        J there: regulariser plus risks (an upper bound where inference is inexact); for the
        perceptron the mean task loss.
    risks
        Risk of every domain, shape (D,).
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
    history
        One row per inference over all samples.
    n_inferences, n_reward_inferences
        Inferences over all samples for P and for R, the most of any domain.
    inference_seconds, seconds
        Spent in inference, and in all.
    states
        One for each domain, for a later training, joint or not; none of the perceptron.
    stages
        Of the curriculum, if there was one.
    """

    w: FloatArray
    weights: FloatArray
    objective: float
    risks: FloatArray
    gap: float
    lower_bound: float
    converged: bool
    reason: str
    objectives: FloatArray
    history: TrainingHistory
    n_inferences: int
    n_reward_inferences: int
    inference_seconds: float
    seconds: float
    states: tuple[TrainingState, ...] = ()
    stages: tuple[Stage, ...] = ()

    @property
    def risk(self) -> float:
        """The objective without the regulariser."""
        return float(self.risks.sum())

    @property
    def state(self) -> TrainingState | None:
        """State of the first domain, the only one but in joint training."""
        return self.states[0] if self.states else None
