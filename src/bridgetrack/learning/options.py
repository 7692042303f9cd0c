"""Choices and limits of training: the loss, the learner, and the curriculum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field

from bridgetrack.errors import InputError
from bridgetrack.schema import settings

Treatment = Literal["exact", "literal"]
"""How a sample without loss (a margin that is already negative) enters the penalty P.

``exact``: with the subgradient of its best compatible output, so that every bound touches P, which
is one convex function. ``literal`` (for losses with the penalty space Y°: max, bridge, max-delta):
the sample is ignored in the subgradient "as in usual SVM" (001, section 4.4): in a bound it
contributes just what R's tangent subtracts again. Such bounds are valid but need not touch P, so
that training can stall at a positive gap, which is reported. (Leaving the sample out of P alone,
with its reward still in R, makes ever larger rewards profitable: the surrogate then falls far below
zero until lambda stops it, and the bounds exceed P.)
"""


@dataclass(frozen=True)
class Loss:
    """A row of 001, Table 2, or one of the two losses of section 5.3."""

    name: str  # as there; ramp-delta is the ramp minus Delta of Table 3
    penalty_space: Literal["all", "incompatible"]  # Y^P: Y or Y°
    reward_space: Literal["all", "compatible"]  # Y^R: Y or Y*
    minus_delta: bool = False  # whether Delta is subtracted in the reward term (001, section 5.3)

    @property
    def reward_sign(self) -> Literal[-1, 0]:
        """Factor of Delta in the reward term."""
        return -1 if self.minus_delta else 0


LossName = Literal["hinge", "ramp", "max", "bridge", "ramp-delta", "max-delta"]

LOSSES: dict[str, Loss] = {
    loss.name: loss
    for loss in (
        Loss("hinge", "all", "compatible"),
        Loss("ramp", "all", "all"),
        Loss("max", "incompatible", "all"),
        Loss("bridge", "incompatible", "compatible"),
        Loss("ramp-delta", "all", "all", minus_delta=True),
        Loss("max-delta", "incompatible", "all", minus_delta=True),
    )
}


def find_loss(loss: str | Loss) -> Loss:
    """Find a loss by its name.

    Raises
    ------
    InputError
        If there is no such loss.
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise InputError(f"there is no loss {loss!r}; choose one of {', '.join(LOSSES)}")
    return LOSSES[loss]


LearnerName = Literal["1-slack", "n-slack", "frank-wolfe", "subgradient", "perceptron"]
LEARNERS: tuple[LearnerName, ...] = get_args(LearnerName)
Criterion = Literal["slack", "entropy", "novelty"]
CRITERIA: tuple[Criterion, ...] = get_args(Criterion)


@settings("learning:")
class LearningOptions:
    """Choices and limits of CCCP with bounds recycling (001, Algorithm 1).

    Parameters
    ----------
    precision
        Wanted duality gap epsilon_min, in units of the risk (task loss per annotation), and eta:
        training stops when a CCCP iteration at this precision gains less.
    recycle
        Keep planes and points across CCCP iterations; for outputs see `cache`. With neither of
        these nor `adaptive`, and one slack, this is CCCP after Yu and Joachims (2009).
    adaptive
        Raise the precision from one CCCP iteration to the next; else it is full from the start.
    cache
        Try bounds from outputs found earlier before asking for inference.
    max_bounds
        Bounds above which those that have long had no multiplier are dropped.
    max_inferences, max_cccp_iterations
        Limits.
    learner
        The minimiser of each convex problem: cutting planes with one slack (``"1-slack"``) or with
        up to 40 (``"n-slack"``), ``"frank-wolfe"`` or ``"subgradient"``. ``"perceptron"`` minimises
        no objective at all. None: n-slack, or 1-slack for L1 and the literal treatment.
    curriculum
        Learn from easy samples first (002), by this measure of difficulty, see `self_paced`; None:
        from all at once. A training that continues an earlier state does not begin with the easy
        ones again.
    """

    precision: Annotated[float, Field(gt=0)] = 1e-3
    recycle: bool = True
    adaptive: bool = True
    cache: bool = True
    max_bounds: int = 200
    max_inferences: int = 2000
    max_cccp_iterations: Annotated[int, Field(ge=1)] = 50
    learner: LearnerName | None = None
    curriculum: Criterion | None = None

    def __post_init__(self) -> None:
        if self.learner == "perceptron" and self.curriculum is not None:
            raise InputError("the perceptron knows no curriculum; choose another learner")


ALGORITHM_1 = LearningOptions(cache=False, learner="1-slack")
"""001, Algorithm 1: bounds recycling and adaptive precision, no output cache; nearest to the paper
with the treatment ``literal``, an argument of `train`. docs/method.md lists what differs."""
