"""The boundary between learners and what they learn: a structured model.

A learner sees joint features, a task loss and four kinds of inference, and nothing else. Scores
are ``f(x, y; w) = <w, phi(x, y)>`` and are maximised.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

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

    def same_annotation(self, other: Sample) -> bool:
        """Whether both annotate the same things."""
        return self.version is not None and self.version == other.version


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


def checked_weights(weights: FloatArray, *shape: int) -> FloatArray:
    """A copy of weights to start from."""
    found = np.array(weights, dtype=float)
    if found.shape != shape or not np.isfinite(found).all():
        each = f" for each of {shape[0]} domains" if len(shape) > 1 else ", one for each feature"
        raise InputError(
            f"the initial weights have shape {found.shape} and must be {shape[-1]} finite "
            f"numbers{each}"
        )
    return found


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
    outputs
        One opaque output per sample; None if the model does not keep them.
    """

    features: FloatArray
    losses: FloatArray
    bounds: FloatArray
    outputs: Sequence[Any] | None = None

    @classmethod
    def stack(cls, found: Sequence[Inferred]) -> InferredBatch:
        """Batch of single results."""
        return cls(
            features=np.array([r.feature for r in found], dtype=float),
            losses=np.array([r.loss for r in found], dtype=float),
            bounds=np.array([r.bound for r in found], dtype=float),
            outputs=[r.output for r in found],
        )

    def values(self, w: FloatArray, sign: int) -> FloatArray:
        """Attained values of ``f + sign * Delta`` at weights ``w``, shape (n,)."""
        value: FloatArray = self.features @ w + sign * self.losses
        return value


class StructuredModel(Protocol):
    """What a learner needs to know about a problem.

    Inexact or relaxed inference is allowed: ``feature`` and ``loss`` then belong to what was
    found, and ``bound`` is above every value. A relaxed model maximises over a larger set of
    outputs; its penalty is again convex, and everything the learner promises holds for that risk.
    Only do not relax compatible inference alone: what it finds must be admissible in
    loss-augmented inference too, since learners rely on P >= R.
    """

    @property
    def n_features(self) -> int:
        """Length d of the joint feature and of the weights."""
        ...

    def joint_feature(self, x: Any, y: Any) -> FloatArray:
        """``phi(x, y)``, shape (d,)."""
        ...

    def task_loss(self, y_star: Any, y: Any) -> float:
        """``Delta(y*, y) >= 0``, zero exactly if ``y`` is compatible with ``y_star``."""
        ...

    def inference(self, x: Any, w: FloatArray) -> Inferred:
        """Maximise ``f`` over all outputs Y (``loss`` is 0: there is no annotation)."""
        ...

    def loss_augmented_inference(
        self, x: Any, y_star: Any, w: FloatArray, sign: Sign = 1
    ) -> Inferred:
        """Maximise ``f + sign * Delta`` over all outputs Y."""
        ...

    def compatible_inference(self, x: Any, y_star: Any, w: FloatArray) -> Inferred:
        """Maximise ``f`` over the compatible outputs Y* (latent completion).

        Raises
        ------
        ContradictionError
            If no output is compatible.
        """
        ...

    def incompatible_inference(self, x: Any, y_star: Any, w: FloatArray) -> Inferred | None:
        """Maximise ``f + Delta`` over the incompatible outputs Y°; None if there are none."""
        ...


class BatchModel(Protocol):
    """Optional additions to `StructuredModel`: all samples in one call.

    Each method is used where the model has it, alone or together with the others. Others that a
    model may have are described where they are used: `blocks_of`, and in `curriculum`.
    """

    def inference_batch(self, samples: Sequence[Sample], w: FloatArray) -> InferredBatch:
        """Maximise ``f`` over Y; ``losses`` hold Delta of what was found."""
        ...

    def loss_augmented_batch(
        self, samples: Sequence[Sample], w: FloatArray, sign: Sign = 1
    ) -> InferredBatch:
        """Maximise ``f + sign * Delta`` over Y."""
        ...

    def compatible_batch(self, samples: Sequence[Sample], w: FloatArray) -> InferredBatch:
        """Maximise ``f`` over Y*."""
        ...


def blocks_of(model: StructuredModel, samples: Sequence[Sample]) -> Sequence[IntArray]:
    """Samples that cost less together, as positions in ``samples``.

    The model's ``blocks(samples)`` says which one inference solves together; where it has no such
    method, each is a block.
    """
    divide = getattr(model, "blocks", None)
    if divide is None:
        return [np.array([i], dtype=np.intp) for i in range(len(samples))]
    return [np.asarray(rows, dtype=np.intp) for rows in divide(samples)]
