"""Switches and limits of training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from bridgetrack.errors import InputError
from bridgetrack.learning.qp import Form

LearnerName = Literal["bundle", "n-slack", "frank-wolfe", "subgradient", "perceptron"]
LEARNERS: tuple[LearnerName, ...] = get_args(LearnerName)


@dataclass(frozen=True)
class TrainingOptions:
    """Switches and limits of CCCP with bounds recycling (001, Algorithm 1).

    Parameters
    ----------
    precision
        Wanted duality gap epsilon_min, in units of the risk (task loss per annotation).
    initial_precision, precision_rate
        epsilon and rho of adaptive precision: epsilon_t = max(rho epsilon_{t-1}, epsilon_min).
    decrease
        eta: stop when a CCCP iteration at full precision gains less; None: as ``precision``.
    recycle
        Keep the bounds on P across CCCP iterations.
    adaptive
        Raise the precision from one CCCP iteration to the next; otherwise it is full at once.
    cache
        Try bounds from outputs found earlier before asking for inference.
    max_bounds
        Bounds above which some are dropped or collapse.
    max_oracle_calls, max_cccp_iterations
        Limits.
    learner
        What minimises each convex problem, see `learners`: ``"bundle"`` is the 1-slack cutting
        plane method. ``"perceptron"`` minimises no objective at all, see `perceptron`.
    form, backend
        QP form and back end of the L2 master problem, see `qp.solve_l2_master`.
    """

    precision: float = 1e-3
    initial_precision: float = 0.1
    precision_rate: float = 0.3
    decrease: float | None = None
    recycle: bool = True
    adaptive: bool = True
    cache: bool = True
    max_bounds: int = 200
    max_oracle_calls: int = 500
    max_cccp_iterations: int = 50
    learner: LearnerName = "bundle"
    form: Form = "primal"
    backend: str | None = None

    def __post_init__(self) -> None:
        if self.learner not in LEARNERS:
            raise InputError(
                f"there is no learner {self.learner!r}; choose one of {', '.join(LEARNERS)}"
            )
        if not self.precision > 0:
            raise InputError(f"the precision must be positive, not {self.precision}")
        if not 0 < self.precision_rate < 1:
            raise InputError(
                f"the rate of adaptive precision must lie between 0 and 1, not "
                f"{self.precision_rate}"
            )

    @property
    def first_precision(self) -> float:
        """Precision of the first CCCP iteration."""
        return max(self.initial_precision, self.precision) if self.adaptive else self.precision

    @property
    def enough(self) -> float:
        """Gain of a CCCP iteration below which training stops."""
        return self.precision if self.decrease is None else self.decrease


YU_JOACHIMS = TrainingOptions(recycle=False, adaptive=False, cache=False)
"""CCCP of fixed precision that starts every convex problem from scratch (Yu and Joachims 2009)."""

ALGORITHM_1 = TrainingOptions(cache=False)
"""001, Algorithm 1 as printed: bounds recycling and adaptive precision, no output cache."""
