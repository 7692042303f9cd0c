"""The inner loop: minimise one convex surrogate by lower bounds on P (001, section 4.3)."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from bridgetrack.learning.bounds import Bounds, Iterates
from bridgetrack.learning.cache import OutputCache
from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.options import TrainingOptions
from bridgetrack.learning.record import Counts
from bridgetrack.learning.risk import Risk, Tangent
from bridgetrack.learning.steps import Enclosed, Steps, steps_for
from bridgetrack.learning.surrogate import Half, Outcome, Step, Surrogate

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
        options: TrainingOptions,
    ) -> None:
        self.risk = risk
        self.bounds = bounds
        self.iterates = iterates
        self.cache = cache
        self.options = options

    def minimise(
        self, surrogate: Surrogate, w: FloatArray, precision: float
    ) -> Generator[Step, None, Outcome]:
        """Minimise a surrogate to a given gap, starting from ``w``.

        Yields
        ------
        Step
            After each inference over all samples.

        Returns
        -------
        Outcome
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
                return Outcome(best, upper, lower, "converged")
            if self.risk.effort.penalty_calls >= self.options.max_oracle_calls:
                return Outcome(best, upper, lower, "limit")
            known = self.lower_bound_at(surrogate, query)
            self.evaluate(surrogate, query)
            value = self.bounds.newest_at(query)
            yield self.step(surrogate, lower)
            if not steps.judge(value - known > 1e-3 * precision):
                best, upper = self.best(surrogate)
                reason = "converged" if upper - lower <= precision else "oracle"
                return Outcome(best, upper, lower, reason)

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

    def step(self, surrogate: Surrogate, lower: float) -> Step:
        """Where a minimisation stands."""
        w, objective = self.best(surrogate)
        return Step(w, objective, objective - lower)


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
