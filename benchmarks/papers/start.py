"""Where to start when all outputs tie, as they do at w = 0.

There, whichever completion inference happens to return is as good as any other. Its hidden part
is noise, and the surrogate made of it is least where training began: CCCP stays. The objective
itself does fall from there. For tiny weights e r with r random, the best completion and the best
contradiction differ only where the annotations make them: both do what r likes best elsewhere. The
mean of ``phi(completion) - phi(contradiction)`` over some r is a direction of descent, and a line
search on the objective says how far to go.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.learning.options import Loss, find_loss
from bridgetrack.learning.regularizers import Regularizer
from bridgetrack.learning.risk import Risk
from bridgetrack.learning.structured_model import Sample, StructuredModel

LENGTHS = tuple(10.0**k for k in np.arange(-2.0, 2.1, 0.5))


def untied_start(
    model: StructuredModel,
    samples: Iterable[Sample],
    regularizer: Regularizer,
    *,
    n_annotations: float | None = None,
    loss: str | Loss = "bridge",
    draws: int = 5,
    size: float = 1e-6,
    seed: int = 0,
) -> Array:
    """Weights (d,) to start from instead of the prior, where the prior lets outputs tie.

    Random weights of a ``size`` that is small beside the task loss are drawn so many times; the
    prior itself comes back where no step lowers the objective. The rest is as in `train`.
    """
    risk = Risk(model, samples, n_annotations, find_loss(loss))
    w0, rng = regularizer.centre(model.n_features), np.random.default_rng(seed)
    direction = np.zeros_like(w0)
    for _ in range(draws):
        near = w0 + size * rng.normal(size=len(w0))
        direction += _slope(risk, near)
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        return w0
    points = [w0, *(w0 + step / length * direction for step in LENGTHS)]
    return min(points, key=lambda w: _objective(risk, regularizer, w))


def _slope(risk: Risk, w: Array) -> Array:
    """Minus a subgradient of the risk."""
    wanted = risk.reward(w).features.sum(axis=0)
    return np.asarray(wanted - risk.penalty(w).features.sum(axis=0))


def _objective(risk: Risk, regularizer: Regularizer, w: Array) -> float:
    """J at some weights."""
    penalty = float(risk.penalty(w).values(w, 1).sum()) / risk.n_annotations
    return float(regularizer.value(w)) + penalty + risk.tangent(w).at(w)
