"""Training on annotated movies together: all source, union and transfer (000, section 1.6)."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.features.feature import FeatureSet
from bridgetrack.learning import JointResult
from bridgetrack.learning.result import Progress as Step
from bridgetrack.models.model import Model
from bridgetrack.models.shipped import shipped_model
from bridgetrack.pipeline.progress import Progress, Steps
from bridgetrack.pipeline.scene import Scene
from bridgetrack.training.assemble import notes_about, plain_model, trained_model
from bridgetrack.training.compare import choices, common_features, pairs, population_of
from bridgetrack.training.estimate import estimate_accuracy
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.outcome import Training, TrainingProgress, Transfer
from bridgetrack.training.sources import name_of
from bridgetrack.training.tied import (
    DEFAULT,
    DOUBTFUL,
    TRANSFER,
    UNION,
    Movies,
    States,
    Tie,
    Trial,
    clearly_larger,
    preferred,
    train_tied,
    try_ties,
)
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import balanced, build_training_set
from bridgetrack.training.validation import HeldOut, Validation, folds_of, judge

Array = NDArray[np.float64]
Joint = Literal["source", "union", "transfer"]


@dataclass(frozen=True)
class _Choice:
    """A tie, who chose it, what was tried for it, and what to start from.

    ``earlier`` are the weights of the sources alone, ``start`` those to start from.
    """

    tie: Tie
    by: str
    trials: tuple[Trial, ...] = ()
    states: States = ()
    earlier: Array | None = None
    start: Array | None = None


def joint_steps(
    strategy: Joint,
    targets: Sequence[Scene],
    sources: Sequence[Scene],
    prior: Model | None = None,
    options: TrainingOptions | None = None,
    previous: Training | None = None,
    tie: float | None = None,
) -> Steps[Training]:
    """Train on several annotated movies; see `strategies.strategy_steps`."""
    options, prior = options or TrainingOptions(), prior or shipped_model()
    if options.regularizer != "l2":
        raise InputError("learning from several movies together needs the regularizer l2")
    if not targets:
        raise InputError("there is no movie to learn for")
    empty = next((source for source in sources if not len(source.constraints)), None)
    if empty is not None:
        raise InputError(
            f"there is nothing to learn from in the earlier movie {name_of(empty)}: it has no "
            "usable annotations; annotate it, or leave it out"
        )
    yield Progress("Collecting annotations", 0.0)
    features = common_features([*targets, *sources])
    start = prior.aligned(features)
    before = choices(targets, start)
    target = None
    if any(len(scene.constraints) for scene in targets):
        target = _model_of(targets, population_of(targets, before), options)
    others = tuple(
        _model_of([scene], population_of([scene], choices([scene], start)), options)
        for scene in sources
    )
    learnt_from = None if strategy == "source" else target
    movies = Movies(learnt_from, others, start, prior.tied(features))
    earlier = None if previous is None else previous.transfer
    settled = previous if _settled(previous, options, tie, target) else None
    if settled is not None and earlier is not None:
        choice = _Choice(
            earlier.tie, "previous training", states=earlier.states, start=earlier.start
        )
    else:
        choice = yield from _choose(movies, strategy, options, tie)
        if not choice.states and earlier is not None:
            choice = replace(choice, states=earlier.states)
    result = yield from _fit(replace(movies, start=choice.start), choice, options, features)
    w = result.shared if movies.target is None else result.weights[0]
    strength = choice.tie.strength(movies.n)
    held, judged, reason, kept = _compared(movies, target, w, choice, settled)
    weights = w if kept == "trained" else start
    yield Progress("Comparing with the starting model", 0.0)
    after = choices(targets, weights)
    population = population_of(targets, after)
    gained = population_of(targets, [n & ~o for o, n in zip(before, after, strict=True)])
    lost = population_of(targets, [o & ~n for o, n in zip(before, after, strict=True)])
    estimate = None if settled is None else settled.estimate
    if held is not None and judged is not None and target is not None:
        estimate = estimate_accuracy(
            (held if kept == "trained" else judged).wrong,
            target.data.event,
            population,
            bool(target.data.unbiased.all()),
            options.seed,
        )
    count = 0 if target is None else target.data.n_annotations
    seen = result.of(0)
    seen = replace(seen, w=w)
    model = trained_model(
        weights, features, prior, options, strength, seen, targets, count, estimate
    )
    validation = None
    if held is not None and judged is not None:
        validation = Validation((strength,), (held,), judged)
    notes = () if target is None else notes_about(targets, target.data)
    return Training(
        replace(prior, estimate=model.estimate) if kept == "prior" else model,
        kept,
        reason,
        strength,
        choice.by,
        estimate,
        seen,
        validation if settled is None else settled.validation,
        pairs(population_of(targets, before), population),
        pairs(gained, lost),
        count,
        notes,
        transfer=Transfer(
            choice.tie,
            result,
            tuple(m.data.n_annotations for m in others),
            choice.trials,
            _states_of(movies, result, choice),
            choice.start,
        ),
    )


def _model_of(
    scenes: Sequence[Scene], population: Array, options: TrainingOptions
) -> TrackingModel:
    return TrackingModel(balanced(build_training_set(scenes), population, options.balance))


def _settled(
    previous: Training | None, options: TrainingOptions, tie: float | None, target: object
) -> bool:
    """Whether the tie and what to keep need not be found anew."""
    return (
        previous is not None
        and previous.transfer is not None
        and bool(previous.transfer.trials)
        and previous.kept == "trained"
        and options.strength is None
        and tie is None
        and target is not None
    )


def _ties(strategy: Joint, strength: float | None, tie: float | None, n: float) -> tuple[Tie, ...]:
    """What to try: the built-in ties, or those with the user's lambda and rho."""
    if strength is None and tie is None:
        return TRANSFER if strategy == "transfer" else UNION
    weights = (UNION[-1].weight,) if strength is None else (strength * n,)
    if strategy != "transfer":
        return tuple(Tie(weight, np.inf) for weight in weights)
    held = tuple(t.tie for t in TRANSFER if not t.alone) if tie is None else (tie * n,)
    return tuple(Tie(weight, value) for weight in weights for value in dict.fromkeys(held))


