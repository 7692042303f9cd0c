"""Baseline: weights under which the annotations are most probable (latent log-likelihood).

    min_w  reg(w) + 1/n sum_x [ log sum_{y in Y} exp f(x, y; w) - log sum_{y in Y*} exp f(x, y; w) ]

It completes partial annotations by their mean in place of their best completion, as conditional
random fields with hidden variables do, and knows no task loss. The sums are the model's
(`LikelihoodModel`). Where they are estimates these jump from weights to weights, which no line
search can follow: steps go down the slope, each coordinate scaled by the slopes so far (AdaGrad,
Duchi, Hazan and Singer 2011), and the weights of the last quarter are averaged. With hidden
outputs the objective is not convex; the search begins at the prior.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from bridgetrack.errors import InputError
from bridgetrack.learning.model import LikelihoodModel, Sample, as_samples
from bridgetrack.learning.regularizers import L2, check_regularizer
from bridgetrack.learning.result import TrainingHistory, TrainingResult, TrainingStep

_ONE_DOMAIN = np.zeros(1, dtype=np.intp)
_TINY = 1e-24


def fit_likelihood(
    model: LikelihoodModel,
    samples: Iterable[Sample | tuple[Any, Any]],
    regularizer: L2,
    *,
    n_annotations: float | None = None,
    max_steps: int = 40,
    rate: float = 0.1,
) -> TrainingResult:
    """Find weights near the prior under which the annotations are probable.

    Parameters
    ----------
    model
        Gives log-likelihoods and their slopes.
    samples
        What was annotated.
    regularizer
        Keeps weights near the prior, where the search begins.
    n_annotations
        What the sum over samples is divided by; None: their number.
    max_steps
        Steps down the slope.
    rate
        Length of the first step along every coordinate in which the regulariser is round.

    Returns
    -------
    TrainingResult
        ``n_inferences`` counts sums over all samples; there is no gap and no bound.

    Raises
    ------
    InputError
        Where there is nothing to learn from, or the prior does not fit.
    """
    start = time.perf_counter()
    found = as_samples(samples)
    total = float(len(found) if n_annotations is None else n_annotations)
    if not total > 0:
        raise InputError(f"learning needs at least one annotation, there are {n_annotations}")
    check_regularizer(regularizer, model.n_features)
    z, squares, inside = np.zeros(model.n_features), np.zeros(model.n_features), 0.0
    path, steps = [], list[TrainingStep]()
    for k in range(max_steps):
        w, begun = regularizer.unwhitened(z, 1), time.perf_counter()
        values, slopes = model.log_losses(found, w)
        inside += time.perf_counter() - begun
        steps.append(
            TrainingStep(
                iteration=k + 1,
                cccp_iteration=0,
                objective=regularizer.value(w) + float(values.sum()) / total,
                gap=float("nan"),
                n_bounds=0,
                n_inferences=k + 1,
                seconds=time.perf_counter() - start,
                weights=w,
                inference_seconds=inside,
            )
        )
        slope = z + regularizer.whitened(slopes.sum(axis=0)[None] / total, _ONE_DOMAIN)[0]
        squares += slope**2
        z = z - rate * slope / np.sqrt(np.maximum(squares, _TINY))
        path.append(z)
    w = regularizer.unwhitened(np.mean(path[-max(1, max_steps // 4) :], axis=0), 1)
    risk = float(model.log_losses(found, w)[0].sum()) / total
    return TrainingResult(
        w=w,
        weights=w[None, :],
        objective=regularizer.value(w) + risk,
        risks=np.array([risk]),
        gap=float("nan"),
        lower_bound=float("nan"),
        converged=False,
        reason="the limit of steps",
        objectives=np.array([step.objective for step in steps]),
        history=TrainingHistory.of(steps),
        n_inferences=max_steps + 1,
        n_reward_inferences=0,
        inference_seconds=inside,
        seconds=time.perf_counter() - start,
    )
