"""Self-paced learning: from easy samples to hard ones (002, after Kumar et al. 2010).

Samples with a difficulty below 1/K take part; weights and selection alternate, and 1/K grows by mu
until all take part. The result is CCCP on all samples, starting from the weights of the easy ones:
its objective is that of plain training, and only the local optimum differs.

A sample is difficult by its ``slack``: its loss; by its ``entropy``: how uncertain its hidden part
is; or by its ``novelty`` (002, eq. 4): how far the weights would have to move to learn it,

    min_delta 1/2 delta' M delta
    s.t. <w + delta, phi(x, y*, h) - phi(x, y)> >= Delta(y)     for all outputs y

with the completion h that is best at w. This program is solved by cutting planes: outputs enter it
when loss-augmented inference at ``w + delta`` finds them violated. Novelty could only be smaller
with the best h of all, and larger with the outputs that the limit of rounds leaves out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import nnls

from bridgetrack.arrays import Array
from bridgetrack.learning.options import Criterion, LearningOptions
from bridgetrack.learning.regularizers import L2, Regularizer
from bridgetrack.learning.result import Stage, Training
from bridgetrack.learning.risk import Risk

FIRST = 0.2
"""Share of the samples that take part from the start."""

RATE = 1.3
"""mu: the threshold 1/K grows by at least this factor per stage."""

AT_LEAST = 0.1
"""Least share of the samples that each stage adds."""

ALTERNATIONS = 2
"""Selections and trainings for one threshold at most."""

PRECISION = 1e-2
"""Duality gap of the trainings on selections."""

MAX_STAGES = 20
"""After this many stages all samples take part."""

ROUNDS = 8
"""Rounds of inference for the novelty."""

VIOLATION = 1e-2
"""Violation, in units of the task loss, that novelty tolerates."""


def train_self_paced(
    risk: Risk,
    regularizer: Regularizer,
    options: LearningOptions,
    w: Array,
    learn: Callable[[Risk, Regularizer, LearningOptions, Array], Training],
) -> Training:
    """Train on growing selections, then on everything, each time by ``learn``.

    Lambda means the same throughout: the risk of a selection is divided by the number of all
    annotations. The steps of a selection have its own objective and gap. The cost of the curriculum
    is in the counts of the result, not in its steps.
    """
    assert options.curriculum is not None
    criterion, stages, threshold = options.curriculum, list[Stage](), -np.inf
    loose = replace(
        options,
        adaptive=False,
        max_cccp_iterations=1,
        precision=max(options.precision, PRECISION),
    )
    calls, reward_calls = 0.0, 0.0
    for _ in range(MAX_STAGES):
        difficulty = difficulties(criterion, risk, regularizer, w)
        if not stages:
            threshold = _quantile(difficulty, FIRST)
        selected = difficulty <= threshold
        if selected.all():
            break
        for _ in range(ALTERNATIONS):
            mine = [s for s, inside in zip(risk.samples, selected, strict=True) if inside]
            part = Risk(risk.model, mine, risk.n_annotations, risk.loss)
            part.literal = risk.literal
            result = yield from learn(part, regularizer, loose, w)
            w, share = result.w, float(selected.mean())
            calls += share * result.n_inferences
            reward_calls += share * result.n_reward_inferences
            before = selected
            difficulty = difficulties(criterion, risk, regularizer, w)
            selected = difficulty <= threshold
            if selected.all() or (selected == before).all():
                break
        stages.append(Stage(threshold, float(before.mean()), w.copy()))
        inside = float((difficulty <= threshold).mean())
        more = _quantile(difficulty, min(inside + AT_LEAST, 1.0))
        threshold = max(RATE * threshold, more)
    final = yield from learn(risk, regularizer, options, w)
    return replace(
        final,
        stages=tuple(stages),
        n_inferences=final.n_inferences + round(calls),
        n_reward_inferences=final.n_reward_inferences + round(reward_calls),
    )


def difficulties(criterion: Criterion, risk: Risk, regularizer: Regularizer, w: Array) -> Array:
    """Difficulty of every sample, not negative, shape (n,).

    Slack and entropy are divided by the size of the sample: a large one is not difficult because
    it is large.
    """
    if criterion == "novelty":
        return novelties(risk, regularizer, w)
    if criterion == "slack":
        above = risk.loss_of_each(w)
    else:
        above = np.maximum(risk.model.hidden_entropies(risk.samples, w), 0.0)
    return np.asarray(above / risk.model.sizes(risk.samples))


def _quantile(values: Array, share: float) -> float:
    """The smallest value that at least this share of all values does not exceed."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def novelties(risk: Risk, regularizer: Regularizer, w: Array) -> Array:
    """Novelty of every sample, shape (n,); inf if no change of the weights is enough.

    The regulariser's metric measures the change (the identity for L1).
    """
    l2 = L2(1.0, metric=regularizer.metric if isinstance(regularizer, L2) else None)
    n = len(risk.samples)
    done = risk.completions(w).features
    slopes: list[list[Array]] = [[] for _ in range(n)]
    offsets: list[list[float]] = [[] for _ in range(n)]
    steps, value = np.zeros((n, len(w))), np.zeros(n)
    for _ in range(ROUNDS):
        found = risk.penalty(w + steps)
        rows = found.features - done
        violation = ((w + steps) * rows).sum(axis=1) + found.losses
        fresh = np.flatnonzero((violation > VIOLATION) & np.isfinite(value))
        if not len(fresh):
            break
        for i, row, raw in zip(fresh.tolist(), l2.whitened(rows[fresh]), rows[fresh], strict=True):
            slopes[i].append(row)
            offsets[i].append(float(raw @ w + found.losses[i]))
            u = nearest(np.array(slopes[i]), np.array(offsets[i]))
            value[i] = np.inf if u is None else 0.5 * float(u @ u)
            steps[i] = 0.0 if u is None else l2.unwhitened(u)
    return value


def nearest(slopes: Array, offsets: Array) -> Array | None:
    """The shortest u (d,) with ``<a_k, u> + b_k <= 0`` for all k; None if there is none.

    By least distance programming (Lawson and Hanson 1974): of ``E = [-A'; b']`` and ``f = (0, ...,
    0, 1)`` the residual r of ``min_x |E x - f|, x >= 0`` gives ``u = -r[:-1] / r[-1]``, and is zero
    if there is no solution.
    """
    length = np.linalg.norm(slopes, axis=1)
    length[length <= 1e-9] = 1.0
    level = offsets / length
    scale = float(np.abs(level).max()) or 1.0
    rows = np.vstack([-slopes.T / length, level / scale])
    target = np.append(np.zeros(slopes.shape[1]), 1.0)
    residual = rows @ nnls(rows, target)[0] - target
    return None if residual[-1] > -1e-9 else np.asarray(scale * residual[:-1] / -residual[-1])
