"""What self-paced learning asks of tracking: undecided completions, sizes and kinds of samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from bridgetrack.errors import InfeasibleError
from bridgetrack.hypotheses.events import Event
from bridgetrack.inference.gibbs import LIMIT, Gibbs, gibbs
from bridgetrack.inference.problem import Problem
from bridgetrack.learning.model import Sample
from bridgetrack.training.training_set import TrainingSet

Array = NDArray[np.float64]

ENOUGH = 40
"""States that do for telling easy samples from hard ones."""


def hidden_entropies(
    data: TrainingSet, samples: Sequence[Sample], w: Array, limit: int = LIMIT
) -> tuple[Array, NDArray[np.bool_]]:
    """Entropy of the choices that agree with the annotations, and whether it is exact.

    Parameters
    ----------
    data
        The annotated components.
    samples
        Some of its samples.
    w
        Weights, shape (d,).
    limit
        States of the sum, see `inference.gibbs`.

    Returns
    -------
    entropies, exact
        Shapes (n,); inf where the sum found no compatible choice.
    """
    scores = data.phi @ w
    cut = np.searchsorted(data.column_sample, np.arange(len(data.samples) + 1))
    found, exact = np.full(len(samples), np.inf), np.zeros(len(samples), dtype=bool)
    for k, sample in enumerate(samples):
        columns = slice(int(cut[sample.x]), int(cut[sample.x + 1]))
        incidence = data.incidence[columns]
        problem = Problem(sp.csr_matrix(incidence[:, np.unique(incidence.indices)]))
        summed = _gibbs(problem, scores[columns], data.allowed[columns], limit)
        if summed is not None:
            found[k], exact[k] = summed.entropy, summed.exact
    return found, exact


def _gibbs(problem: Problem, scores: Array, allowed: NDArray[np.bool_], limit: int) -> Gibbs | None:
    """The sum, with more states where too few of them lead nowhere; None if nothing helps."""
    for wider in (1, 4, 16):
        try:
            return gibbs(problem, scores, allowed, wider * limit)
        except InfeasibleError:
            continue
    return None


def sizes(data: TrainingSet, count: Array, samples: Sequence[Sample]) -> Array:
    """What every sample's loss counts, ``count``, times its importance, shape (n,)."""
    weighted = count * data.importance
    return np.asarray(weighted[[s.x for s in samples]], dtype=np.float64)


def kinds(data: TrainingSet, samples: Sequence[Sample]) -> NDArray[np.bool_]:
    """Which kinds of events are annotated in every sample, shape (n, len(Event))."""
    found = np.zeros((len(data.samples), len(Event)), dtype=bool)
    found[data.annotation_sample, data.event] = True
    return found[[s.x for s in samples]]


def individual_scores(data: TrainingSet, samples: Sequence[Sample], weights: Array) -> Array:
    """Scores of all columns, with weights of its own for every sample, shape (H,)."""
    each = np.zeros((len(data.samples), data.phi.shape[1]))
    each[[s.x for s in samples]] = weights
    rows = np.repeat(np.arange(data.phi.shape[0]), np.diff(data.phi.indptr))
    products = data.phi.data * each[data.column_sample[rows], data.phi.indices]
    return np.bincount(rows, products, minlength=data.phi.shape[0]).astype(np.float64)
