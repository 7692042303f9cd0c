"""Where the bundle method looks next: at the minimiser of its model, or near it.

With L2 the minimiser of the master problem is a good next point. With L1 it leaps from corner to
corner; so the next point is pulled towards the best one so far, and the linear problem is solved
only for its lower bound.

The inner loop: minimise one convex surrogate by lower bounds on P (001, section 4.3).

The inner loop of joint training: one convex surrogate, bounds for every domain of its own.

J~(w^1, ..., w^D) = coupling + sum_d [ P^d(w^d) + <v^d, w^d> + c^d ]

What is known of a P^d (bounds, cached outputs) is about that domain alone, so it outlives changes
of lambda, rho and of the other domains.

Working sets of the n-slack method: outputs of each sample that bound its penalty.

The n-slack cutting plane method: one slack, and one set of bounds, per sample (003).

    min  lambda/2 (w - w0)' M (w - w0) + 1/N sum_i xi_i + <v, w> + c
    s.t. xi_i >= <phi(x_i, y), w> + Delta_i(y)      for all outputs y in the working set W_i

The 1-slack method (`bundle`) sums these bounds over the samples before it uses them. Where there
are many samples, a slack is shared by a few of them, which is a step towards that. Working sets
are taken from the cache of outputs first; inference is asked only once the cache promises little
of what is left of the gap, so that its tolerance adapts.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.bounds import Bounds, Iterates
from bridgetrack.learning.cache import OutputCache
from bridgetrack.learning.l1 import solve_l1_master, solve_l1_proximal
from bridgetrack.learning.l2 import Master, solve_joint_master, solve_l2_master
from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L1, L2, Coupling, Regularizer
from bridgetrack.learning.result import Counts
from bridgetrack.learning.risk import Risk, Tangent
from bridgetrack.learning.surrogate import Half, Incumbent, Surrogate

IntArray = NDArray[np.intp]


@dataclass(frozen=True)
class Enclosed:
    """The best point so far, and what the minimum lies between."""

    best: FloatArray
    lower: float
    upper: float


class Steps(Protocol):
    """Chooses the next point from bounds ``<a_k, w> + b_k``, the last of slope zero."""

    def propose(
        self, slopes: FloatArray, offsets: FloatArray, enclosed: Enclosed, precision: float
    ) -> Master:
        """Next point, and the lower bound that its multipliers prove."""
        ...

    def certify(self, slopes: FloatArray, offsets: FloatArray) -> float:
        """Lower bound on the minimum, where `propose` gives only a weak one; else -inf."""
        ...

    def judge(self, raised: bool) -> bool:
        """Take note of whether the last point raised the model there; False: it is useless."""
        ...


def steps_for(regularizer: Regularizer, options: LearningOptions) -> Steps:
    """Steps for a regulariser."""
    if isinstance(regularizer, L1):
        return ProximalSteps(regularizer)
    return DirectSteps(regularizer, options)


class DirectSteps:
    """The minimiser of the master problem (L2)."""

    def __init__(self, regularizer: L2, options: LearningOptions) -> None:
        self.regularizer = regularizer
        self.options = options

    def propose(
        self, slopes: FloatArray, offsets: FloatArray, enclosed: Enclosed, precision: float
    ) -> Master:
        """Minimiser of the master problem."""
        return solve_l2_master(
            slopes,
            offsets,
            self.regularizer,
            form=self.options.form,
            backend=self.options.backend,
            tolerance=1e-3 * precision,
        )

    def certify(self, slopes: FloatArray, offsets: FloatArray) -> float:
        """Nothing to add."""
        return -np.inf

    def judge(self, raised: bool) -> bool:
        """Useless once the model is exact at its own minimiser."""
        return raised


class ProximalSteps:
    """The minimiser pulled towards the best point (L1).

    In units of the objective, a gap spread evenly over d weights is d steps of ``gap / d``, and
    the pull at which these cost as much as they can gain is of the order of ``d / gap``.
    """

    def __init__(self, regularizer: L1, strength: float = 10.0) -> None:
        self.regularizer = regularizer
        self.strength = strength
        self._direct = False
        self._asked = False
        self._upper = np.inf

    def propose(
        self, slopes: FloatArray, offsets: FloatArray, enclosed: Enclosed, precision: float
    ) -> Master:
        """Minimiser of the master problem with a pull, or without once that is exhausted."""
        self._adapt(enclosed.upper)
        found = None
        if not self._direct:
            span = min(max(enclosed.upper - enclosed.lower, precision), 1.0)
            pull = self.strength * slopes.shape[1] / span
            found = solve_l1_proximal(slopes, offsets, self.regularizer, enclosed.best, pull)
        return solve_l1_master(slopes, offsets, self.regularizer) if found is None else found

    def certify(self, slopes: FloatArray, offsets: FloatArray) -> float:
        """Minimum of the linear problem."""
        return solve_l1_master(slopes, offsets, self.regularizer).dual

    def judge(self, raised: bool) -> bool:
        """Where the model is exact already, go further; useless if that was the minimiser."""
        self._asked = True
        if raised:
            self._direct = False
            return True
        useless, self._direct = self._direct, True
        self.strength *= 0.3
        return not useless

    def _adapt(self, upper: float) -> None:
        """Pull less after a point that was better, more after one that was not."""
        if self._asked:
            better = upper < self._upper
            self.strength = float(np.clip(self.strength * (0.5 if better else 1.5), 0.5, 50.0))
            self._asked = False
        self._upper = upper


CHEAP_IN_A_ROW = 50


class Bundle:
    """What is known of P: bounds, iterates, cached outputs.

    Parameters
    ----------
    risk
        Evaluates P.
    bounds, iterates
        Known beforehand, or empty.
    cache
        Outputs known beforehand; None to do without cheap bounds.
    options
        Precision, limits, back end.
    """

    def __init__(
        self,
        risk: Risk,
        bounds: Bounds,
        iterates: Iterates,
        cache: OutputCache | None,
        options: LearningOptions,
    ) -> None:
        self.risk = risk
        self.bounds = bounds
        self.iterates = iterates
        self.cache = cache
        self.options = options

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise a surrogate to a given gap, starting from ``w``.

        Yields
        ------
        Incumbent
            After each inference over all samples.

        Returns
        -------
        Incumbent
            The best of all stored iterates.
        """
        lower = -np.inf
        steps = steps_for(surrogate.regularizer, self.options)
        if self.iterates.find(w) is None:
            self.evaluate(surrogate, w)
            yield self.step(surrogate, lower)
        while True:
            best, upper = self.best(surrogate)
            enclosed = Enclosed(best, lower, upper)
            query, lower = self._next_point(surrogate, steps, enclosed, precision)
            if upper - lower <= precision:
                return Incumbent(best, upper, lower, "converged")
            if self.risk.effort.penalty_calls >= self.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            known = self.lower_bound_at(surrogate, query)
            self.evaluate(surrogate, query)
            value = self.bounds.newest_at(query)
            yield self.step(surrogate, lower)
            if not steps.judge(value - known > 1e-3 * precision):
                best, upper = self.best(surrogate)
                reason = "converged" if upper - lower <= precision else "inexact"
                return Incumbent(best, upper, lower, reason)

    def reward(self, w: FloatArray, previous: InferredBatch | None) -> InferredBatch:
        """Maximisers of the reward term at ``w``, never worse there than the previous ones."""
        found = self.risk.reward(w)
        if previous is not None:
            found = _better_of(found, previous, w, self.risk.loss.reward_sign)
        if self.cache is not None:
            self.cache.add(found, w)
        return found

    def half(self, reward: InferredBatch, w: FloatArray) -> Half:
        """Upper bound on -R that touches at ``w`` (001, eq. 8 and 10, with the missing sign)."""
        tangent = self.risk.tangent(reward, w, self.risk.loss.reward_sign)
        return Half(-tangent.slope, -tangent.offset, reward)

    def counts(self) -> Counts:
        """What is known, and what that has cost so far."""
        effort = self.risk.effort
        return Counts(len(self.bounds), effort.penalty_calls, effort.seconds)

    def forget(self) -> None:
        """Drop everything (training from scratch)."""
        self.bounds.clear()
        self.iterates.clear()
        if self.cache is not None:
            self.cache = OutputCache(len(self.risk.samples), self.risk.model.n_features)

    def penalty_at(self, w: FloatArray) -> float:
        """Upper bound on P at an iterate."""
        row = self.iterates.find(w)
        return float("inf") if row is None else float(self.iterates.uppers[row])

    def evaluate(self, surrogate: Surrogate, w: FloatArray) -> InferredBatch:
        """Compute P at ``w``, note the point and add a bound; what was found."""
        return self.touch(surrogate, w)[0]

    def touch(
        self, half: Half | Surrogate, w: FloatArray
    ) -> tuple[InferredBatch, Tangent, Tangent]:
        """The same; what was found, the bound that was added, and the tangent of P."""
        found = self.risk.penalty(w)
        bound = tangent = self.risk.tangent(found, w, 1)
        if self.risk.literal:
            bound = self.risk.literal_tangent(found, half.reward, w)
        self.bounds.add(bound.slope, bound.offset)
        self.iterates.add(w, tangent)
        if self.cache is not None:
            self.cache.add(found, w)
        return found, bound, tangent

    def _next_point(
        self, surrogate: Surrogate, steps: Steps, enclosed: Enclosed, precision: float
    ) -> tuple[FloatArray, float]:
        """Where to ask for inference next, and the lower bound on min J~.

        Bounds from cached outputs are added while they raise the model of P enough.
        """
        lower = enclosed.lower
        for cheap in range(CHEAP_IN_A_ROW):
            slopes, offsets = self.rows(surrogate)
            master = steps.propose(slopes, offsets, replace(enclosed, lower=lower), precision)
            self.bounds.prune(master.alpha[: len(self.bounds)])
            lower = max(lower, master.dual)
            cache = None if self.risk.literal or cheap == CHEAP_IN_A_ROW - 1 else self.cache
            found = None if cache is None else cache.best(master.w)
            if found is None or enclosed.upper - lower <= precision:
                break
            tangent = self.risk.tangent(found, master.w, 1)
            rise = tangent.value - self.lower_bound_at(surrogate, master.w)
            if rise <= max(0.5 * precision, 0.1 * (enclosed.upper - lower)):
                break
            self.bounds.add(tangent.slope, tangent.offset)
        return master.w, max(lower, steps.certify(*self.rows(surrogate)))

    def rows(self, half: Half | Surrogate) -> tuple[FloatArray, FloatArray]:
        """Bounds on ``P + <v, .> + c``, the last of them ``P >= R >= -<v, .> - c``."""
        slopes = np.vstack([self.bounds.slopes + half.v, np.zeros_like(half.v)])
        return slopes, np.append(self.bounds.offsets + half.c, 0.0)

    def lower_bound_at(self, half: Half | Surrogate, w: FloatArray) -> float:
        """The largest known bound on P at ``w``."""
        value = float((self.bounds.slopes @ w + self.bounds.offsets).max(initial=-np.inf))
        return max(value, -float(half.v @ w) - half.c)

    def best(self, surrogate: Surrogate) -> tuple[FloatArray, float]:
        """The best iterate for a surrogate, and its value there (an upper bound)."""
        values = surrogate.values(self.iterates.weights, self.iterates.uppers)
        row = int(np.argmin(values))
        return self.iterates.weights[row], float(values[row])

    def step(self, surrogate: Surrogate, lower: float) -> Incumbent:
        """Where a minimisation stands."""
        w, objective = self.best(surrogate)
        return Incumbent(w, objective, lower)


