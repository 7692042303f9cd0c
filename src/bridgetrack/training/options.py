"""Options of training; the defaults suit most cases."""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import Field

from bridgetrack.errors import InputError
from bridgetrack.learning import LearningOptions
from bridgetrack.learning.options import Criterion, LearnerName, LossName, Treatment
from bridgetrack.schema import settings

LAMBDA_AT_FIFTY = 0.02
"""Default λ with fifty answers. It is small because only a share of the step is taken (`step`): on
development movies a weak regulariser with half a step errs less than a strong one with all of it.
"""

ENOUGH_TO_VALIDATE = 10
"""Least number of answers for which the accuracy is estimated by cross-validation."""

FOLDS = 5
"""Largest number of folds of that cross-validation."""


def default_lambda(n_annotations: int) -> float:
    """The default λ.

    The risk is a mean over annotations; its error falls with the square root of their number, and
    so does the weight of the prior.
    """
    return float(min(max(LAMBDA_AT_FIFTY * math.sqrt(50 / max(n_annotations, 1)), 0.001), 0.05))


@settings("training:")
class TrainingOptions:
    """Choices of a training.

    Parameters
    ----------
    loss
        Loss of the training objective.
    treatment
        How samples that already satisfy their annotations enter the bounds; for comparison with
        the papers only, see docs/method.md.
    regularizer
        Squared (``"l2"``) or absolute (``"l1"``) distance from the starting weights.
    lambda_
        How close to stay to the starting weights, the factor λ of the regulariser; by default it
        depends on the number n of annotations (1/n where several movies are learned from).
    learner
        Algorithm that minimises each convex problem; by default n-slack where it applies, else
        1-slack.
    curriculum
        Learn from easy samples first, by this measure of difficulty.
    precision
        Wanted duality gap, in task loss per annotation.
    max_inferences
        Limit of inferences over all annotated components.

    Raises
    ------
    InputError
        If a choice does not exist.
    """

    loss: LossName = "bridge"
    treatment: Treatment = "exact"
    regularizer: Literal["l2", "l1"] = "l2"
    lambda_: Annotated[float | None, Field(gt=0)] = None
    learner: LearnerName | None = None
    curriculum: Criterion | None = None
    precision: Annotated[float, Field(gt=0)] = LearningOptions.precision
    max_inferences: Annotated[int, Field(ge=1)] = LearningOptions.max_inferences

    def __post_init__(self) -> None:
        chosen = self.learning.learner
        if chosen in ("n-slack", "frank-wolfe", "subgradient") and self.regularizer == "l1":
            raise InputError(f"the learner {chosen!r} needs the l2 regularizer")

    @property
    def learning(self) -> LearningOptions:
        """The same for the learner, which knows nothing of movies."""
        return LearningOptions(
            precision=self.precision,
            max_inferences=self.max_inferences,
            learner=self.learner,
            curriculum=self.curriculum,
        )
