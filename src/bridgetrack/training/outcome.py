"""What a training reports while it runs and when it is done."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridgetrack.annotations.annotation import Annotation
from bridgetrack.learning.domains import JointResult
from bridgetrack.learning.result import TrainingResult, TrainingState
from bridgetrack.models.model import Model
from bridgetrack.pipeline.progress import Progress
from bridgetrack.training.estimate import Estimate
from bridgetrack.training.tied import Tie, Trial
from bridgetrack.training.validation import Validation


@dataclass(frozen=True)
class TrainingProgress(Progress):
    """Where training stands.

    Parameters
    ----------
    objective, gap
        Best objective so far and its duality gap.
    model
        The best model so far: what to keep where training is cancelled; None while λ is chosen.
    """

    objective: float = np.nan
    gap: float = np.nan
    model: Model | None = None


@dataclass(frozen=True)
class Transfer:
    """How a training used earlier movies.

    Parameters
    ----------
    tie
        How strongly they were tied together.
    result
        What joint training reports, the weights of every movie among it.
    n_annotations
        Annotations of each earlier movie.
    trials
        What cross-validation tried, in the order of preference; empty where it was not possible.
    states
        Of the earlier movies, for a later training.
    start
        Weights that the training started from where movies are tied; None: the prior.
    """

    tie: Tie
    result: JointResult
    n_annotations: tuple[int, ...]
    trials: tuple[Trial, ...]
    states: tuple[TrainingState | None, ...]
    start: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class Training:
    """A finished training.

    Parameters
    ----------
    model
        What was kept: the trained weights or the prior's.
    kept
        ``"trained"`` or ``"prior"``.
    reason
        Why, as a sentence.
    strength
        The λ used.
    chosen_by
        ``"cross-validation"``, ``"default"``, ``"user"`` or ``"previous training"``.
    estimate
        Accuracy on held-out annotations; None where there are too few.
    result
        What the learner reports.
    validation
        The cross-validation (where its verdict was taken over, that of the previous training),
        or None.
    changes
        Events chosen with the prior and with the new model, per kind, over all movies.
    exchanged
        Events gained and lost from the one to the other, per kind.
    n_annotations
        Annotations used.
    notes
        Remarks in plain words: unused or lost annotations, kinds never annotated.
    origin
        Strategy and names of the sources, where there were any (`strategies`).
    transfer
        How earlier movies were used, or None.
    doubtful
        Annotations that contradict the starting model by a wide margin; most of them are slips,
        unless there are many.
    suited
        Whether there are no more of them than slips explain; otherwise the starting model does
        not suit the movie.
    """

    model: Model
    kept: str
    reason: str
    strength: float
    chosen_by: str
    estimate: Estimate | None
    result: TrainingResult
    validation: Validation | None
    changes: dict[str, tuple[int, int]]
    exchanged: dict[str, tuple[int, int]]
    n_annotations: int
    notes: tuple[str, ...]
    origin: tuple[str, ...] = ()
    transfer: Transfer | None = None
    doubtful: tuple[Annotation, ...] = ()
    suited: bool = True

    @property
    def state(self) -> TrainingState | None:
        """What a later training can reuse."""
        return self.result.state
