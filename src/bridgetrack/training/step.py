"""How far to go from the starting weights w0 to the fitted ones.

    w = w0 + s (w_fit - w0),    s = mean of p(s) ~ exp(-n J(w0 + s (w_fit - w0)) / 3),  0 <= s <= 1

is the mean of the posterior along the way, where n J is the objective as a sum over the answers. If
the answers hardly tell shares apart, as where the start is nearly right, half of the way is taken;
the more of them the start contradicts, the nearer s comes to 1.

Unusual answers, which contradict the start by a wide margin, do not speak here: w_fit is learned
from them, too, but if one is a slip it would otherwise call for the whole way by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from bridgetrack.annotations.constraints import compile_constraints
from bridgetrack.arrays import Array
from bridgetrack.learning.losses import find_loss
from bridgetrack.learning.risk import Risk
from bridgetrack.pipeline.scene import Scene
from bridgetrack.progress import Progress, Steps
from bridgetrack.training.fit import Movies, regularizer_of
from bridgetrack.training.options import TrainingOptions
from bridgetrack.training.pseudo_answers import weighted_answers
from bridgetrack.training.tracking_model import TrackingModel
from bridgetrack.training.training_set import build_training_set

TEMPERATURE = 3.0
"""Answers about cells side by side repeat each other: each counts as a third of an independent one.
On nine movies 2 to 4 do as well."""

SHARES = np.linspace(0.0, 1.0, 5)
"""Where the objective is computed; it is nearly linear in between."""


def share_of_step(
    movies: Movies, scenes: Sequence[Scene], fitted: Array, lambda_: float, options: TrainingOptions
) -> Steps[float]:
    """Share s of the step from the starting to the fitted weights that is taken.

    Parameters
    ----------
    movies
        What was learned from: the answers of the target speak, without one those of the sources.
    scenes
        The target's movies with their annotations.
    fitted
        Fitted weights of the target, shape (d,).
    lambda_, options
        Of the fit.

    Yields
    ------
    Progress
    """
    models = _speaking(movies, scenes)
    points = movies.prior + SHARES[:, None] * (fitted - movies.prior)
    loss, n = find_loss(options.loss), sum(model.data.n_annotations for model in models)
    objective = n * regularizer_of(options, lambda_, movies.prior, movies.metric).value(points)
    for model in models:
        risk = Risk(model, model.data.samples, None, loss, options.treatment)
        for k, w in enumerate(points):
            yield Progress("Choosing how far to go", k / len(points))
            objective[k] += risk.each(w).sum()
    shares = np.linspace(0.0, 1.0, 101)
    energy = np.interp(shares, SHARES, objective) / TEMPERATURE
    density = np.exp(energy.min() - energy)
    return float(density @ shares / density.sum())


def _speaking(movies: Movies, scenes: Sequence[Scene]) -> tuple[TrackingModel, ...]:
    """Annotated movies without answers that are unusual."""
    if movies.target is None:
        return movies.sources
    data = movies.target.data
    if not data.unusual:
        return (movies.target,)
    usual, first = [], 0
    for scene in scenes:
        rows = scene.constraints.annotation
        unusual = rows[np.isin(np.arange(first, first + len(rows)), data.unusual)]
        first += len(rows)
        anchored = scene.anchored.take(np.setdiff1d(np.arange(len(scene.anchored.listed)), unusual))
        constraints = compile_constraints(anchored, scene.hypotheses)
        if len(constraints):
            usual.append(replace(scene, anchored=anchored, constraints=constraints))
    if not usual:
        return ()
    assert data.population is not None
    data = weighted_answers(build_training_set(usual), data.population, movies.prior)
    return (TrackingModel(data, earlier=movies.target),)
