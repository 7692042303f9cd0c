"""The interface of a structured model: joint features, a task loss, and inference.

Scores are ``f(x, y; w) = <w, phi(x, y)>`` and are maximised. Learners use nothing else of x and y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.errors import InputError

Sign = Literal[-1, 1]


@dataclass(frozen=True)
class Sample:
    """One structured input with its partial annotation; learners inspect neither."""

    x: Any  # structured input, treated as immutable
    y_star: Any  # partial annotation, treated as immutable
    # identifies both across trainings: it must change if the annotation, the features, their
    # scaling or the set of possible outputs change. Samples of the same name are interchangeable;
    # without one, a later training assumes that the sample changed
    key: Hashable | None = None


@dataclass(frozen=True)
class Inferred:
    """Result of one inference of each of n samples."""

    features: Array  # joint features ``phi(x, y)`` of the outputs y, shape (n, d)
    losses: Array  # their task losses ``Delta(y*, y)``, zero exactly where y is compatible, (n,)
    # upper bounds on the maximised values (``f``, ``f + Delta`` or ``f - Delta``), shape (n,);
    # equal to the values attained if the solver is exact
    bounds: Array

    def values(self, w: Array, sign: int) -> Array:
        """Attained values of ``f + sign * Delta`` at ``w``, (d,) or (n, d), shape (n,)."""
        f: Array = self.features @ w if w.ndim == 1 else (self.features * w).sum(axis=1)
        return f + sign * self.losses

    def where(self, mask: Mask, other: Inferred) -> Inferred:
        """These outputs for the samples of a mask (n,), those of ``other`` for the others."""
        return Inferred(
            np.where(mask[:, None], self.features, other.features),
            np.where(mask, self.losses, other.losses),
            np.where(mask, self.bounds, other.bounds),
        )


class StructuredModel(ABC):
    """A problem as learners see it.

    Inference is asked for many samples at once, so that a model can solve them together or in
    parallel. It may be inexact or relaxed: ``features`` and ``losses`` then belong to the outputs
    found, and ``bounds`` are above every value. A relaxed model maximises over a larger set of
    outputs; its penalty is again convex, and all guarantees of a learner hold for that risk.
    Compatible inference must not be relaxed alone: its outputs must be admissible in loss-augmented
    inference too, since learners rely on P >= R.
    """

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Length d of the joint feature and of the weights."""

    @abstractmethod
    def inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise ``f`` over all outputs Y."""

    @abstractmethod
    def loss_augmented_inference(
        self, samples: Sequence[Sample], w: Array, sign: Sign = 1
    ) -> Inferred:
        """Maximise ``f + sign * Delta`` over Y; ``w`` (d,), or (n, d) with weights of each."""

    @abstractmethod
    def compatible_inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        """Maximise ``f`` over the compatible outputs Y* (latent completion).

        Raises
        ------
        ContradictionError
            If no output is compatible.
        """

    def blocks(self, samples: Sequence[Sample]) -> Sequence[Index]:
        """Samples that one inference solves together, as positions in ``samples``."""
        return [np.array([i], dtype=np.intp) for i in range(len(samples))]

    def sizes(self, samples: Sequence[Sample]) -> Array:
        """Size of every sample, such as its number of annotations, shape (n,)."""
        return np.ones(len(samples))

    def hidden_entropies(self, samples: Sequence[Sample], w: Array) -> Array:
        """Entropy of the compatible outputs under ``p(y) ~ exp(f(x, y; w))``, shape (n,)."""
        raise InputError(
            "this model cannot say how uncertain the hidden part is; choose slack or novelty"
        )
