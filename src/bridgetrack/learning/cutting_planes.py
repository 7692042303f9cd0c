"""The cutting plane method: with one slack (BMRM), n slacks, several domains, L2 or L1.

    min  regulariser(w^1, ..., w^D) + sum_d sum_g xi_dg
    s.t. xi_dg >= <a_k, w^d> + b_k       for all known bounds k of slack g of domain d

A slack bounds the part of ``P^d + <v^d, .> + c^d`` that belongs to its samples. *1-slack*: all
samples of a domain share it, and a bound is a sum over outputs of all of them (001, section 4.3).
*n-slack*: each sample, or a few, have one, and a bound is an output (003). Joint training has a
slack for each domain, so that what is known of a domain outlives changes of lambda, rho and of the
other domains (000, section 1.6.3). Bounds made of outputs found before are tried first; inference
is asked only once these promise little of what is left of the gap, so that their tolerance adapts.

The minimiser of a master problem with few slacks may leap to and fro. Once a few in a row were
hardly better than the best point, inference is asked halfway between this and the minimiser. The
lower bound is always that of the master problem itself.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np
from numpy.typing import NDArray

from bridgetrack.learning.bounds import Half, Penalty
from bridgetrack.learning.l1 import solve_l1_master
from bridgetrack.learning.l2 import Master, solve_l2_master
from bridgetrack.learning.learner import Halves, Incumbent, Learner, Search
from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import L1, Coupling, Regularizer

IntArray = NDArray[np.intp]
Rows = tuple[FloatArray, FloatArray, IntArray]
"""Slopes (m, d), offsets (m,) and slacks (m,) of the rows of a master problem."""

CHEAP_IN_A_ROW = 50
"""Master problems between two inferences at most."""

MAX_SLACKS = 40
"""Of a domain: a master problem's time grows steeply with them, the inferences saved do not."""

IDLE = 10
"""Master problems without a multiplier after which an output leaves its working set."""

RAISED = 1e-3
"""Share of the precision by which a useful bound raises the model of P."""

FELL = 0.1
"""Share of the gap by which a point lowers its upper end that is more than hardly better."""

IN_VAIN = 3
"""Minimisers of master problems in a row, hardly better, after which only part of the way to the
next ones is gone. On tracking with one slack this halves the inferences; one or eight do as well,
but one changes short searches, too, and lengthens them."""

WAY = 0.5
"""Share of the way from the best point to the minimiser that is gone then; .7 did no better, and .2
worse."""


