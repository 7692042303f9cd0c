"""Pseudo-answers: what the starting model is confident of in answered components.

People answer doubtful events, which say little of ordinary ones: a single slip among a few answers
can turn a weight that the others hardly touch, and with it most of a movie. So events of answered
components that the starting weights w0 choose by a margin of `CONFIDENT` or more, and that agree
with the answers, enter the risk as if somebody had confirmed them. With m answers that confirm what
w0 is confident of, each of the H pseudo-answers has the weight

    mu = min(1, 16 m / H)

where an answer has the weight 1. It is rounded down to half an octave, so that what was cached
mostly remains valid. Where answers contradict what w0 is confident of more often than slips
explain, w0 does not suit the movie, and mu = 0.

Margins are those within the components as training cuts them (`training_set.LARGEST`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import betainc

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import InfeasibleError
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.training.training_set import TrainingSet, balanced

CONFIDENT = 4.0
"""Margin from which on the starting model is confident, in contradicted answers. On seven real
movies 0.33 % of such events were wrong at most."""

UNUSUAL = 2.0
"""Margin from which on an answer that contradicts the starting model is called unusual."""

SLIPS = 0.1
"""Share of the answers about confident events that may contradict them: people slip."""

PER_ANSWER = 16
"""Pseudo-answers of full weight for every answer that confirms what the model is confident of."""

_CHANCE = 0.05
"""Chance below which contradictions are not explained by slips."""


def weighted_answers(data: TrainingSet, population: Array, start: Array) -> TrainingSet:
    """Annotations weighted by how often their kinds of events occur, with pseudo-answers.

    ``population`` is how often each kind of event occurs in the movies, shape (len(Event),), and
    ``start`` the starting weights, shape (d,).
    """
    return add_pseudo_answers(balanced(data, population), start)


def add_pseudo_answers(data: TrainingSet, w: Array) -> TrainingSet:
    """Add the pseudo-answers of starting weights (d,) to the answers of a training set."""
    scores = np.asarray(data.phi @ w)
    problem = Problem(sp.csr_matrix(data.incidence))
    solution = solve(problem, scores)
    margin = np.where(solution.chosen, margin_bounds(problem, scores, solution), -1.0)
    margin[~np.isfinite(margin)] = 0.0  # without an alternative there is nothing to learn
    answered = np.asarray(data.sets.sum(axis=0)).ravel() > 0
    confident = margin >= CONFIDENT
    pseudo = confident & _best_agreeing(data, problem, scores) & data.allowed & ~answered
    data = replace(
        data,
        pseudo=pseudo,
        verdict=_verdict(data, margin, CONFIDENT),
        unusual=tuple(np.flatnonzero(_verdict(data, margin, UNUSUAL) < 0).tolist()),
    )
    return weigh_pseudo_answers(data, np.arange(len(data.importance)))


def weigh_pseudo_answers(data: TrainingSet, rows: Index) -> TrainingSet:
    """The same with the weight that the answers of some samples give the pseudo-answers."""
    if data.pseudo is None:
        return data
    seen = np.isin(data.annotation_sample, rows)
    confirming, contradicting = (int((seen & (data.verdict == v)).sum()) for v in (1, -1))
    count = int(data.pseudo[np.isin(data.column_sample, rows)].sum())
    weight = 0.0
    if confirming and count and explained_by_slips(contradicting, confirming):
        share = min(1.0, PER_ANSWER * confirming / count)
        weight = float(2.0 ** (np.floor(2 * np.log2(share)) / 2))
    return replace(data, pseudo_weight=weight)


def explained_by_slips(contradicting: int, confirming: int) -> bool:
    """Whether people who slip contradict confident choices so often (binomial test)."""
    if not contradicting:
        return True
    return float(betainc(contradicting, confirming + 1, SLIPS)) >= _CHANCE


def _verdict(data: TrainingSet, margin: Array, least: float) -> NDArray[np.int8]:
    """Whether answers confirm (1) or contradict (-1) choices of such a margin, or neither, (A,)."""
    wide = margin >= least
    agree = np.asarray(data.sets @ wide.astype(np.float64)) > 0
    met = np.asarray(data.sets @ (margin >= 0).astype(np.float64)) > 0
    slots = sp.csr_matrix(data.sets @ data.incidence)
    ruled_out = np.asarray(data.incidence[wide & ~data.allowed].sum(axis=0)).ravel()
    differ = ~met & (np.asarray(slots @ ruled_out) > 0)
    return np.where(differ, -1, agree).astype(np.int8)


def _best_agreeing(data: TrainingSet, problem: Problem, scores: Array) -> Mask:
    """Columns of the best choice that agrees with the answers; none where there is none."""
    try:
        return solve(problem, scores, data.allowed).chosen
    except InfeasibleError:  # training names the answers
        return np.zeros(len(scores), dtype=bool)
