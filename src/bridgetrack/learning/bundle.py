"""Known facts about the penalty P: planes below it, points where it was computed, outputs found.

    P(w) = sum_g P_g(w),      P_g(w) >= <a_k, w> + b_k     for every plane k of group g

The samples of a group share a slack. One group of all samples is the 1-slack problem (BMRM; 001,
section 4.3), a group for each sample, or for a few, the n-slack problem (003).

All of these are valid for any lambda, prior, regulariser and tangent of -R. Therefore planes are
recycled from one convex problem of CCCP to the next (001, section 4.2), and from one training to a
later one (`Bundle.take_over`). Planes of the literal treatment are made of outputs of the tangent
at the time, and stay valid since ``f - c Delta <= f + Delta <= P``.
"""

from __future__ import annotations

import time
from collections.abc import Generator

import numpy as np

from bridgetrack.arrays import Array, Index, Mask
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import Regularizer
from bridgetrack.learning.result import TrainingStep
from bridgetrack.learning.risk import Risk, Tangent
from bridgetrack.learning.structured_model import Inferred

IDLE = 10
"""Calls without use after which a plane may be dropped."""

MAX_OUTPUTS = 40_000
"""Outputs of all samples together above which idle ones are dropped."""

ROUNDING = 1e-10


class Planes:
    """Planes ``<a_k, w> + b_k``, each a lower bound on one of n functions, its owner."""

    def __init__(self, n_owners: int, n_features: int) -> None:
        self.n_owners, self._clock = n_owners, 0
        self.slopes, self.offsets = np.zeros((0, n_features)), np.zeros(0)  # (m, d) and (m,)
        self.owner, self._used = np.zeros((2, 0), dtype=np.intp)  # (m,)

    def __len__(self) -> int:
        return len(self.offsets)

    def largest(self, w: Array) -> tuple[Array, Index]:
        """The best bound on every function at a point, -inf without any, and its plane."""
        values, best = self.slopes @ w + self.offsets, np.full(self.n_owners, -np.inf)
        np.maximum.at(best, self.owner, values)
        winners = np.flatnonzero(values == best[self.owner])
        _, first = np.unique(self.owner[winners], return_index=True)
        return best, winners[first]

    def add(self, slopes: Array, offsets: Array, owner: Index) -> None:
        """Add planes."""
        self.slopes = np.vstack([self.slopes, slopes])
        self.offsets = np.append(self.offsets, offsets)
        self.owner = np.append(self.owner, owner)
        self._used = np.append(self._used, np.full(len(owner), self._clock))

    def use(self, planes: Index | Mask, most: int) -> None:
        """Note which planes are in use; of more than ``most`` planes, drop those long idle."""
        self._clock += 1
        self._used[planes] = self._clock
        if len(self) > most:
            keep = self._used >= self._clock - IDLE
            self.slopes, self.offsets = self.slopes[keep], self.offsets[keep]
            self.owner, self._used = self.owner[keep], self._used[keep]


Search = Generator[TrainingStep, None, TrainingStep]
"""Minimises a surrogate: yields a step after each inference over all samples, returns the last."""