class CuttingPlanes(Learner):
    """Bounds from inference, asked where the master problem of those so far is least, or before."""

    def __init__(
        self,
        penalties: Sequence[Penalty],
        regularizer: Regularizer | Coupling,
        options: LearningOptions,
    ) -> None:
        super().__init__(penalties, regularizer, options)
        single = options.learner == "n-slack" and not isinstance(regularizer, Coupling)
        self._slacks = [(NSlack if single else OneSlack)(penalty) for penalty in self.penalties]
        self._in_vain = 0
        self._alphas: list[FloatArray] = []

    def forget(self) -> None:
        """Drop everything learned about P."""
        super().forget()
        for slacks in self._slacks:
            slacks.forget()

    def minimise(self, halves: Halves, weights: FloatArray, precision: float) -> Search:
        """Minimise a surrogate to a given gap."""
        lower = -np.inf
        self._in_vain = 0
        self.trim(halves, weights)
        for slacks, half, w in zip(self._slacks, halves, weights, strict=True):
            slacks.begin(half, w)
        if not self.knows(weights):
            self._learn(halves, weights, 0.0)
            yield self.incumbent(halves, lower)
        while True:
            best, upper = self.best(halves)
            query, lower = self._next_point(halves, Incumbent(best, upper, lower), precision)
            if upper - lower <= precision:
                for slacks, half, alpha in zip(self._slacks, halves, self._alphas, strict=True):
                    slacks.leave(half, alpha)
                return Incumbent(best, upper, lower, "converged")
            if self.n_inferences >= self.options.max_inferences:
                return Incumbent(best, upper, lower, "limit")
            useful = yield from self._ask(halves, query, Incumbent(best, upper, lower), precision)
            if not useful:
                best, upper = self.best(halves)
                reason = "converged" if upper - lower <= precision else "inexact"
                return Incumbent(best, upper, lower, reason)

    def _ask(
        self, halves: Halves, query: FloatArray, so_far: Incumbent, precision: float
    ) -> Generator[Incumbent, None, bool]:
        """Ask for inference at or before a point; whether that may lead any further."""
        tolerance, best = RAISED * precision, so_far.weights
        halfway = self._in_vain >= IN_VAIN
        point = best + WAY * (query - best) if halfway else query
        raised = self._learn(halves, point, tolerance) > tolerance
        now = self.incumbent(halves, so_far.lower)
        yield now
        better = so_far.objective - now.objective > FELL * so_far.gap
        if not halfway:
            self._in_vain = 0 if better else self._in_vain + 1
            return raised
        if raised or better:
            return True
        raised = self._learn(halves, query, tolerance) > tolerance
        yield self.incumbent(halves, so_far.lower)
        return raised

    def _next_point(
        self, halves: Halves, so_far: Incumbent, precision: float
    ) -> tuple[FloatArray, float]:
        """Where to ask for inference next, and the lower bound on min J~.

        Bounds from known outputs are added while they raise the model of P enough.
        """
        upper, lower = so_far.objective, so_far.lower
        for cheap in range(CHEAP_IN_A_ROW):
            rows = [slacks.rows(half) for slacks, half in zip(self._slacks, halves, strict=True)]
            master = self._solve(rows, Incumbent(so_far.weights, upper, lower), precision)
            ends = np.cumsum([len(offsets) for _, offsets, _ in rows])
            self._alphas = np.split(master.alpha, ends[:-1])
            for slacks, alpha in zip(self._slacks, self._alphas, strict=True):
                slacks.prune(alpha)
            query = master.w.reshape(so_far.weights.shape)
            lower = max(lower, master.dual)
            enough = max(0.5 * precision, 0.1 * (upper - lower))
            if upper - lower <= precision or cheap == CHEAP_IN_A_ROW - 1:
                break
            if self._raise_cheaply(halves, query, enough, RAISED * precision) <= enough:
                break
        return query, lower

    def _solve(self, rows: Sequence[Rows], so_far: Incumbent, precision: float) -> Master:
        """The master problem over the rows of all domains."""
        slopes = np.vstack([a for a, _, _ in rows])
        offsets = np.concatenate([b for _, b, _ in rows])
        if isinstance(self.regularizer, L1):
            return solve_l1_master(slopes, offsets, self.regularizer)
        first = np.cumsum([0, *(int(g.max()) + 1 for _, _, g in rows)])
        return solve_l2_master(
            slopes,
            offsets,
            self.regularizer,
            groups=np.concatenate([g + k for (_, _, g), k in zip(rows, first, strict=False)]),
            domains=np.repeat(np.arange(len(rows)), [len(b) for _, b, _ in rows]),
            form=self.options.form,
            backend=self.options.backend,
            tolerance=self._slacks[0].tolerance * precision,
        )

    def _raise_cheaply(
        self, halves: Halves, weights: FloatArray, enough: float, tolerance: float
    ) -> float:
        """Add bounds from known outputs, and tell by how much they raise the model of P."""
        triples = list(zip(self._slacks, halves, weights, strict=True))
        offers = [slacks.offer(half, w) for slacks, half, w in triples]
        rise = float(sum(max(rise, 0.0) for rise, _ in offers))
        # with several domains, what raises one of them is kept even where that is little in all
        if rise > enough or isinstance(self.regularizer, Coupling):
            for (slacks, _, w), (more, found) in zip(triples, offers, strict=True):
                if found is not None and more > 0:
                    slacks.add(found, w, tolerance)
        return rise

    def _learn(self, halves: Halves, weights: FloatArray, tolerance: float) -> float:
        """Compute all P^d at a point, and add bounds; by how much they raise the model there."""
        triples = zip(self._slacks, halves, weights, strict=True)
        learned = [slacks.learn(half, w, tolerance) for slacks, half, w in triples]
        self.note(weights, [upper for _, upper in learned])
        return float(sum(rise for rise, _ in learned))


