"""How strongly to tie the movies of a joint training, and where to start it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.generators import relayed
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.tied import (
    DEFAULT,
    DOUBTFUL,
    TRANSFER,
    UNION,
    Movies,
    States,
    Tie,
    Trial,
    preferred,
    train_tied,
    try_ties,
)
from bridgetrack.training.validation import clearly_larger, folds_of, judge

Array = NDArray[np.float64]
Joint = Literal["source", "union", "transfer"]

ASKING = "Asking the earlier movies alone"


@dataclass(frozen=True)
class Choice:
    """A tie and how it was chosen.

    Parameters
    ----------
    tie, by
        What was chosen, and by whom, see `Training.chosen_by`.
    trials
        What was tried for it.
    states
        Of the sources, to go on from.
    earlier
        Weights of the sources alone, shape (d,), where they were learned.
    start
        Weights to start from, shape (d,); None: the prior.
    """

    tie: Tie
    by: str
    trials: tuple[Trial, ...] = ()
    states: States = ()
    earlier: Array | None = None
    start: Array | None = None


def choose_tie(
    movies: Movies, strategy: Joint, options: TrainingOptions, tie: float | None
) -> Steps[Choice]:
    """The tie, how it was chosen, and what was tried."""
    ties = _ties(strategy, options.strength, tie, movies.n)
    by = "default" if options.strength is None and tie is None else "user"
    if movies.target is None:
        return Choice(_default(strategy, ties), by)
    yield Progress(ASKING, 0.0)
    steps_alone = train_tied(replace(movies, target=None), UNION[-1], options)
    alone = yield from relayed(steps_alone, lambda _: Progress(ASKING, 0.5))
    target = movies.target
    theirs, ours = judge(target, alone.shared), judge(target, movies.prior)
    doubtful = clearly_larger(theirs.loss, ours.loss)
    movies = movies if doubtful else replace(movies, start=alone.shared)
    fold = folds_of(target.data, options.folds)
    if fold is None:
        usual = _default(strategy, ties)
        return Choice(usual, by, (), alone.states, alone.shared, movies.start)
    ties = DOUBTFUL if doubtful and ties == TRANSFER else ties
    steps = try_ties(movies, ties, options, fold, alone.states)
    trials, states = yield from relayed(
        steps, lambda share: Progress("Choosing how far to trust the earlier movies", share)
    )
    chosen = preferred(trials).tie
    by = by if len(ties) == 1 else "cross-validation"
    return Choice(chosen, by, trials, states, alone.shared, movies.start)


def _ties(strategy: Joint, strength: float | None, tie: float | None, n: float) -> tuple[Tie, ...]:
    """What to try: the built-in ties, or those with the user's lambda and rho."""
    if strength is None and tie is None:
        return TRANSFER if strategy == "transfer" else UNION
    weights = (UNION[-1].weight,) if strength is None else (strength * n,)
    if strategy != "transfer":
        return tuple(Tie(weight, np.inf) for weight in weights)
    held = tuple(t.tie for t in TRANSFER if not t.alone) if tie is None else (tie * n,)
    return tuple(Tie(weight, value) for weight in weights for value in dict.fromkeys(held))


def _default(strategy: Joint, ties: tuple[Tie, ...]) -> Tie:
    """The tie where nothing can be tried."""
    wanted = DEFAULT if strategy == "transfer" else UNION[-1]
    return wanted if wanted in ties else ties[0]