def _better_of(
    found: InferredBatch, previous: InferredBatch, w: FloatArray, sign: int
) -> InferredBatch:
    """Sample by sample the output of higher value: inexact inference may have got worse."""
    worse = previous.values(w, sign) > found.values(w, sign)
    outputs = None
    if found.outputs is not None and previous.outputs is not None:
        pairs = zip(worse, previous.outputs, found.outputs, strict=True)
        outputs = [old if bad else new for bad, old, new in pairs]
    return InferredBatch(
        np.where(worse[:, None], previous.features, found.features),
        np.where(worse, previous.losses, found.losses),
        np.maximum(found.bounds, previous.values(w, sign)),
        outputs,
    )


class JointBundle:
    """What is known of all P^d.

    Parameters
    ----------
    parts
        One bundle for each domain, of which bounds, cache and iterates are used.
    coupling
        The regulariser.
    options
        Precision, limits, back end.
    """

    def __init__(
        self, parts: Sequence[Bundle], coupling: Coupling, options: LearningOptions
    ) -> None:
        self.parts = tuple(parts)
        self.coupling = coupling
        self.options = options
        self.points: list[FloatArray] = []
        self.uppers: list[FloatArray] = []

    @property
    def n_calls(self) -> int:
        """Most loss-augmented inferences that any domain has needed."""
        return max(part.risk.effort.penalty_calls for part in self.parts)

    def counts(self) -> Counts:
        """Bounds of all domains, and the most inferences of any."""
        return Counts(sum(len(part.bounds) for part in self.parts), self.n_calls)

    def minimise(
        self, halves: tuple[Half, ...], weights: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise a surrogate to a given gap, starting from ``weights`` (D, d).

        Yields
        ------
        Incumbent
            After each inference over all samples of all domains.

        Returns
        -------
        Incumbent
            The best of all stored points.
        """
        lower = -np.inf
        if not any(np.array_equal(weights, point) for point in self.points):
            self._evaluate(halves, weights)
            yield self._step(halves, lower)
        while True:
            best, upper = self._best(halves)
            query, lower = self._next_point(halves, lower, upper, precision)
            if upper - lower <= precision:
                return Incumbent(best, upper, lower, "converged")
            if self.n_calls >= self.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            known = self._lower_bounds_at(halves, query).sum()
            value = self._evaluate(halves, query)
            yield self._step(halves, lower)
            if value - known <= 1e-3 * precision:
                best, upper = self._best(halves)
                reason = "converged" if upper - lower <= precision else "inexact"
                return Incumbent(best, upper, lower, reason)

    def touching(self, weights: FloatArray, near: tuple[Half, ...] | None) -> tuple[Half, ...]:
        """Upper bounds on all -R^d that touch at ``weights``, see `descent.Objective`."""
        before = [None] * len(self.parts) if near is None else [half.reward for half in near]
        triples = zip(self.parts, weights, before, strict=True)
        return tuple(part.half(part.reward(w, old), w) for part, w, old in triples)

    def value(self, halves: tuple[Half, ...], weights: FloatArray) -> float:
        """The surrogate at a stored point."""
        return self.coupling.value(weights) + float(self.risks_at(halves, weights).sum())

    def same(self, one: tuple[Half, ...], other: tuple[Half, ...]) -> bool:
        """Whether two surrogates are equal."""
        pairs = zip(one, other, strict=True)
        return all(np.array_equal(a.v, b.v) and a.c == b.c for a, b in pairs)

    def risks_at(self, halves: Sequence[Half], weights: FloatArray) -> FloatArray:
        """Upper bounds on ``P^d + <v^d, .> + c^d`` at a stored point, shape (D,)."""
        row = next(i for i, p in enumerate(self.points) if np.array_equal(p, weights))
        return self.uppers[row] + _linear(halves, weights)

    def _evaluate(self, halves: Sequence[Half], weights: FloatArray) -> float:
        """Compute all P^d at a point and add a bound each; the sum of these there."""
        known = self._lower_bounds_at(halves, weights)
        values = [
            _evaluated(part, half, w, low)
            for part, half, w, low in zip(self.parts, halves, weights, known, strict=True)
        ]
        self.points.append(weights.copy())
        self.uppers.append(np.array([upper for _, upper in values]))
        return sum(value for value, _ in values)

    def _next_point(
        self, halves: Sequence[Half], lower: float, upper: float, precision: float
    ) -> tuple[FloatArray, float]:
        """Where to ask for inference next, and the lower bound on min J~.

        Bounds from cached outputs are added while they raise the model of some P^d enough.
        """
        for cheap in range(CHEAP_IN_A_ROW):
            rows = [part.rows(half) for part, half in zip(self.parts, halves, strict=True)]
            master = solve_joint_master(
                [slopes for slopes, _ in rows],
                [offsets for _, offsets in rows],
                self.coupling,
                form=self.options.form,
                backend=self.options.backend,
                tolerance=1e-3 * precision,
            )
            for part, alpha in zip(self.parts, master.alphas, strict=True):
                part.bounds.prune(alpha[: len(part.bounds)])
            lower = max(lower, master.dual)
            enough = max(0.5 * precision, 0.1 * (upper - lower))
            if cheap == CHEAP_IN_A_ROW - 1 or upper - lower <= precision:
                break
            if self._raise_cheaply(halves, master.weights) <= enough:
                break
        return master.weights, lower

    def _raise_cheaply(self, halves: Sequence[Half], weights: FloatArray) -> float:
        """Add a bound from cached outputs to every domain; by how much this raises the model."""
        rise = 0.0
        known = self._lower_bounds_at(halves, weights)
        for d, (part, w) in enumerate(zip(self.parts, weights, strict=True)):
            if part.cache is None or part.risk.literal:
                continue
            found = part.cache.best(w)
            if found is None:
                continue
            tangent = part.risk.tangent(found, w, 1)
            if tangent.value > known[d]:
                part.bounds.add(tangent.slope, tangent.offset)
                rise += tangent.value - known[d]
        return float(rise)

    def _lower_bounds_at(self, halves: Sequence[Half], weights: FloatArray) -> FloatArray:
        """The largest known bound on each P^d, shape (D,)."""
        triples = zip(self.parts, halves, weights, strict=True)
        return np.array([part.lower_bound_at(half, w) for part, half, w in triples])

    def _best(self, halves: Sequence[Half]) -> tuple[FloatArray, float]:
        values = [
            self.coupling.value(point) + float((upper + _linear(halves, point)).sum())
            for point, upper in zip(self.points, self.uppers, strict=True)
        ]
        row = int(np.argmin(values))
        return self.points[row], values[row]

    def _step(self, halves: Sequence[Half], lower: float) -> Incumbent:
        weights, objective = self._best(halves)
        return Incumbent(weights, objective, lower)


def _evaluated(part: Bundle, half: Half, w: FloatArray, low: float) -> tuple[float, float]:
    """Value of a bound that touches P^d at ``w``, and an upper bound on P^d there.

    ``low`` is the largest bound known: where P^d is known too and is no larger, nothing is
    computed.
    """
    row = part.iterates.find(w)
    if row is not None and part.iterates.values[row] - low <= 1e-9 * (1 + abs(low)):
        return float(part.iterates.values[row]), float(part.iterates.uppers[row])
    _, bound, tangent = part.touch(half, w)
    return bound.value, tangent.bound


def _linear(halves: Sequence[Half], weights: FloatArray) -> FloatArray:
    """``<v^d, w^d> + c^d``, shape (D,)."""
    return np.array([float(h.v @ w) + h.c for h, w in zip(halves, weights, strict=True)])


IDLE = 10
"""Master problems without a multiplier after which an output leaves its working set."""


class WorkingSets:
    """Outputs per sample, one row each.

    Parameters
    ----------
    n_samples, n_features
        Size of the problem.
    """

    def __init__(self, n_samples: int, n_features: int) -> None:
        self.n_samples = n_samples
        self._sample: IntArray = np.zeros(0, dtype=np.intp)
        self._features = np.zeros((0, n_features))
        self._losses = np.zeros(0)
        self._idle: IntArray = np.zeros(0, dtype=np.intp)
        self._owner: IntArray = np.zeros(0, dtype=np.intp)

    def __len__(self) -> int:
        return len(self._losses)

    def clear(self) -> None:
        """Empty all sets."""
        self._keep(np.zeros(len(self), dtype=bool))

    def values(self, w: FloatArray) -> FloatArray:
        """Lower bound on each sample's penalty at ``w``, shape (n,); -inf for empty sets."""
        best = np.full(self.n_samples, -np.inf)
        np.maximum.at(best, self._sample, self._features @ w + self._losses)
        return best

    def add(self, found: InferredBatch, w: FloatArray, tolerance: float) -> int:
        """Add the outputs that raise their sample's bound at ``w``; how many did.

        Parameters
        ----------
        found
            One output per sample.
        w
            Where they are compared.
        tolerance
            Rise that counts, besides rounding.
        """
        values = found.values(w, 1)
        known = self.values(w)
        new = np.flatnonzero(values > known + tolerance + 1e-10 * (1 + np.abs(values)))
        self._sample = np.concatenate([self._sample, new])
        self._features = np.vstack([self._features, found.features[new]])
        self._losses = np.concatenate([self._losses, found.losses[new]])
        self._idle = np.concatenate([self._idle, np.zeros(len(new), dtype=np.intp)])
        return len(new)

    def rows(self, n: float, v: FloatArray, c: float) -> tuple[FloatArray, FloatArray, IntArray]:
        """Rows of the master problem, their offsets and groups.

        Samples with a single output are linear: they join the linear term ``<v, w> + c``, which
        the rows of the first group carry.
        """
        count = np.bincount(self._sample, minlength=self.n_samples)
        single = count[self._sample] == 1
        v = v + self._features[single].sum(axis=0) / n
        c = c + float(self._losses[single].sum()) / n
        self._owner = np.flatnonzero(~single)
        if not len(self._owner):
            return v[None, :], np.array([c]), np.zeros(1, dtype=np.intp)
        _, groups = np.unique(self._sample[self._owner], return_inverse=True)
        first = (groups == 0)[:, None]
        slopes = self._features[self._owner] / n + np.where(first, v, 0.0)
        offsets = self._losses[self._owner] / n + np.where(first[:, 0], c, 0.0)
        return slopes, offsets, groups.astype(np.intp)

    def prune(self, alpha: FloatArray) -> None:
        """Take note of which rows are active, and drop those that have long been idle."""
        if not len(self._owner):
            return
        active = np.zeros(len(self), dtype=bool)
        active[self._owner] = alpha > 0
        alone = np.ones(len(self), dtype=bool)
        alone[self._owner] = False
        self._idle = np.where(active | alone, 0, self._idle + 1)
        self._keep(self._idle <= IDLE)

    def _keep(self, keep: NDArray[np.bool_]) -> None:
        for name in ("_sample", "_features", "_losses", "_idle"):
            setattr(self, name, getattr(self, name)[keep])
        self._owner = np.zeros(0, dtype=np.intp)


CHEAP_MASTERS = 50

SLACKS = 40
"""Slacks at most: the time of a master problem grows steeply with them, the calls saved do not."""


class NSlack:
    """The n-slack method.

    Parameters
    ----------
    bundle
        Evaluates P, and keeps what is learned of it.
    regularizer
        lambda, w0 and M.
    """

    def __init__(self, bundle: Bundle, regularizer: L2) -> None:
        self.bundle = bundle
        self.regularizer = regularizer
        n = len(bundle.risk.samples)
        self._sharing = np.arange(n) % min(n, SLACKS)
        self._sets = WorkingSets(min(n, SLACKS), bundle.risk.model.n_features)
        self._last = np.zeros((0, bundle.risk.model.n_features)), np.zeros(0)

    def forget(self) -> None:
        """Drop everything learned about P."""
        self.bundle.forget()
        self._sets.clear()

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Incumbent, None, Incumbent]:
        """Minimise a surrogate to a given gap."""
        bundle, lower = self.bundle, -np.inf
        self._add(surrogate.reward, w, 0.0)
        if bundle.iterates.find(w) is None:
            self._add(bundle.evaluate(surrogate, w), w, 0.0)
            yield bundle.step(surrogate, lower)
        while True:
            best, upper = bundle.best(surrogate)
            master = self._master(surrogate, lower, upper, precision)
            lower = max(lower, master.dual)
            if upper - lower <= precision:
                self._leave(surrogate, master)
                return Incumbent(best, upper, lower, "converged")
            if bundle.risk.effort.penalty_calls >= bundle.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            found = bundle.evaluate(surrogate, master.w)
            added = self._add(found, master.w, 1e-3 * precision)
            yield bundle.step(surrogate, lower)
            if not added:
                best, upper = bundle.best(surrogate)
                reason = "converged" if upper - lower <= precision else "inexact"
                return Incumbent(best, upper, lower, reason)

    def _master(self, surrogate: Surrogate, lower: float, upper: float, precision: float) -> Master:
        """Minimiser over the working sets, which grow by cached outputs while that helps."""
        n, cache = self.bundle.risk.n_annotations, self.bundle.cache
        for cheap in range(CHEAP_MASTERS):
            slopes, offsets, groups = self._sets.rows(n, surrogate.v, surrogate.c)
            master = solve_l2_master(
                slopes,
                offsets,
                self.regularizer,
                groups=groups,
                form=self.bundle.options.form,
                backend=self.bundle.options.backend,
                tolerance=1e-2 * precision,
            )
            self._last = slopes, offsets
            self._sets.prune(master.alpha)
            lower = max(lower, master.dual)
            found = None if cache is None or cheap == CHEAP_MASTERS - 1 else cache.best(master.w)
            if found is None or upper - lower <= precision:
                break
            rise = self._rise(found, master.w)
            if rise <= max(0.5 * precision, 0.1 * (upper - lower)):
                break
            self._add(found, master.w, 1e-3 * precision)
        return master

    def _add(self, found: InferredBatch, w: FloatArray, tolerance: float) -> int:
        """Add what raises the model of P at ``w``; how many slacks that concerns."""
        return self._sets.add(self._shared(found), w, tolerance)

    def _shared(self, found: InferredBatch) -> InferredBatch:
        """Sums over the samples that share a slack."""
        count = self._sets.n_samples
        if count == len(found.losses):
            return found
        features = np.zeros((count, found.features.shape[1]))
        np.add.at(features, self._sharing, found.features)
        losses = np.bincount(self._sharing, found.losses, minlength=count).astype(float)
        return InferredBatch(features, losses, losses)

    def _leave(self, surrogate: Surrogate, master: Master) -> None:
        """Add the bound that the multipliers make of all rows: what proved the minimum."""
        slope, offset = self._last[0].T @ master.alpha, float(self._last[1] @ master.alpha)
        self.bundle.bounds.add(slope - surrogate.v, offset - surrogate.c)

    def _rise(self, found: InferredBatch, w: FloatArray) -> float:
        """How much cached outputs raise the model of P at ``w``."""
        above = self._shared(found).values(w, 1) - self._sets.values(w)
        return float(np.maximum(above, 0.0).sum()) / self.bundle.risk.n_annotations