class OneSlack:
    """The bounds of a `Penalty`, each a sum over all samples."""

    tolerance = 1e-3
    """Accepted gap of a master problem, as a share of the precision."""

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty

    def forget(self) -> None:
        """Nothing is kept here."""

    def begin(self, half: Half, w: FloatArray) -> None:
        """A surrogate is nothing new to bounds on P."""

    def leave(self, half: Half, alpha: FloatArray) -> None:
        """Nothing to hand on: the penalty has all bounds."""

    def rows(self, half: Half) -> Rows:
        """Bounds on ``P + <v, .> + c``, the last of them ``P >= R >= -<v, .> - c``."""
        bounds = self.penalty.bounds
        slopes = np.vstack([bounds.slopes + half.v, np.zeros_like(half.v)])
        offsets = np.append(bounds.offsets + half.c, 0.0)
        return slopes, offsets, np.zeros(len(offsets), dtype=np.intp)

    def prune(self, alpha: FloatArray) -> None:
        """Take note of which rows are active."""
        self.penalty.bounds.prune(alpha[:-1])

    def offer(self, half: Half, w: FloatArray) -> tuple[float, InferredBatch | None]:
        """Known outputs, and by how much they raise the model of P at ``w``."""
        penalty = self.penalty
        found = None
        if penalty.cache is not None and not penalty.risk.literal:
            found = penalty.cache.best(w)
        if found is None:
            return 0.0, None
        return penalty.risk.tangent(found, w, 1).value - penalty.lower_bound_at(half, w), found

    def add(self, found: InferredBatch, w: FloatArray, tolerance: float) -> None:
        """Add the bound that is made of these outputs."""
        tangent = self.penalty.risk.tangent(found, w, 1)
        self.penalty.bounds.add(tangent.slope, tangent.offset)

    def learn(self, half: Half, w: FloatArray, tolerance: float) -> tuple[float, float]:
        """Add a bound that touches P at ``w``; by how much it raises the model, and P there.

        Where P is known, and the model too is right, nothing is computed.
        """
        known, iterates = self.penalty.lower_bound_at(half, w), self.penalty.iterates
        row = iterates.find(w)
        if row is not None and iterates.values[row] - known <= 1e-9 * (1 + abs(known)):
            return float(iterates.values[row]) - known, float(iterates.uppers[row])
        _, bound, tangent = self.penalty.touch(half, w)
        return bound.value - known, tangent.bound


