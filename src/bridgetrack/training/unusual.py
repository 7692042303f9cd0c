"""Answers that contradict what the starting model is confident of.

People slip, and a starting model may not suit a movie. Where few answers contradict what it would
choose by a wide margin, they are unusual: each is shown, and learned from, but does not speak for a
longer step (`fit.share_of_step`). Where they are more than slips explain, the model does not suit
the movie.

Margins are those within the components as training cuts them (`training_set.LARGEST`).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.special import betainc

from bridgetrack.arrays import Array
from bridgetrack.inference.margins import margin_bounds
from bridgetrack.inference.problem import Problem
from bridgetrack.inference.solve import solve
from bridgetrack.training.training_set import TrainingSet

CONFIDENT = 4.0
"""Margin from which on the starting model is confident, in contradicted answers. On seven real
movies 0.33 % of such events were wrong at most."""

UNUSUAL = 2.0
"""Margin from which on an answer that contradicts the starting model is called unusual."""

SLIPS = 0.1
"""Share of the answers about confident events that may contradict them: people slip."""

_CHANCE = 0.05
"""Chance below which contradictions are not explained by slips."""


def margins_of_answers(data: TrainingSet, w: Array) -> Array:
    """By which margin weights (d,) choose what every answer confirms, shape (A,).

    Negative: the margin by which they choose what it contradicts. 0 where an event chosen has no
    alternative, of which there is nothing to learn.
    """
    scores = np.asarray(data.phi @ w)
    problem = Problem(sp.csr_matrix(data.incidence))
    solution = solve(problem, scores)
    margin = np.where(solution.chosen, margin_bounds(problem, scores, solution), 0.0)
    margin[~np.isfinite(margin)] = 0.0
    met = data.sets @ solution.chosen.astype(np.float64) > 0
    confirmed = data.sets.multiply(margin).max(axis=1).toarray().ravel()
    of_slot = data.incidence.multiply(np.where(data.allowed, 0.0, margin)[:, None]).max(axis=0)
    slots = sp.csr_matrix(data.sets @ data.incidence) > 0
    contradicted = slots.multiply(of_slot.toarray()).max(axis=1).toarray().ravel()
    return np.where(met, confirmed, -contradicted)


def explained_by_slips(contradicting: int, confirming: int) -> bool:
    """Whether people who slip contradict confident choices so often (binomial test)."""
    if not contradicting:
        return True
    return float(betainc(contradicting, confirming + 1, SLIPS)) >= _CHANCE
