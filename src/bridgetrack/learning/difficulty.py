"""How difficult each sample is at some weights: what self-paced learning goes by (002).

``slack``: its loss. ``entropy``: how undecided its hidden part is. ``novelty``: how far the
weights would have to move to learn it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError
from bridgetrack.learning.model import FloatArray, InferredBatch, Sample
from bridgetrack.learning.novelty import novelties
from bridgetrack.learning.options import Criterion
from bridgetrack.learning.regularizers import Regularizer
from bridgetrack.learning.risk import Risk


class PacedModel(Protocol):
    """Optional additions to `StructuredModel` for self-paced learning.

    Only ``hidden_entropies`` is needed, and only by the criterion of that name.
    """

    def hidden_entropies(self, samples: Sequence[Sample], w: FloatArray) -> FloatArray:
        """Entropy of the compatible outputs under ``p(y) ~ exp(f(x, y; w))``, shape (n,)."""
        ...

    def sizes(self, samples: Sequence[Sample]) -> FloatArray:
        """How much each sample counts, such as its annotations, shape (n,); else 1."""
        ...

    def kinds(self, samples: Sequence[Sample]) -> NDArray[np.bool_]:
        """Which kinds occur in each sample, shape (n, k); else none."""
        ...

    def loss_augmented_each(self, samples: Sequence[Sample], weights: FloatArray) -> InferredBatch:
        """Maximise ``f + Delta`` of each sample at weights of its own, shape (n, d)."""
        ...


def difficulties(
    criterion: Criterion, risk: Risk, regularizer: Regularizer, w: FloatArray
) -> FloatArray:
    """Difficulty of every sample, not negative, shape (n,).

    Slack and entropy are divided by the size of the sample: a large one is not difficult because
    it is large.

    Raises
    ------
    InputError
        If the model cannot tell how undecided the hidden part is.
    """
    if criterion == "novelty":
        return novelties(risk, regularizer, w)
    if criterion == "slack":
        above = risk.penalty(w).values(w, 1) - risk.reward(w).values(w, risk.loss.reward_sign)
        return np.asarray(np.maximum(above, 0.0) / sizes_of(risk))
    measure = getattr(risk.model, "hidden_entropies", None)
    if measure is None:
        raise InputError(
            "this model cannot say how undecided the hidden part is; choose slack or novelty"
        )
    return np.asarray(np.maximum(measure(risk.samples, w), 0.0) / sizes_of(risk))


def sizes_of(risk: Risk) -> FloatArray:
    """Size of every sample, shape (n,)."""
    measure = getattr(risk.model, "sizes", None)
    found = np.ones(len(risk.samples)) if measure is None else measure(risk.samples)
    return np.asarray(found, dtype=float)


def kinds_of(risk: Risk) -> NDArray[np.bool_]:
    """Which kinds occur in each sample, shape (n, k)."""
    measure = getattr(risk.model, "kinds", None)
    n = len(risk.samples)
    return np.zeros((n, 0), dtype=bool) if measure is None else np.asarray(measure(risk.samples))


def entropy_of(scores: FloatArray) -> float:
    """Entropy of ``p ~ exp(score)`` over listed completions, in nats (002, eq. 3).

    The paper squashes scores by a sigmoid first. Without it, parts that do not depend on each
    other add up, and scores far from zero still tell completions apart.
    """
    shifted = scores - scores.max()
    p = np.exp(shifted)
    total = p.sum()
    return float(np.log(total) - (p @ shifted) / total)
