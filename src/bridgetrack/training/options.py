"""What a user may choose about training; the defaults need no thought."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

from bridgetrack.errors import InputError
from bridgetrack.learning import LOSSES, Curriculum, LearningOptions
from bridgetrack.learning.losses import Treatment
from bridgetrack.learning.options import Criterion, LearnerName
from bridgetrack.option import check_options, option

STRENGTH_AT_FIFTY = 0.02
"""Default λ with fifty annotations. It is for weights of which only a part of the way is gone
(`HALFWAY`): on development movies a loose fit gone halfway errs less than a tight one gone all the
way, with right answers and with slips (``benchmarks/strengths.py``). A tight one leaves annotations
contradicted that other weights would meet at little cost."""

HALFWAY = 0.5
"""Share of the way from the starting to the learned weights that is gone where annotations set
aside do not speak for another."""

STEPS = (10.0, 10 / 3, 1.0, 1 / 3, 0.1)
"""What cross-validation tries, as multiples of the default λ, from close to the prior to far."""

ENOUGH_TO_CHOOSE = 300
"""Annotations from which on λ is chosen by cross-validation. With fewer, held-out risks differ by
chance more than by λ: on real movies the default did better than what they chose."""

ENOUGH_TO_VALIDATE = 10
"""Annotations from which on cross-validation is tried."""


def default_strength(n_annotations: int) -> float:
    """λ unless the annotations clearly speak for another.

    The risk is a mean over annotations whose error falls with the root of their number, and so
    does what the prior is worth.
    """
    return float(min(max(STRENGTH_AT_FIFTY * math.sqrt(50 / max(n_annotations, 1)), 0.001), 0.05))


@dataclass(frozen=True)
class TrainingOptions:
    """Choices of a training.

    Parameters
    ----------
    loss
        How wrong answers count.
    treatment
        Whether answers that are met already pull on the weights by their own best alternative
        (exact) or not at all (literal).
    regularizer
        Squared (``"l2"``) or absolute (``"l1"``) distance from the starting weights.
    strength
        How close to stay to the starting weights, the factor λ of the regulariser; left open, it
        follows from the number of annotations, and where there are hundreds from
        cross-validation.
    balance
        How far annotated kinds of events are weighted by how often they occur in the movie:
        0 not at all, 1 fully.
    hold_sure
        Whether events that the starting model is sure of are held near annotated ones. With
        earlier movies, which hold the weights by themselves, they are not.
    folds
        Folds of the cross-validation.
    seed
        Without effect, as nothing is drawn any more; taken for the sake of older scripts.
    optimiser
        Switches and limits of the optimisation.
    learner
        What minimises each convex problem; left open, what ``optimiser`` says, and where that is
        open, too, the quickest that applies: n-slack (L2, exact treatment, with a cache), since it
        asks for inference least often, else the bundle.
    curriculum
        Learn from easy cells first, by this measure of what is easy.

    Raises
    ------
    InputError
        Where a choice does not exist.
    """

    loss: str = option("bridge", choices=tuple(LOSSES))
    treatment: Treatment = "exact"
    regularizer: Literal["l2", "l1"] = "l2"
    strength: float | None = option(None, above=0)
    balance: float = option(0.75, least=0, most=1)
    hold_sure: bool = True
    folds: int = option(5, least=2)
    seed: int = option(0, least=0)
    optimiser: LearningOptions = field(default_factory=LearningOptions)
    learner: LearnerName | None = None
    curriculum: Criterion | None = None

    def __post_init__(self) -> None:
        names = ("loss", "treatment", "regularizer", "strength", "balance", "folds", "seed")
        check_options(self, "the training option", *names)
        chosen = self.learning.learner
        if chosen in ("n-slack", "frank-wolfe", "subgradient") and self.regularizer == "l1":
            raise InputError(f"the learner {chosen!r} needs the l2 regularizer")

    @property
    def learning(self) -> LearningOptions:
        """The optimiser with the learner and the curriculum that come of all choices."""
        pace = self.optimiser.curriculum
        if self.curriculum is not None and (pace is None or pace.criterion != self.curriculum):
            pace = Curriculum(self.curriculum)
        learner = self.learner or self.optimiser.learner or self._quickest()
        return replace(self.optimiser, learner=learner, curriculum=pace)

    def _quickest(self) -> LearnerName:
        """Of the two cutting plane methods the quicker that applies."""
        applies = self.regularizer == "l2" and self.treatment == "exact" and self.optimiser.cache
        return "n-slack" if applies else "bundle"
