"""What may be chosen about active learning; the defaults are what measured best."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from bridgetrack.errors import InputError
from bridgetrack.learning import LearningOptions
from bridgetrack.option import check_options, option
from bridgetrack.training.options import TrainingOptions, default_strength

Measure = Literal["margin", "entropy", "random"]

TIGHTER = 10.0
"""How many times as tightly as training a session holds the weights, since it goes all the way to
what was learned, where training goes halfway: what it doubts then teaches a little more."""


@dataclass(frozen=True)
class SuggestOptions:
    """How events are ranked.

    Parameters
    ----------
    measure
        What makes an event worth asking about: a small margin of the best explanation over the
        best without it, the entropy of what the model believes, or chance.
    temperature
        Margin at which uncertainty has dropped to 1/e, in units of the task loss.
    rarity
        Exponent of the rarity of an event's kind: 0 ignores it, 1 values a kind in inverse
        proportion to how often it was answered and occurs.
    diversity
        Exponent of the novelty of an event's features: 0 ignores it.
    random_share
        Share drawn at random from all cells, to know the accuracy.
    separation
        Suggestions keep this many cell diameters apart within neighbouring frames.
    alternatives
        How many alternatives a suggestion names at most.
    frames
        First and last frame whose cells are asked about; all where None.
    seed
        Seed of the random ones.

    Raises
    ------
    InputError
        Where a number is out of range.
    """

    measure: Measure = option("margin", flag="strategy")
    temperature: float = option(1.0, above=0)
    rarity: float = option(0.5, least=0)
    diversity: float = option(1.0, least=0)
    random_share: float = option(0.2, least=0, most=1)
    separation: float = option(4.0, least=0)
    alternatives: int = option(4, least=0)
    frames: tuple[int, int] | None = None
    seed: int = option(0, least=0)

    def __post_init__(self) -> None:
        check_options(self, "the suggestion option")
        if self.frames is not None and not 0 <= self.frames[0] < self.frames[1]:
            raise InputError(f"the frames {self.frames} must rise, from 0 on")


@dataclass(frozen=True)
class LearnOptions:
    """How the model is updated while answers are given: as training does with its defaults.

    Parameters
    ----------
    strength
        The factor lambda of the regulariser around the starting weights; None: `TIGHTER` times
        that of training, `bridgetrack.training.options.default_strength`.
    balance
        How far kinds of events are weighted by how often they occur, see
        `bridgetrack.training.training_set.balanced`.
    tied
        Whether each weight is held as tightly as the starting model says (learned from other
        movies), or all alike.
    hold_sure
        Whether events that the starting model is sure of are held near annotated ones, see
        `bridgetrack.training.sure.hold_sure`.
    precision
        Duality gap that is enough, in task loss per annotation.
    most_calls
        Inferences over all annotated components at most, of an update that goes on from the last.
    most_calls_anew
        The same of a fit that begins at the starting weights: the first, and those without some
        answers, which are judged on these. They are as near to the optimum only with more.
    """

    strength: float | None = None
    balance: float = TrainingOptions.balance
    tied: bool = True
    hold_sure: bool = TrainingOptions.hold_sure
    precision: float = 5e-3
    most_calls: int = 60
    most_calls_anew: int = 300

    def strength_for(self, annotations: int) -> float:
        """The factor lambda for a number of annotations."""
        return TIGHTER * default_strength(annotations) if self.strength is None else self.strength

    def training(self, *, anew: bool = True) -> TrainingOptions:
        """The same as options of training, that begins ``anew`` or goes on."""
        most = self.most_calls_anew if anew else self.most_calls
        optimiser = LearningOptions(precision=self.precision, max_inferences=most)
        return TrainingOptions(
            balance=self.balance, hold_sure=self.hold_sure, optimiser=optimiser, learner="bundle"
        )


@dataclass(frozen=True)
class SessionOptions:
    """How a session works; the defaults need no thought.

    Parameters
    ----------
    suggest
        How events are ranked.
    learn
        How the model is updated.
    queue
        Suggestions computed ahead.
    update_every
        Answers after which `ActiveSession.wants_update` asks for an update.
    rejudge_every
        Answers after which random ones are judged anew by models that have not seen them.
    second_looks
        Whether an unexpected answer is asked about again, see `suggestion.unexpected`.
    """

    suggest: SuggestOptions = field(default_factory=SuggestOptions)
    learn: LearnOptions = field(default_factory=LearnOptions)
    queue: int = 12
    update_every: int = 5
    rejudge_every: int = 10
    second_looks: bool = True