class NSlack:
    """Working sets: outputs that bound the penalty of each sample, or of a few together."""

    tolerance = 1e-2
    """Accepted gap of a master problem, as a share of the precision."""

    def __init__(self, penalty: Penalty) -> None:
        self.penalty = penalty
        n = len(penalty.risk.samples)
        self._count = min(n, MAX_SLACKS)
        self._sharing = np.arange(n) % self._count
        self.forget()

    def forget(self) -> None:
        """Empty all working sets."""
        self._slack: IntArray = np.zeros(0, dtype=np.intp)
        self._features = np.zeros((0, self.penalty.risk.model.n_features))
        self._losses = np.zeros(0)
        self._idle: IntArray = np.zeros(0, dtype=np.intp)
        self._in_rows: IntArray = np.zeros(0, dtype=np.intp)
        self._last = self._features, self._losses

    def begin(self, half: Half, w: FloatArray) -> None:
        """The outputs of the reward term bound P, too."""
        self.add(half.reward, w, 0.0)

    def rows(self, half: Half) -> Rows:
        """The outputs of slacks that have several.

        Those with a single one are linear: they join the linear term ``<v, w> + c``, which the
        rows of the first group carry.
        """
        n = self.penalty.risk.n_annotations
        single = np.bincount(self._slack, minlength=self._count)[self._slack] == 1
        v = half.v + self._features[single].sum(axis=0) / n
        c = half.c + float(self._losses[single].sum()) / n
        self._in_rows = np.flatnonzero(~single)
        if not len(self._in_rows):
            self._last = v[None, :], np.array([c])
            return *self._last, np.zeros(1, dtype=np.intp)
        _, groups = np.unique(self._slack[self._in_rows], return_inverse=True)
        first = groups == 0
        slopes = self._features[self._in_rows] / n + np.where(first[:, None], v, 0.0)
        offsets = self._losses[self._in_rows] / n + np.where(first, c, 0.0)
        self._last = slopes, offsets
        return slopes, offsets, groups.astype(np.intp)

    def prune(self, alpha: FloatArray) -> None:
        """Take note of which rows are active, and drop outputs that have long been idle."""
        if not len(self._in_rows):
            return
        idle = np.zeros(len(self._idle), dtype=bool)
        idle[self._in_rows] = alpha <= 0
        self._idle = np.where(idle, self._idle + 1, 0)
        keep = self._idle <= IDLE
        self._slack, self._idle = self._slack[keep], self._idle[keep]
        self._features, self._losses = self._features[keep], self._losses[keep]

    def leave(self, half: Half, alpha: FloatArray) -> None:
        """Hand on the bound that the multipliers make of all rows: what proved the minimum."""
        slope, offset = self._last[0].T @ alpha, float(self._last[1] @ alpha)
        self.penalty.bounds.add(slope - half.v, offset - half.c)

    def offer(self, half: Half, w: FloatArray) -> tuple[float, InferredBatch | None]:
        """Known outputs, and by how much they raise the model of P at ``w``."""
        found = None if self.penalty.cache is None else self.penalty.cache.best(w)
        if found is None:
            return 0.0, None
        above = np.maximum(self._shared(found).values(w, 1) - self._values(w), 0.0)
        return float(above.sum()) / self.penalty.risk.n_annotations, found

    def add(self, found: InferredBatch, w: FloatArray, tolerance: float) -> float:
        """Add what raises a slack's bound at ``w`` by more than rounding, and P by the tolerance.

        Returns by how much all of it raises the model of P there.
        """
        shared, n = self._shared(found), self.penalty.risk.n_annotations
        values, known = shared.values(w, 1), self._values(w)
        new = np.flatnonzero(values > known + n * tolerance + 1e-10 * (1 + np.abs(values)))
        self._slack = np.concatenate([self._slack, new])
        self._features = np.vstack([self._features, shared.features[new]])
        self._losses = np.concatenate([self._losses, shared.losses[new]])
        self._idle = np.concatenate([self._idle, np.zeros(len(new), dtype=np.intp)])
        return float((values[new] - known[new]).sum()) / n

    def learn(self, half: Half, w: FloatArray, tolerance: float) -> tuple[float, float]:
        """Ask for inference at ``w``; by how much that raises the slacks, and P there."""
        found, _, tangent = self.penalty.touch(half, w)
        return self.add(found, w, tolerance), tangent.bound

    def _shared(self, found: InferredBatch) -> InferredBatch:
        """Sums over the samples that share a slack."""
        if self._count == len(found.losses):
            return found
        features = np.zeros((self._count, found.features.shape[1]))
        np.add.at(features, self._sharing, found.features)
        losses = np.bincount(self._sharing, found.losses, minlength=self._count).astype(float)
        return InferredBatch(features, losses, losses)

    def _values(self, w: FloatArray) -> FloatArray:
        """Lower bound on every slack at ``w``, shape (n_slacks,); -inf for empty sets."""
        best = np.full(self._count, -np.inf)
        np.maximum.at(best, self._slack, self._features @ w + self._losses)
        return best
