"""Two tiny structured models of other kinds, and a way to enumerate all their outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.learning import LOSSES, Bundle, Inferred, Sample, StructuredModel

Output = tuple[int, ...]


class Enumerable(StructuredModel):
    """Inference by enumeration of all outputs, whose features are kept."""

    def outputs(self, x: Array) -> Iterator[Output]:
        raise NotImplementedError

    def joint_feature(self, x: Array, y: Output) -> Array:
        raise NotImplementedError

    def task_loss(self, y_star: Any, y: Output) -> float:
        raise NotImplementedError

    def inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        return self._each(samples, w, 0, "all")

    def loss_augmented_inference(
        self, samples: Sequence[Sample], w: Array, sign: int = 1
    ) -> Inferred:
        return self._each(samples, w, sign, "all")

    def compatible_inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        return self._each(samples, w, 0, "compatible")

    def incompatible_inference(self, samples: Sequence[Sample], w: Array) -> Inferred:
        return self._each(samples, w, 1, "incompatible")

    def _each(self, samples: Sequence[Sample], w: Array, sign: int, space: str) -> Inferred:
        """The best output of a space for each sample; bounds are -inf where it is empty."""
        features, losses = np.zeros((len(samples), self.n_features)), np.zeros(len(samples))
        bounds = np.full(len(samples), -np.inf)
        for k, weights in enumerate(np.broadcast_to(w, features.shape)):
            phi, delta = self._every_output(samples[k])
            inside = {"all": delta >= 0, "compatible": delta == 0, "incompatible": delta > 0}[space]
            value = np.where(inside, phi @ weights + sign * delta, -np.inf)
            best = int(value.argmax())
            if inside[best]:
                features[k], losses[k], bounds[k] = phi[best], delta[best], value[best]
        return Inferred(features, losses, bounds)

    def _every_output(self, s: Sample) -> tuple[Array, Array]:
        """Joint features and task losses of all outputs."""
        known = self.__dict__.setdefault("_known", {})
        key = s.x.shape, s.x.tobytes(), s.y_star
        if key not in known:
            every = list(self.outputs(s.x))
            phi = np.array([self.joint_feature(s.x, y) for y in every])
            known[key] = phi, np.array([self.task_loss(s.y_star, y) for y in every])
        found: tuple[Array, Array] = known[key]
        return found


@dataclass
class AmbiguousMulticlass(Enumerable):
    """Multiclass classification; y* is a set of candidate classes (000, section 1.4.2).

    phi puts x, shape (p,), into the block of class y[0]. Delta is 1 outside the candidates.
    """

    n_classes: int
    n_inputs: int

    @property
    def n_features(self) -> int:
        return self.n_classes * self.n_inputs

    def outputs(self, x: Array) -> Iterator[Output]:
        return ((c,) for c in range(self.n_classes))

    def joint_feature(self, x: Array, y: Output) -> Array:
        feature = np.zeros((self.n_classes, self.n_inputs))
        feature[y[0]] = x
        return feature.ravel()

    def task_loss(self, y_star: frozenset[int], y: Output) -> float:
        return float(y[0] not in y_star)


@dataclass
class PartialChain(Enumerable):
    """A chain of labels with emissions and transitions.

    x has shape (length, p). y* holds a label for each place, or -1 where none was given; Delta
    counts the given labels that are missed.
    """

    n_labels: int
    n_inputs: int

    @property
    def n_features(self) -> int:
        return self.n_labels * (self.n_inputs + self.n_labels)

    def outputs(self, x: Array) -> Iterator[Output]:
        return product(range(self.n_labels), repeat=len(x))

    def joint_feature(self, x: Array, y: Output) -> Array:
        emission = np.zeros((self.n_labels, self.n_inputs))
        transition = np.zeros((self.n_labels, self.n_labels))
        np.add.at(emission, list(y), x)
        np.add.at(transition, (list(y[:-1]), list(y[1:])), 1.0)
        return np.concatenate([emission.ravel(), transition.ravel()])

    def task_loss(self, y_star: Output, y: Output) -> float:
        return float(sum(a not in (-1, b) for a, b in zip(y_star, y, strict=True)))

    def hidden_entropies(self, samples: Sequence[Sample], w: Array) -> Array:
        known = map(self._every_output, samples)
        return np.array([entropy_of(phi[delta == 0] @ w) for phi, delta in known])


def loss_values(model: Enumerable, samples: Sequence[Sample], w: Array, loss: str) -> Array:
    """Loss of each sample by the definition (001, eq. 6), with a real search over Y°."""
    kind = LOSSES[loss]
    if kind.penalty_space == "all":
        penalty = model.loss_augmented_inference(samples, w)
    else:
        penalty = model.incompatible_inference(samples, w)
    if kind.reward_space == "compatible":
        reward = model.compatible_inference(samples, w)
    elif kind.minus_delta:
        reward = model.loss_augmented_inference(samples, w, -1)
    else:
        reward = model.inference(samples, w)
    above = penalty.values(w, 1) - reward.values(w, kind.reward_sign)
    return np.where(np.isneginf(penalty.bounds), 0.0, np.maximum(above, 0.0))


def lower_bound(state: Bundle, w: Array) -> float:
    """The largest known lower bound on P; -inf where a group has no plane."""
    return float(state.planes.largest(w)[0].sum())


def entropy_of(scores: Array) -> float:
    """Entropy of ``p ~ exp(score)`` over listed completions, in nats (002, eq. 3).

    The paper squashes scores by a sigmoid first. Without it, parts that do not depend on each
    other add up, and scores far from zero still tell completions apart.
    """
    shifted = scores - scores.max()
    p = np.exp(shifted)
    total = p.sum()
    return float(np.log(total) - (p @ shifted) / total)


def multiclass_problem(
    seed: int, n: int = 12, full: bool = False, model: type = AmbiguousMulticlass
) -> tuple[Any, tuple[Sample, ...]]:
    """Three noisy classes in two dimensions and a constant; candidates of one or two classes."""
    rng = np.random.default_rng(seed)
    centres = np.array([[2.0, 0.0], [-1.0, 2.0], [-1.0, -2.0]])
    samples = []
    for i in range(n):
        c = int(rng.integers(3))
        x = np.append(centres[c] + rng.normal(scale=1.2, size=2), 1.0)
        extra = set() if full or rng.random() < 0.4 else {int(rng.integers(3))}
        samples.append(Sample(x, frozenset({c} | extra), key=i))
    return model(3, 3), tuple(samples)


def chain_problem(
    seed: int, n: int = 6, length: int = 4, full: bool = False
) -> tuple[PartialChain, tuple[Sample, ...]]:
    """Chains of three labels that tend to stay, with noisy emissions; about half are labelled."""
    rng = np.random.default_rng(seed)
    samples = []
    for i in range(n):
        y = [int(rng.integers(3))]
        while len(y) < length:
            y.append(y[-1] if rng.random() < 0.7 else int(rng.integers(3)))
        x = np.eye(3)[y] + rng.normal(scale=0.6, size=(length, 3))
        hidden = np.zeros(length, bool) if full else rng.random(length) < 0.5
        hidden[int(rng.integers(length))] = False
        y_star = tuple(-1 if h else label for h, label in zip(hidden, y, strict=True))
        samples.append(Sample(x, y_star, key=(i, y_star)))
    return PartialChain(3, 3), tuple(samples)
