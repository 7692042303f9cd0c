"""Annotated movies as domains of joint training, and how strongly to tie them.

With n annotations in the movie of interest (the target), every domain's risk is its sum over
annotations divided by n, so every annotation counts alike, in whichever movie it is, and lambda
and rho are on the scale of training the target alone. With ``lambda = weight / n`` and
``rho = tie / n``, the more annotations the target has, the less it is held (as by the sums of 000,
eq. 1.9).

How strongly to tie the movies of a joint training, and where to start it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning import Coupling, Domain, train_joint
from bridgetrack.learning.result import Step, TrainingResult, TrainingState
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import HeldOut, clearly_larger, folds_of, judge

Array = NDArray[np.float64]
Index = NDArray[np.int64]


States = tuple[TrainingState | None, ...]


@dataclass(frozen=True)
class Tie:
    """How strongly movies are held together, in annotations' worth.

    Parameters
    ----------
    weight
        ``lambda n``; inf holds the shared weights at the prior, so that the movies know nothing
        of each other.
    tie
        ``rho n``; inf makes all movies one (*union*).
    """

    weight: float
    tie: float

    @property
    def alone(self) -> bool:
        """Whether the target is trained without the other movies."""
        return bool(np.isinf(self.weight))

    def coupling(self, n: float, prior: Array, tightness: Array | None) -> Coupling:
        """Lambda and rho for n annotations."""
        return Coupling(self.weight / n, self.tie / n, prior, tightness)

    def strength(self, n: float) -> float:
        """What holds the target at the prior: lambda, or rho where it is alone."""
        return (self.tie if self.alone else self.weight) / n


UNION = (Tie(3.0, np.inf), Tie(1.0, np.inf))
"""What union tries, the strongest first."""
TIED = (*UNION, Tie(1.0, 100.0), Tie(1.0, 10.0))
ALONE = (Tie(np.inf, 10.0), Tie(np.inf, 3.0))
TRANSFER = (*TIED, *ALONE)
"""What transfer tries, from one model for all movies to a model of the target alone."""
DOUBTFUL = (*ALONE, *reversed(TIED))
"""The same in the order of preference where the earlier movies mislead."""
DEFAULT = Tie(1.0, 100.0)
"""Where the target has too few annotations to choose."""


@dataclass(frozen=True)
class Trial:
    """A tie and what it does on annotations of the target that it was not trained on."""

    tie: Tie
    held_out: HeldOut


@dataclass(frozen=True)
class Movies:
    """The annotated movies of a joint training.

    Parameters
    ----------
    target
        The movie of interest; None where nothing is annotated there.
    sources
        The others.
    prior, tightness
        Weights to stay close to, shape (d,), and the diagonal of the metric, or None.
    start
        Weights to start from where movies are tied, shape (d,); None: the prior. What is not
        annotated is completed with these first, so better ones lead to a better optimum.
    """

    target: TrackingModel | None
    sources: tuple[TrackingModel, ...]
    prior: Array
    tightness: Array | None
    start: Array | None = None

    @property
    def n(self) -> float:
        """Annotations of the target; of all sources where it has none."""
        models = self.sources if self.target is None else (self.target,)
        return float(sum(model.data.n_annotations for model in models))

    def domains(self, tie: Tie, rows: Index | None) -> tuple[list[Domain], float]:
        """The target's samples (None: all) and those of the sources, and n; the target first."""
        domains, n = [], self.n
        if self.target is not None:
            data = self.target.data
            rows = np.arange(len(data.samples)) if rows is None else rows
            n = float(np.isin(data.annotation_sample, rows).sum())
            domains.append(Domain(self.target, [data.samples[i] for i in rows], n))
        if not tie.alone:
            domains += [Domain(model, model.data.samples, n) for model in self.sources]
        return domains, n