class Bundle:
    """Planes, points and outputs of one penalty, below and on the surrogate that is minimised.

        J~(w) = regulariser(w) + P(w) + <v, w> + c,      <v, .> + c >= -R

    Parameters
    ----------
    risk
        P and R.
    regularizer
        The regulariser of the surrogate.
    options
        Limits. Of more than ``max_bounds`` planes those that have been idle are dropped. Those
        with a multiplier stay, so that no master problem falls below the one before.
    n_groups
        Number of slacks.

    Attributes
    ----------
    planes
        Lower bounds on every P_g, divided by n.
    outputs
        The inference cache of 003, None without it: an output y of sample i is the plane
        ``<phi(x_i, y), w> + Delta(y_i*, y)``, not divided by n, below its loss-augmented maximum.
    tangent
        The tangent of -R; `set_tangent` must be called first.
    w
        Final weights of the training, from which a later one starts, shape (d,).
    """

    def __init__(
        self, risk: Risk, regularizer: Regularizer, options: LearningOptions, n_groups: int = 1
    ) -> None:
        n, d = len(risk.samples), risk.model.n_features
        self.risk, self.regularizer, self.options = risk, regularizer, options
        self.n_groups, self._group = n_groups, np.arange(n) % n_groups
        self.w = np.zeros(d)
        self.forget()
        # the literal treatment makes planes from other outputs than those found
        self.outputs = Planes(n, d) if options.cache and not risk.literal else None

    # --- the surrogate

    def set_tangent(self, tangent: Tangent, w: Array) -> None:
        """Use another tangent of -R, found at ``w``: its outputs are planes of P, too (P >= R)."""
        self.tangent = tangent
        self._reward_planes = self._grouped(tangent.reward)
        self.keep_outputs(tangent.reward, w)

    def value(self, w: Array) -> float:
        """The surrogate at a point, J where the tangent touches; inf if P was not computed
        there."""
        return float(self._values()[(self._points == w).all(axis=1)].min(initial=np.inf))

    def incumbent(self, lower: float, reason: str = "") -> TrainingStep:
        """The best point where P was computed."""
        values = self._values()
        row = int(np.argmin(values))
        return TrainingStep(
            w=self._points[row].copy(),
            objective=float(values[row]),
            lower=lower,
            n_bounds=len(self.planes),
            n_inferences=self.risk.n_inferences,
            seconds=time.perf_counter() - self.risk.began,
            inference_seconds=self.risk.seconds,
            reason=reason,
        )

    def _values(self) -> Array:
        linear = self._points @ self.tangent.v + self.tangent.c
        return self.regularizer.value(self._points) + self._uppers + linear

    def forget(self) -> None:
        """Drop planes and points, but keep the outputs."""
        self.planes = Planes(self.n_groups, len(self.w))
        self._points, self._uppers = np.zeros((0, len(self.w))), np.zeros(0)

    # --- planes

    def add_planes_at(self, w: Array, tolerance: float) -> float:
        """Compute P at a point and add planes; returns how much they raise the model of P there."""
        return self.add(self.infer(w), w, tolerance)

    def infer(self, w: Array) -> Inferred:
        """Compute P at a point, and remember it; returns the outputs for planes."""
        found, n = self.risk.penalty(w), self.risk.n_annotations
        self._points = np.vstack([self._points, w])
        self._uppers = np.append(self._uppers, float(found.bounds.sum()) / n)
        self.keep_outputs(found, w)
        return self.risk.without_satisfied(found, self.tangent) if self.risk.literal else found

    def add(self, found: Inferred, w: Array, tolerance: float, enough: float = 0.0) -> float:
        """Add the planes of outputs that raise P_g at a point; returns by how much in all.

        None is added unless together they raise the model of P by more than ``enough``.
        """
        slopes, offsets = self._grouped(found)
        values, known = slopes @ w + offsets, self._lower_bounds(w)
        if np.maximum(values - known, 0.0).sum() <= enough:
            return 0.0
        new = np.flatnonzero(values > known + tolerance + ROUNDING * (1 + np.abs(values)))
        self.planes.add(slopes[new], offsets[new], new)
        return float((values[new] - known[new]).sum())

    def rows(self) -> tuple[Array, Array, Index]:
        """The surrogate's planes for the master problem: slopes, offsets and groups.

        Those of ``P >= R`` come last. A group without others is linear and joins the tangent, which
        is added to the rows of the first group. If no group has any, the first is unchanged.
        """
        (slopes, offsets), planes = self._reward_planes, self.planes
        has_planes = np.bincount(planes.owner, minlength=planes.n_owners) > 0
        has_planes[0] |= not has_planes.any()
        v = self.tangent.v + slopes[~has_planes].sum(axis=0)
        c = self.tangent.c + float(offsets[~has_planes].sum())
        number = np.cumsum(has_planes) - 1
        groups = number[np.append(planes.owner, np.flatnonzero(has_planes))]
        first = groups == 0
        rows = np.vstack([planes.slopes, slopes[has_planes]]) + np.where(first[:, None], v, 0.0)
        levels = np.append(planes.offsets, offsets[has_planes]) + np.where(first, c, 0.0)
        return rows, levels, groups

    def prune(self, alpha: Array) -> None:
        """Note which rows have a multiplier, and drop planes if there are many."""
        self.planes.use(alpha[: len(self.planes)] > 0, self.options.max_bounds)

    def _lower_bounds(self, w: Array) -> Array:
        """The largest known lower bound on every P_g at a point, shape (n_groups,)."""
        slopes, offsets = self._reward_planes
        return np.maximum(slopes @ w + offsets, self.planes.largest(w)[0])

    def _grouped(self, found: Inferred) -> tuple[Array, Array]:
        """One plane of every group (001, eq. 11-12): ``b = sum Delta / n`` as f is linear."""
        n, slopes = self.risk.n_annotations, np.zeros((self.n_groups, len(self.w)))
        np.add.at(slopes, self._group, found.features)
        return slopes / n, np.bincount(self._group, found.losses) / n

    # --- outputs

    def best_known(self, w: Array) -> Inferred | None:
        """The best known output of each sample (for f + Delta); None if none are kept."""
        if self.outputs is None:
            return None
        best, rows = self.outputs.largest(w)
        found = Inferred(self.outputs.slopes[rows], self.outputs.offsets[rows], best)
        self.outputs.use(rows, MAX_OUTPUTS)
        return found

    def keep_outputs(self, found: Inferred, w: Array, samples: Index | None = None) -> None:
        """Keep outputs of some samples (None: all) that are better than the known ones at ``w``."""
        if self.outputs is None:
            return
        samples = np.arange(len(self._group)) if samples is None else samples
        values, known = found.values(w, 1), self.outputs.largest(w)[0][samples]
        new = np.flatnonzero(values > known + ROUNDING * (1 + np.abs(values)))
        self.outputs.add(found.features[new], found.losses[new], samples[new])

    # --- from one training to another

    def take_over(self, earlier: Bundle) -> None:
        """Take over what is still valid from an earlier training.

        Points are valid as long as the samples, their order, their features and their annotations
        are the same, by their keys; planes, if the number of groups is the same, too. After any
        other change only the outputs of unchanged samples are used.
        """
        samples = self.risk.samples
        now = {s.key: i for i, s in enumerate(samples) if s.key is not None}
        place = np.array([now.get(s.key, -1) for s in earlier.risk.samples])
        if np.array_equal(place, np.arange(len(samples))):
            scale = earlier.risk.n_annotations / self.risk.n_annotations
            self._points, self._uppers = earlier._points, earlier._uppers * scale
            if earlier.n_groups == self.n_groups:
                known = earlier.planes
                self.planes.add(scale * known.slopes, scale * known.offsets, known.owner)
        if self.outputs is not None and earlier.outputs is not None:
            known = earlier.outputs
            kept = place[known.owner] >= 0
            self.outputs.add(known.slopes[kept], known.offsets[kept], place[known.owner[kept]])
