"""What all learners have in common: the surrogate, and the points where it is known (001, 4.3).

    J~(w) = regulariser(w) + sum_d [ P^d(w^d) + <v^d, w^d> + c^d ],      <v^d, .> + c^d >= -R^d

A surrogate bounds the objective J from above and is convex. It is described by one `Half` for each
domain; weights have the shape (D, d), with D = 1 except in joint training.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from bridgetrack.learning.bounds import MAX_POINTS, Half, Penalty
from bridgetrack.learning.model import FloatArray, InferredBatch
from bridgetrack.learning.options import LearningOptions
from bridgetrack.learning.regularizers import Coupling, Regularizer

Halves = tuple[Half, ...]


@dataclass(frozen=True)
class Incumbent:
    """The best point so far, J~ there, a lower bound on min J~, and why the search ended.

    ``reason`` is a key of `cccp.REASONS`, empty while the search goes on.
    """

    weights: FloatArray
    objective: float
    lower: float
    reason: str = ""

    @property
    def gap(self) -> float:
        """True duality gap."""
        return self.objective - self.lower


Search = Generator[Incumbent, None, Incumbent]


class Learner(ABC):
    """Minimises surrogates of one objective, one after the other; one penalty for each domain.

    Whatever a learner finds out about P goes to the `Penalty`, so that another may go on from
    there.
    """

    def __init__(
        self,
        penalties: Sequence[Penalty],
        regularizer: Regularizer | Coupling,
        options: LearningOptions,
    ) -> None:
        self.penalties = tuple(penalties)
        self.regularizer = regularizer
        self.options = options
        shape = len(self.penalties), self.penalties[0].risk.model.n_features
        self._points, self._uppers, self._kept = np.zeros((0, *shape)), np.zeros((0, shape[0])), []
        if not isinstance(regularizer, Coupling):
            # points of several domains do not belong together: joint training begins without
            known = self.penalties[0].iterates
            self._points, self._uppers = known.weights[:, None, :], known.uppers[:, None]
            self._kept = [regularizer.value(w) for w in known.weights]

    @abstractmethod
    def minimise(self, halves: Halves, weights: FloatArray, precision: float) -> Search:
        """Minimise a surrogate to a given duality gap, starting from ``weights`` (D, d).

        Yields after each inference over all samples, and returns the best of all stored points with
        a true lower bound on the minimum.
        """

    def forget(self) -> None:
        """Drop everything learned about P (training from scratch)."""
        for penalty in self.penalties:
            penalty.forget()
        self._points, self._uppers, self._kept = self._points[:0], self._uppers[:0], []

    @property
    def n_bounds(self) -> int:
        """Bounds of all domains."""
        return sum(len(penalty.bounds) for penalty in self.penalties)

    @property
    def n_inferences(self) -> int:
        """Most inferences over all samples for P that any domain has needed."""
        return max(penalty.risk.effort.penalty_calls for penalty in self.penalties)

    @property
    def inference_seconds(self) -> float:
        """Spent in inference."""
        return sum(penalty.risk.effort.seconds for penalty in self.penalties)

    def touching(self, weights: FloatArray, near: Halves | None) -> Halves:
        """The surrogate that touches J at ``weights``, of outputs no worse there than another's."""
        before = [None] * len(self.penalties) if near is None else near
        triples = zip(self.penalties, weights, before, strict=True)
        return tuple(penalty.half(w, half) for penalty, w, half in triples)

    def value(self, halves: Halves, weights: FloatArray) -> float:
        """A surrogate at a stored point (an upper bound on it); where it touches, J."""
        row = self._find(weights)
        return float("inf") if row is None else float(self._values(halves, slice(row, row + 1))[0])

    def risks(self, halves: Halves, weights: FloatArray) -> FloatArray:
        """Upper bounds on ``P^d + <v^d, .> + c^d`` at a stored point, shape (D,)."""
        uppers = self._uppers[self._find(weights)]
        linear = [float(half.v @ w) + half.c for half, w in zip(halves, weights, strict=True)]
        return np.asarray(uppers + linear)

    def best(self, halves: Halves) -> tuple[FloatArray, float]:
        """The best stored point of a surrogate, and an upper bound on its value there."""
        values = self._values(halves, slice(None))
        row = int(np.argmin(values))
        return self._points[row], float(values[row])

    def incumbent(self, halves: Halves, lower: float) -> Incumbent:
        """Where a minimisation stands."""
        return Incumbent(*self.best(halves), lower)

    def knows(self, weights: FloatArray) -> bool:
        """Whether P was computed at a point."""
        return self._find(weights) is not None

    def note(self, weights: FloatArray, uppers: Sequence[float]) -> None:
        """Remember a point and the upper bounds on every P^d there."""
        at = weights if isinstance(self.regularizer, Coupling) else weights[0]
        self._points = np.concatenate([self._points, weights[None]])
        self._uppers = np.vstack([self._uppers, uppers])
        self._kept.append(self.regularizer.value(at))

    def trim(self, halves: Halves, weights: FloatArray) -> None:
        """Keep the points that are best for a surrogate, and one in any case, if there are many."""
        if len(self._kept) <= 2 * MAX_POINTS:
            return
        rows = set(np.argsort(self._values(halves, slice(None)), kind="stable")[:MAX_POINTS])
        row = self._find(weights)
        keep = np.array(sorted(rows if row is None else {*rows, row}))
        self._points, self._uppers = self._points[keep], self._uppers[keep]
        self._kept = [self._kept[k] for k in keep]

    def ask(self, halves: Halves, weights: FloatArray) -> list[InferredBatch]:
        """Compute every P^d at a point, and remember it; what was found."""
        triples = zip(self.penalties, halves, weights, strict=True)
        found = [penalty.touch(half, w) for penalty, half, w in triples]
        self.note(weights, [tangent.bound for _, _, tangent in found])
        return [batch for batch, _, _ in found]

    def _find(self, weights: FloatArray) -> int | None:
        rows = np.flatnonzero((self._points == weights).all(axis=(1, 2)))
        return int(rows[-1]) if len(rows) else None

    def _values(self, halves: Halves, rows: slice) -> FloatArray:
        """J~ at some of the stored points."""
        total = np.array(self._kept[rows])
        for d, half in enumerate(halves):
            total = total + self._uppers[rows, d] + self._points[rows, d] @ half.v + half.c
        return total
