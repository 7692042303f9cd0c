"""Fit weights to annotated movies, and judge them on answers that they have not seen.

With n annotations in the movie of interest (the target), every movie's risk is its sum over
annotations divided by n, so every annotation counts alike, in whichever movie it is, and lambda
and rho are on the scale of training the target alone (as by the sums of 000, eq. 1.9).

Folds of the cross-validation are blocks of frame pairs, and a sample is never shared by two folds,
so that neighbouring cells and frames do not leak between training and test.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bridgetrack.arrays import Array, Index
from bridgetrack.learning import (
    L1,
    L2,
    Bundle,
    Domain,
    Regularizer,
    Stacked,
    TrainingResult,
    TrainingStep,
    train,
)
from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.options import (
    ENOUGH_TO_VALIDATE,
    FOLDS,
    TrainingOptions,
)
from bridgetrack.training.pseudo_answers import weigh_pseudo_answers
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced

Fit = Generator[TrainingStep, None, TrainingResult]

STAGE = "Testing on held-out answers"

FOLD_PRECISION = 5e-3
"""Duality gap of the fits that are only judged."""


@dataclass(frozen=True)
class Movies:
    """Annotated movies to learn from.

    Parameters
    ----------
    target
        The movie of interest; None if nothing is annotated there.
    sources
        The others.
    prior, metric
        Weights to stay close to, shape (d,), and the diagonal of the metric, or None.
    state
        Of an earlier fit of the target alone, whose outputs of inference are used again.
    """

    target: TrackingModel | None
    sources: tuple[TrackingModel, ...]
    prior: Array
    metric: Array | None
    state: Bundle | None = None

    @property
    def n(self) -> float:
        """Annotations of the target; of all sources where it has none."""
        models = self.sources if self.target is None else (self.target,)
        return float(sum(model.data.n_annotations for model in models))

    def fit(
        self,
        lambda_: float,
        rho: float,
        options: TrainingOptions,
        *,
        rows: Index | None = None,
        state: Bundle | None = None,
    ) -> Fit:
        """Fit some of the target's samples (None: all) and all of the sources.

        Parameters
        ----------
        lambda_
            How close weights stay to the prior.
        rho
            How close the weights of different movies stay to each other; infinite: they are equal.
        options
            Other choices.
        rows
            Samples of the target.
        state
            Of an earlier fit of a single movie, to go on from.

        Yields
        ------
        TrainingStep
            ``weights`` are those of the target.

        Returns
        -------
        TrainingResult
            ``w`` are the weights of the target, without one the shared ones.
        """
        how: dict[str, Any] = {
            "loss": options.loss,
            "treatment": options.treatment,
            "options": options.learning,
        }
        domains, n = [], self.n
        if self.target is not None:
            data = self.target.data
            rows = np.arange(len(data.samples)) if rows is None else rows
            n = float(np.isin(data.annotation_sample, rows).sum())
            domains.append(Domain(self.target, [data.samples[i] for i in rows.tolist()], n))
        if not self.sources:
            (mine,) = domains
            regularizer = regularizer_of(options, lambda_, self.prior, self.metric)
            # A fold begins at the prior, for where CCCP ends depends on where it begins.
            initial = self.prior if state is None else None
            how |= {"n_annotations": n, "state": state or self.state, "initial": initial}
            return (yield from train(mine.model, mine.samples, regularizer, **how))
        # the master problem has many more weights, and its time grows steeply with slacks
        how["options"] = replace(options.learning, learner=options.learning.learner or "1-slack")
        domains += [Domain(model, model.data.samples, n) for model in self.sources]
        stacked = Stacked(domains, lambda_, rho, self.prior, self.metric)
        steps = train(stacked, stacked.samples, stacked.regularizer, n_annotations=1, **how)

        def of_target(w: Array) -> Array:
            return stacked.shared(w) if self.target is None else stacked.weights(w)[0]

        result = yield from relayed(steps, lambda s: replace(s, weights=of_target(s.weights)))
        return replace(result, w=of_target(result.w))


def regularizer_of(
    options: TrainingOptions, lambda_: float, prior: Array, metric: Array | None = None
) -> Regularizer:
    """The chosen regulariser around a prior."""
    if options.regularizer == "l2":
        return L2(lambda_, prior=prior, metric=metric)
    return L1(lambda_, prior=prior, metric=None if metric is None else np.sqrt(metric))


def folds_of(data: TrainingSet, folds: int = FOLDS) -> Index | None:
    """Fold of every sample, shape (n,); None if there is too little to divide.

    Frame pairs are cut into blocks, three per fold where there are enough, and dealt out in turn.
    """
    if data.n_annotations < ENOUGH_TO_VALIDATE:
        return None
    first = np.full(len(data.samples), -1, dtype=np.int64)
    order = np.lexsort((data.pair, data.annotation_sample))
    sample, where = np.unique(data.annotation_sample[order], return_index=True)
    place = data.scene * (int(data.pair.max()) + 2) + data.pair
    first[sample] = place[order][where]
    pairs, number = np.unique(first, return_inverse=True)
    count = min(folds, len(pairs))
    if count < 2:
        return None
    block = max(1, len(pairs) // (3 * count))
    return np.asarray((number // block) % count, dtype=np.int64)


def held_out_errors(
    movies: Movies,
    lambda_: float,
    rho: float,
    step: float,
    options: TrainingOptions,
    fold: Index,
) -> Steps[Array]:
    """Errors on the annotations of the target, each of a model that has not seen its fold, (A,).

    Parameters
    ----------
    movies, lambda_, rho, options
        As in `Movies.fit`; as many annotations are left out as a fold has.
    step
        Share of the step from the starting to the fitted weights that is taken.
    fold
        Of every sample of the target, shape (n,); -1: it is never left out. Errors on annotations
        of such samples are NaN.
    """
    assert movies.target is not None
    data, exact = movies.target.data, movies.target.exact
    precision = max(options.optimiser.precision, FOLD_PRECISION)
    loose = replace(options, optimiser=replace(options.optimiser, precision=precision))
    folds, of_annotation = int(fold.max()) + 1, fold[data.annotation_sample]
    out = np.full(len(of_annotation), np.nan)
    for k in range(folds):
        told, rows = Progress(STAGE, k / folds), np.flatnonzero(fold != k)
        # models of their own: where optimisation ends depends a little on the optima found before
        target = TrackingModel(restricted_to(data, rows), exact)
        sources = tuple(TrackingModel(model.data, model.exact) for model in movies.sources)
        steps = replace(movies, target=target, sources=sources).fit(lambda_, rho, loose, rows=rows)
        fitted = yield from relayed(steps, lambda _: told)  # noqa: B023
        errors = errors_of(target, movies.prior + step * (fitted.w - movies.prior))
        out[of_annotation == k] = errors[of_annotation == k]
    return out


def restricted_to(data: TrainingSet, rows: Index) -> TrainingSet:
    """The weights of kinds and of pseudo-answers as if other samples had no annotations."""
    if data.population is not None:
        data = balanced(data, data.population, rows)
    return weigh_pseudo_answers(data, rows)


def errors_of(model: TrackingModel, w: Array) -> Array:
    """Errors of weights (d,) on all annotations, 0 to 1, shape (A,)."""
    return np.clip(1.0 - model.satisfied(w), 0.0, 1.0)
