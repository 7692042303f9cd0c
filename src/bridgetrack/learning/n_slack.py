"""The n-slack cutting plane method: one slack, and one set of bounds, per sample (003).

    min  lambda/2 (w - w0)' M (w - w0) + 1/N sum_i xi_i + <v, w> + c
    s.t. xi_i >= <phi(x_i, y), w> + Delta_i(y)      for all outputs y in the working set W_i

The 1-slack method (`bundle`) sums these bounds over the samples before it uses them. Where there
are many samples, a slack is shared by a few of them, which is a step towards that. Working sets
are taken from the cache of outputs first; inference is asked only once the cache promises little
of what is left of the gap, so that its tolerance adapts.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from bridgetrack.learning.bundle import Bundle
from bridgetrack.learning.l2 import solve_l2_master
from bridgetrack.learning.master import Master
from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.regularizers import L2
from bridgetrack.learning.surrogate import Outcome, Step, Surrogate
from bridgetrack.learning.working_sets import WorkingSets

CHEAP_IN_A_ROW = 50

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
    ) -> Generator[Step, None, Outcome]:
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
                return Outcome(best, upper, lower, "converged")
            if bundle.risk.effort.penalty_calls >= bundle.options.max_oracle_calls:
                return Outcome(best, upper, lower, "limit")
            found = bundle.evaluate(surrogate, master.w)
            added = self._add(found, master.w, 1e-3 * precision)
            yield bundle.step(surrogate, lower)
            if not added:
                best, upper = bundle.best(surrogate)
                reason = "converged" if upper - lower <= precision else "oracle"
                return Outcome(best, upper, lower, reason)

    def _master(self, surrogate: Surrogate, lower: float, upper: float, precision: float) -> Master:
        """Minimiser over the working sets, which grow by cached outputs while that helps."""
        n, cache = self.bundle.risk.n_annotations, self.bundle.cache
        for cheap in range(CHEAP_IN_A_ROW):
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
            found = None if cache is None or cheap == CHEAP_IN_A_ROW - 1 else cache.best(master.w)
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
