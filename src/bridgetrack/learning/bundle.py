"""What is known of the penalty P: planes below it, points where it was computed, outputs found.

    P(w) = sum_g P_g(w),      P_g(w) >= <a_k, w> + b_k     for every plane k of group g

The samples of a group share a slack. One group of all samples is the 1-slack problem (BMRM; 001,
section 4.3), a group for each sample, or for a few, the n-slack problem (003).

All of it depends on the samples and their annotations alone: not on lambda, the prior, the
regulariser or the tangent of -R. That is why planes are recycled from one convex problem of CCCP to
the next (001, section 4.2), and from one training to a later one (`TrainingState`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bridgetrack.arrays import Array
from bridgetrack.learning.regularizers import Regularizer
from bridgetrack.learning.risk import Risk, Tangent
from bridgetrack.learning.structured_model import Inferred, IntArray, Sample

IDLE = 10
"""Master problems without a multiplier after which a plane may be dropped."""

MAX_POINTS = 400
"""Points that are kept; more would only slow down the search for the best of them."""

MAX_OUTPUTS = 40_000
"""Outputs that are kept of all samples together, where that leaves four of each."""

ROUNDING = 1e-10


@dataclass(frozen=True)
class Incumbent:
    """Where the minimisation of a surrogate J~ stands.

    Parameters
    ----------
    w
        The best point so far, shape (d,).
    upper, lower
        J~ there, and a lower bound on min J~.
    reason
        Why the search ended, a key of `cccp.REASONS`; empty while it goes on.
    """

    w: Array
    upper: float
    lower: float
    reason: str = ""

    @property
    def gap(self) -> float:
        """True duality gap."""
        return self.upper - self.lower


@dataclass(frozen=True)
class TrainingState:
    """What a later training can reuse, with any lambda, prior, regulariser, loss and treatment.

    Planes and points hold as long as the samples, their features and their annotations are the
    same, which is checked by the samples' keys and versions. After any other change only the
    outputs of unchanged samples serve.

    Parameters
    ----------
    samples, n_annotations
        The training set that P belongs to.
    slopes, offsets, groups
        Planes of P, shapes (m, d), (m,) and (m,).
    n_groups
        How many groups there are.
    points, uppers
        Weights where P was computed, shape (k, d), and upper bounds on it, (k,).
    outputs
        Outputs found by inference; None if they were not kept.
    w
        Weights to start from, shape (d,).
    """

    samples: tuple[Sample, ...]
    n_annotations: float
    slopes: Array
    offsets: Array
    groups: IntArray
    n_groups: int
    points: Array
    uppers: Array
    outputs: OutputCache | None
    w: Array


class Bundle:
    """Planes, points and outputs of one penalty, below and on the surrogate that is minimised.

        J~(w) = regulariser(w) + P(w) + <v, w> + c,      <v, .> + c >= -R

    Parameters
    ----------
    risk
        P and R.
    regularizer
        Part of the surrogate.
    n_groups
        Number of slacks.
    max_planes
        Above this, planes that have been idle are dropped. Those with a multiplier stay, so that
        no master problem falls below the one before.
    cache
        Whether to keep outputs.
    state
        Of an earlier training: whatever of it is still valid is taken over.
    """

    def __init__(
        self,
        risk: Risk,
        regularizer: Regularizer,
        n_groups: int,
        max_planes: int,
        cache: bool,
        state: TrainingState | None = None,
    ) -> None:
        self.risk = risk
        self.regularizer = regularizer
        self.n_groups = n_groups
        self._max_planes = max_planes
        self._group_of_sample = np.arange(len(risk.samples)) % n_groups
        self._keeps_outputs = cache
        self.forget()
        if state is not None:
            self._take_over(state)

    def __len__(self) -> int:
        return len(self._offsets)

    def forget(self) -> None:
        """Drop everything (training from scratch)."""
        n, d = len(self.risk.samples), self.risk.model.n_features
        self._slopes, self._offsets = np.zeros((0, d)), np.zeros(0)
        self._groups, self._idle = np.zeros((2, 0), dtype=np.intp)
        self._points, self._uppers = np.zeros((0, d)), np.zeros(0)
        self.outputs = OutputCache(n, d) if self._keeps_outputs else None

    # --- the surrogate

    def aim(self, tangent: Tangent, w: Array) -> None:
        """Take another tangent of -R, found at ``w``: its outputs are planes of P, too (P >= R)."""
        self.tangent = tangent
        self._base = self._grouped(tangent.reward)
        if self.outputs is not None:
            self.outputs.add(tangent.reward, w)

    def knows(self, w: Array) -> bool:
        """Whether P was computed at a point."""
        return bool((self._points == w).all(axis=1).any())

    def value(self, w: Array) -> float:
        """The surrogate at a point where P was computed; J where the tangent touches."""
        rows = np.flatnonzero((self._points == w).all(axis=1))[-1:]
        return float(self._values(rows)[0])

    def incumbent(self, lower: float, reason: str = "") -> Incumbent:
        """The best point where P was computed."""
        values = self._values(np.arange(len(self._uppers)))
        row = int(np.argmin(values))
        return Incumbent(self._points[row].copy(), float(values[row]), lower, reason)

    def _values(self, rows: IntArray) -> Array:
        points, tangent = self._points[rows], self.tangent
        linear = points @ tangent.v + tangent.c
        return np.asarray(self.regularizer.value(points) + self._uppers[rows] + linear)

    # --- planes

    def touch(self, w: Array, tolerance: float) -> float:
        """Compute P at a point and add planes; by how much they raise the model of P there.

        Where P and the right planes are known, nothing is computed.
        """
        if self.knows(w):
            upper, known = self._upper(w), float(self._model(w).sum())
            if upper - known <= 1e-9 * (1 + abs(known)):
                return upper - known
        return self.add(self.ask(w), w, tolerance)

    def ask(self, w: Array) -> Inferred:
        """Compute P at a point, and remember it; the outputs that planes are made of."""
        found, n = self.risk.penalty(w), self.risk.n_annotations
        last = slice(1 - MAX_POINTS, None)
        self._points = np.vstack([self._points[last], w])
        self._uppers = np.append(self._uppers[last], float(found.bounds.sum()) / n)
        if self.outputs is not None:
            self.outputs.add(found, w)
        return self.risk.without_satisfied(found, self.tangent) if self.risk.literal else found

    def touch_known(self, w: Array, enough: float, tolerance: float) -> bool:
        """Add planes of outputs found before, if they raise the model of P at a point enough."""
        if self.outputs is None or self.risk.literal:
            return False
        found = self.outputs.best(w)
        if found is None:
            return False
        slopes, offsets = self._grouped(found)
        rise = float(np.maximum(slopes @ w + offsets - self._model(w), 0.0).sum())
        return rise > enough and self.add(found, w, tolerance) > 0

    def add(self, found: Inferred, w: Array, tolerance: float) -> float:
        """Add the planes of some outputs that raise P_g at a point; by how much in all."""
        slopes, offsets = self._grouped(found)
        values, known = slopes @ w + offsets, self._model(w)
        rounding = ROUNDING * (1 + np.abs(values))
        new = np.flatnonzero(values > known + tolerance + rounding)
        self._slopes = np.vstack([self._slopes, slopes[new]])
        self._offsets = np.append(self._offsets, offsets[new])
        self._groups = np.append(self._groups, new)
        self._idle = np.append(self._idle, np.zeros(len(new), dtype=np.intp))
        return float((values[new] - known[new]).sum())

    def rows(self) -> tuple[Array, Array, IntArray]:
        """The surrogate's planes for the master problem: slopes, offsets and groups.

        Those of ``P >= R`` come last. A group that has no other is linear: it joins the tangent,
        which the rows of the first group carry.
        """
        slopes, offsets = self._base
        several = np.bincount(self._groups, minlength=self.n_groups) > 0
        several[0] |= not several.any()
        v = self.tangent.v + slopes[~several].sum(axis=0)
        c = self.tangent.c + float(offsets[~several].sum())
        number = np.cumsum(several) - 1
        groups = number[np.append(self._groups, np.flatnonzero(several))]
        first = (groups == 0)[:, None]
        rows = np.vstack([self._slopes, slopes[several]]) + np.where(first, v, 0.0)
        levels = np.append(self._offsets, offsets[several]) + np.where(first[:, 0], c, 0.0)
        return rows, levels, groups

    def prune(self, alpha: Array) -> None:
        """Take note of which rows have a multiplier, and drop planes if there are many."""
        self._idle = np.where(alpha[: len(self)] > 0, 0, self._idle + 1)
        if len(self) > self._max_planes:
            keep = self._idle <= IDLE
            self._slopes, self._offsets = self._slopes[keep], self._offsets[keep]
            self._groups, self._idle = self._groups[keep], self._idle[keep]

    def _model(self, w: Array) -> Array:
        """The largest known lower bound on every P_g at a point, shape (n_groups,)."""
        slopes, offsets = self._base
        best: Array = slopes @ w + offsets
        np.maximum.at(best, self._groups, self._slopes @ w + self._offsets)
        return best

    def _grouped(self, found: Inferred) -> tuple[Array, Array]:
        """One plane of every group, of these outputs."""
        n = self.risk.n_annotations
        if self.n_groups == 1:
            return found.features.sum(axis=0)[None] / n, found.losses.sum()[None] / n
        slopes = np.zeros((self.n_groups, found.features.shape[1]))
        np.add.at(slopes, self._group_of_sample, found.features)
        return slopes / n, np.bincount(self._group_of_sample, found.losses) / n

    def _upper(self, w: Array) -> float:
        return float(self._uppers[(self._points == w).all(axis=1)][-1])

    # --- from one training to another

    def state(self, w: Array) -> TrainingState:
        """State for a later training."""
        return TrainingState(
            samples=self.risk.samples,
            n_annotations=self.risk.n_annotations,
            slopes=self._slopes,
            offsets=self._offsets,
            groups=self._groups,
            n_groups=self.n_groups,
            points=self._points,
            uppers=self._uppers,
            outputs=self.outputs,
            w=w.copy(),
        )

    def _take_over(self, state: TrainingState) -> None:
        old, new = state.samples, self.risk.samples
        same = [_same(a, b) for a, b in zip(old, new, strict=False)]
        if len(old) == len(new) and all(same):
            scale = state.n_annotations / self.risk.n_annotations
            self._points, self._uppers = state.points, state.uppers * scale
            if state.n_groups == self.n_groups:
                self._slopes, self._offsets = state.slopes * scale, state.offsets * scale
                self._groups, self._idle = state.groups, np.zeros_like(state.groups)
        if self.outputs is not None and state.outputs is not None:
            place = {(s.key, s.version): i for i, s in enumerate(old) if _same(s, s)}
            pairs = [(place.get((s.key, s.version), -1), j) for j, s in enumerate(new)]
            rows = np.array([p for p in pairs if p[0] >= 0], dtype=np.intp).reshape(-1, 2)
            self.outputs.take_over(state.outputs, rows[:, 0], rows[:, 1])


def _same(a: Sample, b: Sample) -> bool:
    """Whether two samples have the same input and annotation; an unnamed one has no equal.

    The object of a sample without a key may have changed since, or stand for another input.
    """
    named = a.key is not None and a.version is not None
    return named and (a.key, a.version) == (b.key, b.version)


class OutputCache:
    """Outputs that inference has found for each sample (the inference cache of 003).

    For every output y of sample i, ``<phi(x_i, y), w> + Delta(y_i*, y)`` is a lower bound on what
    loss-augmented inference would find there, at any w. Of a sample with too many outputs the one
    that was best the longest time ago is replaced.

    Attributes
    ----------
    features, losses
        Shapes (n, k, d) and (n, k); the loss of a free place is -inf.
    """

    def __init__(self, n_samples: int, n_features: int) -> None:
        self._most = max(MAX_OUTPUTS // n_samples, 4)
        self.features = np.zeros((n_samples, 4, n_features))
        self.losses = np.full((n_samples, 4), -np.inf)
        self._used = np.zeros((n_samples, 4), dtype=np.int64)
        self._clock = 0

    def best(self, w: Array) -> Inferred | None:
        """The best known output of each sample (of f + Delta), or None if one has none."""
        values = self.features @ w + self.losses
        rows, winner = np.arange(len(values)), values.argmax(axis=1)
        best = values[rows, winner]
        if not np.isfinite(best).all():
            return None
        self._clock += 1
        self._used[rows, winner] = self._clock
        return Inferred(self.features[rows, winner], self.losses[rows, winner], best)

    def add(self, found: Inferred, w: Array, rows: IntArray | None = None) -> None:
        """Add an output for some samples (None: all), where it beats those known at ``w``."""
        rows = np.arange(len(self.losses)) if rows is None else rows
        values = found.values(w, 1)
        known = (self.features[rows] @ w + self.losses[rows]).max(axis=1)
        new = np.flatnonzero(values > known + ROUNDING * (1 + np.abs(values)))
        into = rows[new]
        if np.isfinite(self.losses[into]).all(axis=1).any():
            self._widen()
        place = self._used[into].argmin(axis=1)
        self._clock += 1
        self.features[into, place] = found.features[new]
        self.losses[into, place] = found.losses[new]
        self._used[into, place] = self._clock

    def take_over(self, other: OutputCache, old: IntArray, new: IntArray) -> None:
        """The outputs of some samples of another cache, by their numbers there and here."""
        while self.losses.shape[1] < other.losses.shape[1]:
            before = self.losses.shape[1]
            self._widen()
            if self.losses.shape[1] == before:
                break
        k = min(self.losses.shape[1], other.losses.shape[1])
        last = np.argsort(-other._used[old], axis=1, kind="stable")[:, :k]
        self.features[new, :k] = other.features[old[:, None], last]
        self.losses[new, :k] = other.losses[old[:, None], last]
        self._used[new, :k] = np.isfinite(self.losses[new, :k])
        self._clock = 1

    def _widen(self) -> None:
        k = self.losses.shape[1]
        more = ((0, 0), (0, min(k, max(self._most - k, 0))))
        self.features = np.pad(self.features, (*more, (0, 0)))
        self.losses = np.pad(self.losses, more, constant_values=-np.inf)
        self._used = np.pad(self._used, more)
