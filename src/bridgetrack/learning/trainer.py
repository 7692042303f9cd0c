"""Training: chooses the learner, the first weights, and the curriculum."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.errors import InputError
from bridgetrack.learning import cutting_plane
from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.cccp import cccp
from bridgetrack.learning.online import FrankWolfe, Subgradient, train_perceptron
from bridgetrack.learning.options import LearningOptions, Loss, Treatment, find_loss
from bridgetrack.learning.regularizers import L2, Regularizer
from bridgetrack.learning.result import Training, TrainingResult, TrainingStep
from bridgetrack.learning.risk import Risk
from bridgetrack.learning.self_paced import train_self_paced
from bridgetrack.learning.structured_model import Sample, StructuredModel
from bridgetrack.progress import run

MAX_SLACKS = 40
"""Most slacks: a master problem's time grows steeply with them, the inferences saved do not."""


def train(
    model: StructuredModel,
    samples: Iterable[Sample],
    regularizer: Regularizer,
    *,
    n_annotations: float | None = None,
    loss: str | Loss = "bridge",
    treatment: Treatment = "exact",
    options: LearningOptions | None = None,
    initial: Array | None = None,
    state: Bundle | None = None,
) -> Training:
    """Learn weights; a generator that reports progress and can be closed at any time.

    Parameters
    ----------
    model
        The structured model.
    samples
        Inputs with their annotations.
    regularizer
        `L2` or `L1`, with lambda, prior and metric.
    n_annotations
        The risk is divided by this; None: the number of samples.
    loss
        One of `LOSSES`.
    treatment
        Treatment of satisfied samples, see `options.Treatment`.
    options
        Choices and limits.
    initial
        Weights to start from; None: those of ``state``, or else the prior.
    state
        State of an earlier result, perhaps with other lambda, prior, loss or annotations; its valid
        parts are reused, see `Bundle.take_over`.

    Yields
    ------
    TrainingStep
        After each inference over all samples.

    Returns
    -------
    TrainingResult
        The value of the generator; `fit` returns it directly.

    Raises
    ------
    InputError
        If there are no samples or no annotations, if weights, prior or metric do not fit, or if
        features or losses are not finite.
    SolverError
        If inference gives no bound or the master problem cannot be solved.
    """
    options = options or LearningOptions()
    d = model.n_features
    regularizer.check(d)
    risk = Risk(model, samples, n_annotations, find_loss(loss), treatment)
    if initial is None:
        initial = regularizer.centre(d) if state is None else state.w
    w = np.array(initial, dtype=float)
    if w.shape != (d,) or not np.isfinite(w).all():
        raise InputError(
            f"the initial weights have shape {w.shape} and must be {d} finite numbers, one for "
            "each feature"
        )
    if options.learner == "perceptron":
        return (yield from train_perceptron(risk, w))
    if options.curriculum is not None and state is None:
        return (yield from train_self_paced(risk, regularizer, options, w, _descend))
    return (yield from _descend(risk, regularizer, options, w, state))


def _descend(
    risk: Risk,
    regularizer: Regularizer,
    options: LearningOptions,
    w: Array,
    state: Bundle | None = None,
) -> Training:
    """CCCP with the chosen learner."""
    l2 = isinstance(regularizer, L2)
    learner = options.learner or ("n-slack" if l2 and not risk.literal else "1-slack")
    if learner != "1-slack" and not l2:
        raise InputError(f"the learner {learner!r} needs the l2 regulariser; choose 1-slack for l1")
    if learner in ("frank-wolfe", "subgradient") and risk.literal:
        raise InputError(
            f"the learner {learner!r} cannot leave satisfied samples out; choose the treatment "
            "'exact', or the learner 1-slack"
        )
    n_groups = min(len(risk.samples), MAX_SLACKS) if learner == "n-slack" else 1
    bundle = Bundle(risk, regularizer, options, n_groups)
    if state is not None:
        bundle.take_over(state)
    if learner == "frank-wolfe":
        return cccp(bundle, FrankWolfe(bundle).minimise, w)
    if learner == "subgradient":
        return cccp(bundle, Subgradient(bundle).minimise, w)
    return cccp(bundle, partial(cutting_plane.minimise, bundle), w)


def fit(
    model: StructuredModel,
    samples: Iterable[Sample],
    regularizer: Regularizer,
    *,
    report: Callable[[TrainingStep], object] | None = None,
    **keywords: Any,
) -> TrainingResult:
    """Run `train` to its end; ``report`` is called with each `TrainingStep`."""
    return run(train(model, samples, regularizer, **keywords), report)
