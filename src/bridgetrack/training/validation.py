"""Errors on annotations that a model has not seen, by cross-validation.

Folds are blocks of frame pairs, and a sample is never shared by two folds, so that neighbouring
cells and frames do not leak between training and test.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridgetrack.progress import Progress, Steps, relayed
from bridgetrack.training.fit import Movies
from bridgetrack.training.options import (
    ENOUGH_TO_VALIDATE,
    FOLDS,
    TrainingOptions,
    step_for,
)
from bridgetrack.training.pseudo_answers import weigh_pseudo_answers
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import TrainingSet, balanced

Array = NDArray[np.float64]
Index = NDArray[np.int64]

STAGE = "Testing on answers set aside"


def folds_of(data: TrainingSet, folds: int = FOLDS) -> Index | None:
    """Fold of every sample, shape (n,); None where there is too little to divide.

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
    options: TrainingOptions,
    fold: Index,
) -> Steps[Array]:
    """Errors on the annotations of the target, each of a model that has not seen its fold, (A,).

    Parameters
    ----------
    movies, lambda_, rho, options
        As in `Movies.fit`; as many annotations are left out as a fold has.
    fold
        Of every sample of the target, shape (n,); -1: it is never left out. Errors on annotations
        of such samples are NaN.
    """
    assert movies.target is not None
    folds = int(fold.max()) + 1
    of_annotation = fold[movies.target.data.annotation_sample]
    out = np.full(len(of_annotation), np.nan)
    for k in range(folds):
        step = Progress(STAGE, k / folds)
        errors = yield from _errors_of_fold(movies, lambda_, rho, options, fold, k, step)
        out[of_annotation == k] = errors[of_annotation == k]
    return out


def _errors_of_fold(
    movies: Movies,
    lambda_: float,
    rho: float,
    options: TrainingOptions,
    fold: Index,
    k: int,
    step: Progress,
) -> Steps[Array]:
    """Fit without the samples of a fold and judge on all annotations; yields `step`."""
    assert movies.target is not None
    rows = np.flatnonzero(fold != k)
    # models of their own: where optimisation ends depends a little on the optima found before
    target = TrackingModel(restricted_to(movies.target.data, rows), movies.target.exact)
    sources = tuple(TrackingModel(model.data, model.exact) for model in movies.sources)
    movies = replace(movies, target=target, sources=sources)
    fitted = yield from relayed(movies.fit(lambda_, rho, options, rows=rows), lambda _: step)
    w = movies.prior + step_for(movies.n_all) * (fitted.w - movies.prior)
    return errors_of(target, w)


def restricted_to(data: TrainingSet, rows: Index) -> TrainingSet:
    """The weights of kinds and of pseudo-answers as if other samples had no annotations."""
    if data.population is not None:
        data = balanced(data, data.population, rows)
    return weigh_pseudo_answers(data, rows)


def errors_of(model: TrackingModel, w: Array) -> Array:
    """Errors of weights (d,) on all annotations, 0 to 1, shape (A,)."""
    return np.clip(1.0 - model.satisfied(w), 0.0, 1.0)
