"""What a learner may ask of a structured model: joint features, a task loss, and inference.

Scores are ``f(x, y; w) = <w, phi(x, y)>`` and are maximised. Learners know nothing else of x and y.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bridgetrack.errors import InputError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]
Sign = Literal[-1, 1]


@dataclass(frozen=True)
class Sample:
    """One structured input with its partial annotation.

    Parameters
    ----------
    x
        Structured input; opaque to learners, treated as immutable.
    y_star
        Partial annotation of ``x``; opaque to learners, treated as immutable.
    key
        Names ``x`` *and its features* across trainings (change it when the features, their
        scaling or the set of possible outputs change). None: no later training knows it again.
    version
        Names ``y_star`` across trainings; used together with ``key``. None: a later training
        takes it for changed.
    """

    x: Any
    y_star: Any
    key: Hashable | None = None
    version: Hashable | None = None


@dataclass(frozen=True)
class Inferred:
    """What one inference found.

    Parameters
    ----------
    output
        The output ``y``; opaque to learners.
    feature
        Joint feature ``phi(x, y)``, shape (d,).
    loss
        Task loss ``Delta(y*, y)``, zero exactly on the compatible outputs, whatever was
        maximised; 0 where no annotation was given.
    bound
        The solver's upper bound on the maximised value (``f``, ``f + Delta`` or ``f - Delta``);
        equal to the value that ``output`` attains when the solver is exact.
    """

    output: Any
    feature: FloatArray
    loss: float
    bound: float


@dataclass(frozen=True)
class InferredBatch:
    """What one inference of each sample found, as arrays: see `Inferred`.

    Parameters
    ----------
    features
        Shape (n, d).
    losses, bounds
        Shape (n,).
    """

    features: FloatArray
    losses: FloatArray
    bounds: FloatArray

    @classmethod
    def stack(cls, found: Sequence[Inferred]) -> InferredBatch:
        """Batch of single results."""
        return cls(
            features=np.array([r.feature for r in found], dtype=float),
            losses=np.array([r.loss for r in found], dtype=float),
            bounds=np.array([r.bound for r in found], dtype=float),
        )

    def values(self, w: FloatArray, sign: int) -> FloatArray:
        """Attained values of ``f + sign * Delta`` at weights ``w``, shape (n,)."""
        value: FloatArray = self.features @ w + sign * self.losses
        return value


class StructuredModel(ABC):
    """What a learner needs to know about a problem.

    The methods for batches call those for one sample; override them where all samples together
    cost less.

    Inexact or relaxed inference is allowed: ``feature`` and ``loss`` then belong to what was
    found, and ``bound`` is above every value. A relaxed model maximises over a larger set of
    outputs; its penalty is again convex, and everything the learner promises holds for that risk.
    Only do not relax compatible inference alone: what it finds must be admissible in
    loss-augmented inference too, since learners rely on P >= R.
    """

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Length d of the joint feature and of the weights."""

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> FloatArray:
        """``phi(x, y)``, shape (d,)."""

    @abstractmethod
    def task_loss(self, y_star: Any, y: Any) -> float:
        """``Delta(y*, y) >= 0``, zero exactly if ``y`` is compatible with ``y_star``."""

    @abstractmethod
    def inference(self, x: Any, w: FloatArray) -> Inferred:
        """Maximise ``f`` over all outputs Y (``loss`` is 0: there is no annotation)."""

    @abstractmethod
    def loss_augmented_inference(
        self, x: Any, y_star: Any, w: FloatArray, sign: Sign = 1
    ) -> Inferred:
        """Maximise ``f + sign * Delta`` over all outputs Y."""

    @abstractmethod
    def compatible_inference(self, x: Any, y_star: Any, w: FloatArray) -> Inferred:
        """Maximise ``f`` over the compatible outputs Y* (latent completion).

        Raises
        ------
        ContradictionError
            If no output is compatible.
        """

    @abstractmethod
    def incompatible_inference(self, x: Any, y_star: Any, w: FloatArray) -> Inferred | None:
        """Maximise ``f + Delta`` over the incompatible outputs Y°; None if there are none."""

    def inference_batch(self, samples: Sequence[Sample], w: FloatArray) -> InferredBatch:
        """Maximise ``f`` over Y; ``losses`` hold Delta of what was found."""
        found = [self.inference(s.x, w) for s in samples]
        pairs = zip(samples, found, strict=True)
        return InferredBatch.stack(
            [replace(r, loss=self.task_loss(s.y_star, r.output)) for s, r in pairs]
        )

    def loss_augmented_batch(
        self, samples: Sequence[Sample], w: FloatArray, sign: Sign = 1
    ) -> InferredBatch:
        """Maximise ``f + sign * Delta`` over Y."""
        return InferredBatch.stack(
            [self.loss_augmented_inference(s.x, s.y_star, w, sign) for s in samples]
        )

    def loss_augmented_each(self, samples: Sequence[Sample], weights: FloatArray) -> InferredBatch:
        """Maximise ``f + Delta`` over Y, each sample at weights of its own, shape (n, d)."""
        pairs = zip(samples, weights, strict=True)
        return InferredBatch.stack(
            [self.loss_augmented_inference(s.x, s.y_star, w) for s, w in pairs]
        )

    def compatible_batch(self, samples: Sequence[Sample], w: FloatArray) -> InferredBatch:
        """Maximise ``f`` over Y*."""
        return InferredBatch.stack([self.compatible_inference(s.x, s.y_star, w) for s in samples])

    def blocks(self, samples: Sequence[Sample]) -> Sequence[IntArray]:
        """Samples that one inference solves together, as positions in ``samples``."""
        return [np.array([i], dtype=np.intp) for i in range(len(samples))]

    def sizes(self, samples: Sequence[Sample]) -> FloatArray:
        """Size of every sample, such as its number of annotations, shape (n,)."""
        return np.ones(len(samples))

    def hidden_entropies(self, samples: Sequence[Sample], w: FloatArray) -> FloatArray:
        """Entropy of the compatible outputs under ``p(y) ~ exp(f(x, y; w))``, shape (n,)."""
        raise InputError(
            "this model cannot say how uncertain the hidden part is; choose slack or novelty"
        )


def as_samples(samples: Iterable[Sample | tuple[Any, Any]]) -> tuple[Sample, ...]:
    """Samples from samples or from plain ``(x, y_star)`` pairs.

    Raises
    ------
    InputError
        If there are no samples, or if two have the same key.
    """
    found = tuple(s if isinstance(s, Sample) else Sample(*s) for s in samples)
    if not found:
        raise InputError("there is nothing to learn from: no annotated sample; annotate something")
    keys = [s.key for s in found if s.key is not None]
    if len(set(keys)) < len(keys):
        repeated = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise InputError(f"two training samples have the same key {repeated!r}; merge them")
    return found


def checked_weights(weights: FloatArray, d: int) -> FloatArray:
    """A copy of weights to start from."""
    found = np.array(weights, dtype=float)
    if found.shape != (d,) or not np.isfinite(found).all():
        raise InputError(
            f"the initial weights have shape {found.shape} and must be {d} finite numbers, one "
            "for each feature"
        )
    return found
