"""Choices and limits of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bridgetrack.errors import InputError

LearnerName = Literal["1-slack", "n-slack", "frank-wolfe", "subgradient", "perceptron"]
LEARNERS: tuple[LearnerName, ...] = get_args(LearnerName)
Criterion = Literal["slack", "entropy", "novelty"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


@dataclass(frozen=True)
class Curriculum:
    """Choices of self-paced learning (002), see `self_paced`.

    Parameters
    ----------
    criterion
        What makes a sample difficult.
    first
        Share of the samples that take part from the start.
    rate
        mu: from stage to stage the threshold 1/K grows by this factor, or more.
    """

    criterion: Criterion = "slack"
    first: float = 0.2
    rate: float = 1.3

    def __post_init__(self) -> None:
        if self.criterion not in CRITERIA:
            raise InputError(
                f"there is no curriculum {self.criterion!r}; choose one of {', '.join(CRITERIA)}"
            )
        if not (0 < self.first <= 1 and self.rate > 1):
            raise InputError(
                f"a curriculum needs a first share between 0 and 1, not {self.first}, and a rate "
                f"above 1, not {self.rate}"
            )


@dataclass(frozen=True)
class LearningOptions:
    """Choices and limits of CCCP with bounds recycling (001, Algorithm 1).

    Parameters
    ----------
    precision
        Wanted duality gap epsilon_min, in units of the risk (task loss per annotation), and eta:
        training stops when a CCCP iteration at this precision gains less.
    initial_precision, precision_rate
        epsilon and rho of adaptive precision: epsilon_t = max(rho epsilon_{t-1}, epsilon_min).
    recycle
        Keep planes and points across CCCP iterations; for outputs see `cache`.
    adaptive
        Raise the precision from one CCCP iteration to the next; otherwise it is full at once.
    cache
        Try bounds from outputs found earlier before asking for inference.
    max_bounds
        Bounds above which those that have long had no multiplier are dropped.
    max_inferences, max_cccp_iterations
        Limits.
    learner
        What minimises each convex problem: cutting planes with one slack (``"1-slack"``) or with
        up to 40 (``"n-slack"``), ``"frank-wolfe"`` or ``"subgradient"``. ``"perceptron"`` minimises
        no objective at all. None: n-slack, or 1-slack for L1 and the literal treatment.
    curriculum
        Learn from easy samples first; None: from all at once. A training that goes on from an
        earlier state does not begin with the easy ones again.
    """

    precision: float = 1e-3
    initial_precision: float = 0.1
    precision_rate: float = 0.3
    recycle: bool = True
    adaptive: bool = True
    cache: bool = True
    max_bounds: int = 200
    max_inferences: int = 2000
    max_cccp_iterations: int = 50
    learner: LearnerName | None = None
    curriculum: Curriculum | None = None

    def __post_init__(self) -> None:
        if self.learner is not None and self.learner not in LEARNERS:
            raise InputError(
                f"there is no learner {self.learner!r}; choose one of {', '.join(LEARNERS)}"
            )
        if self.learner == "perceptron" and self.curriculum is not None:
            raise InputError("the perceptron knows no curriculum; choose another learner")
        if not self.precision > 0:
            raise InputError(f"the precision must be positive, not {self.precision}")
        if not 0 < self.precision_rate < 1:
            raise InputError(
                f"the rate of adaptive precision must lie between 0 and 1, not "
                f"{self.precision_rate}"
            )
        if self.max_cccp_iterations < 1:
            raise InputError(
                f"training needs at least one CCCP iteration, not {self.max_cccp_iterations}"
            )

    @property
    def first_precision(self) -> float:
        """Precision of the first CCCP iteration."""
        return max(self.initial_precision, self.precision) if self.adaptive else self.precision


YU_JOACHIMS = LearningOptions(recycle=False, adaptive=False, cache=False, learner="1-slack")
"""CCCP of fixed precision that starts every convex problem from scratch (Yu and Joachims 2009)."""

ALGORITHM_1 = LearningOptions(cache=False, learner="1-slack")
"""001, Algorithm 1: bounds recycling and adaptive precision, no output cache; nearest to the paper
with the treatment ``literal``, an argument of `train`. docs/method.md lists what differs."""
