"""Fit weights to annotated movies, and choose how tightly they are held.

With n annotations in the movie of interest (the target), every movie's risk is its sum over
annotations divided by n, so every annotation counts alike, in whichever movie it is, and lambda
and rho are on the scale of training the target alone. With ``lambda = weight / n`` and
``rho = tie / n``, the more annotations the target has, the less it is held (as by the sums of 000,
eq. 1.9).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning import (
    L1,
    L2,
    Coupling,
    Domain,
    Regularizer,
    TrainingResult,
    TrainingState,
    TrainingStep,
    train,
    train_joint,
)
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.spread import Here, Workers
from bridgetrack.training.options import (
    ENOUGH_TO_CHOOSE,
    HALFWAY,
    STEPS,
    TrainingOptions,
    default_strength,
)
from bridgetrack.training.sure import as_seen
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.validation import (
    HeldOut,
    Validation,
    best_strength,
    clearly_larger,
    folds_of,
    judge,
    together,
)

Array = NDArray[np.float64]
Index = NDArray[np.int64]
States = tuple[TrainingState | None, ...]
Joint = Literal["source", "union", "transfer"]

ASKING = "Asking the earlier movies alone"


@dataclass(frozen=True)
class Tie:
    """How strongly movies are held together, in annotations' worth."""

    # ``lambda n``; inf holds the shared weights at the prior, so that the movies know nothing of
    # each other
    weight: float
    tie: float  # ``rho n``; inf makes all movies one (*union*)

    @property
    def alone(self) -> bool:
        """Whether the target is trained without the other movies."""
        return bool(np.isinf(self.weight))

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

Fit = Generator[TrainingStep, None, TrainingResult]
Learned = tuple[float, Array | None]
"""The share of the work that is done, and weights learned so far, shape (d,), if any."""

Hold = float | Tie
"""What holds weights at the prior: lambda where a movie is alone, a tie where there are others."""


