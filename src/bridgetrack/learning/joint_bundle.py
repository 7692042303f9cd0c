"""The inner loop of joint training: one convex surrogate, bounds for every domain of its own.

J~(w^1, ..., w^D) = coupling + sum_d [ P^d(w^d) + <v^d, w^d> + c^d ]

What is known of a P^d (bounds, cached outputs) is about that domain alone, so it outlives changes
of lambda, rho and of the other domains.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from bridgetrack.learning.bundle import CHEAP_IN_A_ROW, Bundle
from bridgetrack.learning.coupling import Coupling
from bridgetrack.learning.joint_master import solve_joint_master
from bridgetrack.learning.model import FloatArray
from bridgetrack.learning.options import TrainingOptions
from bridgetrack.learning.record import Counts
from bridgetrack.learning.surrogate import Half, Outcome, Step


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
        self, parts: Sequence[Bundle], coupling: Coupling, options: TrainingOptions
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
    ) -> Generator[Step, None, Outcome]:
        """Minimise a surrogate to a given gap, starting from ``weights`` (D, d).

        Yields
        ------
        Step
            After each inference over all samples of all domains.

        Returns
        -------
        Outcome
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
                return Outcome(best, upper, lower, "converged")
            if self.n_calls >= self.options.max_oracle_calls:
                return Outcome(best, upper, lower, "limit")
            known = self._lower_bounds_at(halves, query).sum()
            value = self._evaluate(halves, query)
            yield self._step(halves, lower)
            if value - known <= 1e-3 * precision:
                best, upper = self._best(halves)
                reason = "converged" if upper - lower <= precision else "oracle"
                return Outcome(best, upper, lower, reason)

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

    def _step(self, halves: Sequence[Half], lower: float) -> Step:
        weights, objective = self._best(halves)
        return Step(weights, objective, objective - lower)


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
