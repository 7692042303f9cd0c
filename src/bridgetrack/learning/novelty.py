"""Novelty: how far weights must move until a sample is learned (002, eq. 4).

    min_delta 1/2 delta' M delta
    s.t. <w + delta, phi(x, y*, h) - phi(x, y)> >= Delta(y)     for all outputs y

with the completion h that is best at w. The quadratic program is solved by cutting planes: outputs
enter it when loss-augmented inference at ``w + delta`` finds them violated. With the best h of
all, novelty could only be smaller; with the outputs that a limit of rounds leaves out, larger.
"""

from __future__ import annotations

import numpy as np

from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.qp import call_backend
from bridgetrack.learning.regularizers import L2, Regularizer, unwhiten, whiten
from bridgetrack.learning.risk import Risk, checked_batch

ROUNDS = 8
"""Rounds of inference."""

TOLERANCE = 1e-2
"""Violation, in units of the task loss, that is let pass."""

BACKENDS = ("daqp", "piqp", "clarabel")


def novelties(
    risk: Risk, regularizer: Regularizer, w: FloatArray, rounds: int = ROUNDS
) -> FloatArray:
    """Novelty of every sample, shape (n,); inf where no change of the weights is enough.

    The regulariser's metric measures the change (the identity for L1).
    """
    metric = regularizer.metric if isinstance(regularizer, L2) else None
    n = len(risk.samples)
    done = risk.completions(w).features
    slopes: list[list[FloatArray]] = [[] for _ in range(n)]
    offsets: list[list[float]] = [[] for _ in range(n)]
    steps, value = np.zeros((n, len(w))), np.zeros(n)
    for _ in range(rounds):
        found = _each(risk, w + steps)
        rows = found.features - done
        violation = ((w + steps) * rows).sum(axis=1) + found.losses
        fresh = np.flatnonzero((violation > TOLERANCE) & np.isfinite(value))
        if not len(fresh):
            break
        white = np.asarray(whiten(metric, rows[fresh]))
        for i, row, raw in zip(fresh.tolist(), white, rows[fresh], strict=True):
            slopes[i].append(row)
            offsets[i].append(float(raw @ w + found.losses[i]))
            u = nearest(np.array(slopes[i]), np.array(offsets[i]))
            value[i] = np.inf if u is None else 0.5 * float(u @ u)
            steps[i] = 0.0 if u is None else unwhiten(metric, u)
    return value


def nearest(slopes: FloatArray, offsets: FloatArray) -> FloatArray | None:
    """The shortest u (d,) with ``<a_k, u> + b_k <= 0`` for all k; None if there is none."""
    length = np.linalg.norm(slopes, axis=1)
    empty = length <= 1e-9
    if (offsets[empty] > 1e-9).any():
        return None
    rows = slopes[~empty] / length[~empty, None]
    level = offsets[~empty] / length[~empty]
    scale = float(np.abs(level).max(initial=0.0))
    d = slopes.shape[1]
    if scale == 0.0 or (level <= 0).all():
        return np.zeros(d)
    for backend in BACKENDS:
        solved = call_backend(backend, np.eye(d), np.zeros(d), G=rows, h=-level / scale)
        if solved is None:
            continue
        u = solved[0] * scale
        if float((rows @ u + level).max()) <= 1e-5 * scale:
            return np.asarray(u)
    return None


def _each(risk: Risk, weights: FloatArray) -> InferredBatch:
    """Loss-augmented inference of each sample at weights of its own."""
    batch = getattr(risk.model, "loss_augmented_each", None)
    risk.effort.penalty_calls += 1
    if batch is not None:
        found: InferredBatch = batch(risk.samples, weights)
    else:
        pairs = zip(risk.samples, weights, strict=True)
        single = [risk.model.loss_augmented_inference(s.x, s.y_star, v) for s, v in pairs]
        found = InferredBatch.stack(single)
    return checked_batch(found, risk.samples, np.zeros(weights.shape[1]), 0)