def _choose(
    movies: Movies, strategy: Joint, options: TrainingOptions, tie: float | None
) -> Generator[Progress, None, _Choice]:
    """The tie, how it was chosen, and what was tried."""
    ties = _ties(strategy, options.strength, tie, movies.n)
    by = "default" if options.strength is None and tie is None else "user"
    if movies.target is None:
        return _Choice(_default(strategy, ties), by)
    yield Progress("Asking the earlier movies alone", 0.0)
    alone = yield from _silent(train_tied(replace(movies, target=None), UNION[-1], options))
    target = movies.target
    theirs, ours = judge(target, alone.shared), judge(target, movies.prior)
    doubtful = clearly_larger(theirs.loss, ours.loss)
    movies = movies if doubtful else replace(movies, start=alone.shared)
    fold = folds_of(target.data, options.folds)
    if fold is None:
        usual = _default(strategy, ties)
        return _Choice(usual, by, (), alone.states, alone.shared, movies.start)
    ties = DOUBTFUL if doubtful and ties == TRANSFER else ties
    steps = try_ties(movies, ties, options, fold, alone.states)
    while True:
        try:
            share = next(steps)
        except StopIteration as stop:
            trials, states = stop.value
            break
        yield Progress("Choosing how far to trust the earlier movies", share)
    chosen = preferred(trials).tie
    by = by if len(ties) == 1 else "cross-validation"
    return _Choice(chosen, by, trials, states, alone.shared, movies.start)


def _default(strategy: Joint, ties: tuple[Tie, ...]) -> Tie:
    """The tie where nothing can be tried."""
    wanted = DEFAULT if strategy == "transfer" else UNION[-1]
    return wanted if wanted in ties else ties[0]


def _silent(
    steps: Generator[Step, None, JointResult],
) -> Generator[Progress, None, JointResult]:
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            result: JointResult = stop.value
            return result
        yield Progress("Asking the earlier movies alone", 0.5)


def _fit(
    movies: Movies, choice: _Choice, options: TrainingOptions, features: FeatureSet
) -> Generator[Progress, None, JointResult]:
    """Fit all annotations."""
    mine = () if movies.target is None else (None,)
    steps = train_tied(movies, choice.tie, options, states=(*mine, *choice.states))
    coupling = choice.tie.coupling(movies.n, movies.prior, movies.tightness)
    first = None
    while True:
        try:
            step = next(steps)
        except StopIteration as stop:
            result: JointResult = stop.value
            return result
        gap = step.gap if np.isfinite(step.gap) else 1.0
        first = max(first or gap, gap)
        done = np.log(first / max(gap, 1e-9)) / np.log(first / options.optimiser.precision + 1e-9)
        w = coupling.shared(step.weights) if movies.target is None else step.weights[0]
        yield TrainingProgress(
            "Learning",
            float(np.clip(done, 0, 1)),
            step.objective,
            step.gap,
            plain_model(w, features),
        )


def _compared(
    movies: Movies,
    target: TrackingModel | None,
    w: Array,
    choice: _Choice,
    settled: Training | None,
) -> tuple[HeldOut | None, HeldOut | None, str, str]:
    """What was learned and the prior on annotations not learned from, why which is kept, which.

    Where there are too few annotations to hold some out, the earlier movies alone are judged.
    """
    if target is None:
        reason = (
            "nothing was annotated in this movie: the weights of the earlier movies are taken "
            "over without a check"
        )
        return None, None, reason, "trained"
    judged = judge(target, movies.prior)
    if settled is not None:
        after = judge(target, w)
        if after.risk < judged.risk:
            return None, None, f"the trained model was updated; {_EARLIER}", "trained"
        return None, None, "the annotations agree with the starting model, which is kept", "prior"
    trial = next((t for t in choice.trials if t.tie == choice.tie), None)
    if trial is not None:
        held = trial.held_out
        what = "on its own annotations alone" if choice.tie.alone else "with the earlier movies"
        return held, judged, *_verdict(held, judged, f"the model trained {what}", "held-out")
    held = judge(target, w if choice.earlier is None else choice.earlier)
    return held, judged, *_verdict(held, judged, "what the earlier movies say", "these")


_EARLIER = "that it is better than the starting model was checked by an earlier training"


def _verdict(held: HeldOut, prior: HeldOut, what: str, which: str) -> tuple[str, str]:
    """Why which is kept: what was learned, unless it is worse where it can be checked.

    Where both are wrong equally often the earlier movies decide, for they are evidence too, unless
    the starting model's margins are clearly better.
    """
    seen = (
        f"{100 * held.error:.1f} % against {100 * prior.error:.1f} % of {which} annotations wrong"
    )
    if held.error < prior.error - 1e-9:
        return f"{what} is better than the starting model ({seen})", "trained"
    if held.error <= prior.error + 1e-9 and not clearly_larger(held.loss, prior.loss):
        return f"{what} is no worse than the starting model ({seen})", "trained"
    return f"{what} is worse than the starting model ({seen}), which is kept", "prior"


def _states_of(movies: Movies, result: JointResult, choice: _Choice) -> States:
    """What a later training can reuse of the sources."""
    if choice.tie.alone:
        return choice.states
    return result.states if movies.target is None else result.states[1:]