@dataclass(frozen=True)
class Movies:
    """Annotated movies to learn from.

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

    def fit(
        self,
        hold: Hold,
        options: TrainingOptions,
        *,
        rows: Index | None = None,
        states: States = (),
        anew: bool = False,
    ) -> Fit:
        """Fit some of the target's samples (None: all) and all of the sources.

        ``states`` lend bounds and outputs; a movie that is alone goes on from their weights, too,
        or, ``anew``, from the prior: weights that have seen an answer must not begin a fit that it
        is kept from, since where CCCP ends hangs on where it begins.

        Yields
        ------
        TrainingStep
            ``weights`` are those of the target.

        Returns
        -------
        TrainingResult
            ``w`` are the weights of the target, without one the shared ones; its state is the
            first.
        """
        domains, n = [], self.n
        if self.target is not None:
            data = self.target.data
            rows = np.arange(len(data.samples)) if rows is None else rows
            n = float(np.isin(data.annotation_sample, rows).sum())
            domains.append(Domain(self.target, [data.samples[i] for i in rows.tolist()], n))
        how = {"loss": options.loss, "treatment": options.treatment, "options": options.learning}
        if not isinstance(hold, Tie):
            (mine,) = domains
            result = yield from train(
                mine.model,
                mine.samples,
                regularizer_of(options, hold, self.prior, self.tightness),
                n_annotations=n,
                state=states[0] if states else None,
                initial=self.prior if anew else None,
                **how,  # type: ignore[arg-type]
            )
            return result
        if not hold.alone:
            domains += [Domain(model, model.data.samples, n) for model in self.sources]
        coupling = Coupling(hold.weight / n, hold.tie / n, self.prior, self.tightness)
        first = self.prior if hold.alone or self.start is None else self.start
        steps = train_joint(
            domains,
            coupling,
            initial=np.tile(first, (len(domains), 1)),
            states=(*states, *(None for _ in domains))[: len(domains)],
            **how,  # type: ignore[arg-type]
        )

        def seen_from_target(weights: Array) -> Array:
            return coupling.shared(weights) if self.target is None else weights[0]

        result = yield from relayed(
            steps, lambda step: replace(step, weights=seen_from_target(step.weights))
        )
        return replace(result, w=seen_from_target(result.weights))

    def states_of_sources(self, result: TrainingResult) -> States:
        """Of the states of a fit those of the sources."""
        return result.states if self.target is None else result.states[1:]


def regularizer_of(
    options: TrainingOptions, strength: float, prior: Array, tightness: Array | None = None
) -> Regularizer:
    """The chosen regulariser around a prior, which holds weights more or less tightly."""
    if options.regularizer == "l2":
        return L2(strength, prior=prior, metric=tightness)
    return L1(strength, prior=prior, metric=None if tightness is None else np.sqrt(tightness))


def cross_validate(
    movies: Movies,
    holds: Sequence[Hold],
    options: TrainingOptions,
    fold: Index,
    *,
    states: States = (),
    until_worse: bool = False,
    workers: Workers | None = None,
) -> Generator[Learned, None, tuple[tuple[HeldOut, ...], States]]:
    """Try what holds the weights on annotations of the target that are held out.

    ``holds`` are tried one after another. Each begins where the final fit does, with the bounds
    that were found for the one before; and as precisely where a movie is alone, so that what is
    judged is what will be shipped. It is less precise the larger the sources are. ``fold`` (n,) is
    that of every sample (`validation.folds_of`); ``states`` are those of the sources, handed back
    for the final fit. Yields the share of the work done, and weights learned so far. Folds know
    nothing of each other, so that ``workers`` elsewhere find the same.
    """
    assert movies.target is not None
    data = movies.target.data
    others = sum(model.data.n_annotations for model in movies.sources)
    # as precisely as the final fit: what is judged is what will be shipped
    precision = options.optimiser.precision
    if others:
        precision = max(precision, 5e-3) * float((1 + others / movies.n) ** 0.25)
    loose = replace(options, optimiser=replace(options.optimiser, precision=precision))
    folds = int(fold.max()) + 1
    mine: list[TrainingState | None] = [None] * folds
    results: list[HeldOut] = []
    learned: Array | None = None
    shared = movies, loose, fold

    def told(step: tuple[int, TrainingStep | None]) -> Learned:
        nonlocal learned
        done, now = step
        if not (results or done) and now is not None:
            learned = now.weights  # better than nothing where this is the last that is heard
        return (len(results) + done / folds) / len(holds), learned

    for hold in holds:
        parts = [(hold, k, (mine[k], *states)) for k in range(folds)]
        work = (workers or Here()).follow(_without_fold, shared, parts)
        fits = yield from relayed(work, told)
        held = together([judged for _, judged in fits], fold[data.annotation_sample])
        for k, (fitted, _) in enumerate(fits):
            mine[k], learned = fitted.state, fitted.w
        states = movies.states_of_sources(fits[-1][0]) or states
        results.append(held)
        risks = [h.risk for h in results]
        if until_worse and len(risks) > 2 and risks[-1] > risks[-2] > risks[-3]:
            break
    return tuple(results), states


def _without_fold(
    shared: tuple[Movies, TrainingOptions, Index], part: tuple[Hold, int, States]
) -> Generator[TrainingStep, None, tuple[TrainingResult, HeldOut]]:
    """Fit without the samples of a fold, whose answers tell it nothing, and judge on these."""
    movies, options, fold = shared
    hold, k, states = part
    assert movies.target is not None
    # programs of its own: the optimum that one goes on from is told by its last digits
    rows, here = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
    given = movies.target
    target = TrackingModel(as_seen(given.data, rows), given.exact, like=given)
    sources = tuple(TrackingModel(m.data, m.exact, like=m) for m in movies.sources)
    movies = replace(movies, target=target, sources=sources)
    fitted = yield from movies.fit(hold, options, rows=rows, states=states, anew=True)
    w, unfinished = fitted.w[None], int(not fitted.converged)
    held = replace(judge(target, fitted.w, here), learned=w, unfinished=unfinished)
    if not isinstance(hold, Tie):
        middle = movies.prior + HALFWAY * (fitted.w - movies.prior)
        held = replace(held, halfway=replace(judge(target, middle, here), learned=w))
    return fitted, held


@dataclass(frozen=True)
class Trying(Progress):
    """A step of choosing what holds the weights.

    Parameters
    ----------
    weights
        Learned from some of the annotations: better than nothing where training is cancelled now.
    """

    weights: Array | None = None


# --- how tightly weights are held ------------------------------------------------------------


@dataclass(frozen=True)
class Trial:
    """A tie and what it does on annotations of the target that it was not trained on."""

    tie: Tie
    held_out: HeldOut


@dataclass(frozen=True)
class HoldChoice:
    """What holds the weights, and how it was chosen."""

    # hold, by: what was chosen, and by whom, see `Training.chosen_by`
    hold: Hold
    by: str
    # cross-validation of lambda, or of the tie that was chosen; None where there was none
    validation: Validation | None = None
    trials: tuple[Trial, ...] = ()  # what was tried for movies that are tied
    states: States = ()  # of the sources, to go on from
    # weights of the sources alone, shape (d,), where they were learned
    earlier: Array | None = None
    start: Array | None = None  # weights to start from, shape (d,); None: the prior

    @property
    def unfinished(self) -> int:
        """Models by which it was chosen that were not fitted to the wanted precision."""
        tried = [trial.held_out for trial in self.trials]
        if self.validation is not None and not tried:
            tried = list(self.validation.held_out)
        return sum(one.unfinished for one in tried)

    @property
    def tie(self) -> Tie:
        """How strongly movies are tied, where there are several."""
        assert isinstance(self.hold, Tie)
        return self.hold


def choose_strength(
    movies: Movies, options: TrainingOptions, workers: Workers | None = None
) -> Steps[HoldChoice]:
    """Lambda for a movie that is alone, by cross-validation where there is enough to choose by."""
    assert movies.target is not None
    data = movies.target.data
    usual = default_strength(data.n_annotations)
    strength, by = (usual, "default") if options.strength is None else (options.strength, "user")
    fold = folds_of(data, options.folds)
    if fold is None:
        return HoldChoice(strength, by)
    choose = options.strength is None and data.n_annotations >= ENOUGH_TO_CHOOSE
    strengths = tuple(usual * step for step in STEPS) if choose else (strength,)
    prior = judge(movies.target, movies.prior)
    steps = cross_validate(movies, strengths, options, fold, until_worse=True, workers=workers)
    held_out, _ = yield from relayed(
        steps, lambda step: Trying("Testing on answers set aside", *step)
    )
    tried = strengths[: len(held_out)]
    best = best_strength(tried, held_out, data.annotation_sample)
    validation = Validation(tried, held_out, prior, best)
    by = "cross-validation" if choose else by
    return HoldChoice(tried[best], by, validation)


def choose_tie(
    movies: Movies,
    strategy: Joint,
    options: TrainingOptions,
    tie: float | None,
    workers: Workers | None = None,
) -> Steps[HoldChoice]:
    """How strongly to tie movies, and where to start."""
    ties = _ties(strategy, options.strength, tie, movies.n)
    by = "default" if options.strength is None and tie is None else "user"
    target = movies.target
    if target is None:
        return HoldChoice(_default(strategy, ties), by)
    yield Progress(ASKING, 0.0)
    alone = yield from relayed(
        replace(movies, target=None).fit(UNION[-1], options),
        lambda step: Trying(ASKING, 0.5, step.weights),
    )
    theirs, ours = judge(target, alone.w), judge(target, movies.prior)
    part = target.data.annotation_sample
    doubtful = clearly_larger(theirs.loss, ours.loss, part)
    start = None if doubtful else alone.w
    fold = folds_of(target.data, options.folds)
    if fold is None:
        return HoldChoice(
            _default(strategy, ties), by, states=alone.states, earlier=alone.w, start=start
        )
    ties = DOUBTFUL if doubtful and ties == TRANSFER else ties
    tied = replace(movies, start=start)
    steps = cross_validate(tied, ties, options, fold, states=alone.states, workers=workers)
    held_out, states = yield from relayed(
        steps, lambda step: Trying("Choosing how far to trust the earlier movies", *step)
    )
    trials = tuple(Trial(tie, held) for tie, held in zip(ties, held_out, strict=True))
    by = by if len(ties) == 1 else "cross-validation"
    return HoldChoice(preferred(trials, part).tie, by, None, trials, states, alone.w, start)


def preferred(trials: Sequence[Trial], part: Index) -> Trial:
    """Of the trials whose held-out loss is not clearly larger than the smallest, the most right.

    With few annotations, whose components are ``part`` (A,), the smallest loss is drawn by chance.
    Among those alike the fewest wrong annotations decide, and then the order.
    """
    best = min(trials, key=lambda trial: round(trial.held_out.risk, 6)).held_out.loss
    alike = [t for t in trials if not clearly_larger(t.held_out.loss, best, part)]
    return min(alike, key=lambda trial: round(trial.held_out.error, 9))


def _ties(strategy: Joint, strength: float | None, tie: float | None, n: float) -> tuple[Tie, ...]:
    """What to try: the built-in ties, or those with the user's lambda and rho."""
    if strength is None and tie is None:
        return TRANSFER if strategy == "transfer" else UNION
    weight = UNION[-1].weight if strength is None else strength * n
    if strategy != "transfer":
        return (Tie(weight, np.inf),)
    held = tuple(t.tie for t in TRANSFER if not t.alone) if tie is None else (tie * n,)
    return tuple(Tie(weight, value) for value in dict.fromkeys(held))


def _default(strategy: Joint, ties: tuple[Tie, ...]) -> Tie:
    """The tie where nothing can be tried."""
    wanted = DEFAULT if strategy == "transfer" else UNION[-1]
    return wanted if wanted in ties else ties[0]