def train_tied(
    movies: Movies,
    tie: Tie,
    options: TrainingOptions,
    *,
    rows: Index | None = None,
    states: States = (),
) -> Generator[Step, None, TrainingResult]:
    """Train jointly on the target's samples (None: all) and all of the sources.

    Yields
    ------
    Step
        ``weights`` are those of all movies, the target first.

    Returns
    -------
    TrainingResult
        The target's weights are the first; without a target, ``w`` holds the weights.
    """
    domains, n = movies.domains(tie, rows)
    known = (*states, *(None for _ in domains))[: len(domains)]
    first = movies.prior if tie.alone or movies.start is None else movies.start
    return (
        yield from train_joint(
            domains,
            tie.coupling(n, movies.prior, movies.tightness),
            loss=options.loss,
            treatment=options.treatment,
            options=options.optimiser,
            initial=np.tile(first, (len(domains), 1)),
            states=known,
        )
    )


def try_ties(
    movies: Movies,
    ties: Sequence[Tie],
    options: TrainingOptions,
    fold: Index,
    states: States,
) -> Generator[float, None, tuple[tuple[Trial, ...], States]]:
    """Cross-validate ties over the annotations of the target.

    Parameters
    ----------
    movies
        With a target.
    ties
        In the order of preference, see `preferred`.
    options
        Loss and optimiser; the precision is lower, the more so the larger the sources are.
    fold
        Fold of every sample of the target, shape (n,), see `validation.folds_of`.
    states
        Of the sources, of an earlier training.

    Yields
    ------
    float
        Share of the work done.

    Returns
    -------
    trials
        One for each tie.
    states
        Of the sources, for a later training.
    """
    assert movies.target is not None
    data = movies.target.data
    others = sum(model.data.n_annotations for model in movies.sources)
    precision = max(options.optimiser.precision, 5e-3) * float((1 + others / movies.n) ** 0.25)
    loose = replace(options, optimiser=replace(options.optimiser, precision=precision))
    folds = int(fold.max()) + 1
    mine: list[TrainingState | None] = [None] * folds
    sources = states
    trials = []
    for number, tie in enumerate(ties):
        held = HeldOut(np.zeros(data.n_annotations), np.zeros(data.n_annotations))
        for k in range(folds):
            steps = train_tied(
                movies, tie, loose, rows=np.flatnonzero(fold != k), states=(mine[k], *sources)
            )
            share = (number + k / folds) / len(ties)
            result = yield from _quietly(steps, share)
            mine[k] = result.states[0]
            sources = sources if tie.alone else result.states[1:]
            judged = judge(movies.target, result.weights[0])
            here = fold[data.annotation_sample] == k
            held.wrong[here], held.loss[here] = judged.wrong[here], judged.loss[here]
        trials.append(Trial(tie, held))
    return tuple(trials), sources


def preferred(trials: Sequence[Trial]) -> Trial:
    """Of the trials whose held-out loss is not clearly larger than the smallest, the most right.

    With few annotations the smallest loss is drawn by chance. Among those alike the fewest wrong
    annotations decide, and then the order.
    """
    best = min(trials, key=lambda trial: round(trial.held_out.risk, 6))
    alike = [t for t in trials if not clearly_larger(t.held_out.loss, best.held_out.loss)]
    return min(alike, key=lambda trial: round(trial.held_out.error, 9))


def _quietly(
    steps: Generator[Step, None, TrainingResult], share: float
) -> Generator[float, None, TrainingResult]:
    return relayed(steps, lambda _: share)


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
    theirs, ours = judge(target, alone.w), judge(target, movies.prior)
    doubtful = clearly_larger(theirs.loss, ours.loss)
    movies = movies if doubtful else replace(movies, start=alone.w)
    fold = folds_of(target.data, options.folds)
    if fold is None:
        usual = _default(strategy, ties)
        return Choice(usual, by, (), alone.states, alone.w, movies.start)
    ties = DOUBTFUL if doubtful and ties == TRANSFER else ties
    steps = try_ties(movies, ties, options, fold, alone.states)
    trials, states = yield from relayed(
        steps, lambda share: Progress("Choosing how far to trust the earlier movies", share)
    )
    chosen = preferred(trials).tie
    by = by if len(ties) == 1 else "cross-validation"
    return Choice(chosen, by, trials, states, alone.w, movies.start)


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
